//! S5, S2: the process forks, or ends, inside a function that the library calls.

use crate::support::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

// -------------------------------------------------------------- exit

static ENDING: AtomicPtr<sw_service> = AtomicPtr::new(std::ptr::null_mut());

/// At the end of a process inside a callback: neither waits for that.
extern "C" fn stops_and_frees() {
    let service = ENDING.load(Ordering::SeqCst);
    let null = std::ptr::null_mut();
    // SAFETY: the service has not been freed, and is not now.
    unsafe {
        let stopped = sw_service_stop(service, None, null, null.cast());
        let freed = sw_service_free(service);
        libc::_exit(i32::from((stopped, freed) != (SW_WOULD_DEADLOCK, SW_WOULD_DEADLOCK)));
    }
}

fn exit_if(here: bool) {
    if here {
        // SAFETY: no other thread is here.
        unsafe { libc::exit(78) }
    }
}

/// The status of a child that does this.
fn ended(body: impl FnOnce()) -> i32 {
    // SAFETY: the child ends without a word to what it shares.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::alarm(20);
            body();
            libc::_exit(77);
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        status
    }
}

#[test]
fn s2_stop_as_the_process_ends_inside_a_callback() {
    alone("processes::s2_stop_as_the_process_ends_inside_a_callback", || {
        let ways = [None, Some(SW_ATTACH_SHARED), Some(SW_ATTACH_EXCLUSIVE)];
        for (how, in_drop) in ways.into_iter().flat_map(|how| [(how, false), (how, true)]) {
            let status = ended(|| {
                let svc = Setup::manual(MS).start();
                if let Some(how) = how {
                    assert_eq!(svc.attach(0, how), SW_OK);
                }
                ENDING.store(svc.raw(), Ordering::SeqCst);
                // SAFETY: the handler lives as long as the process; what it uses does, too.
                unsafe { libc::atexit(stops_and_frees) };
                let timer = svc.timer().run(move |_| exit_if(!in_drop));
                timer.ended(move || exit_if(in_drop)).start();
                svc.poll();
            });
            assert_eq!(status, 0, "{how:?}, in a drop: {in_drop}");
        }
    });
}

// -------------------------------------------------------------- fork

/// Forks once, inside a function that the library calls. The child goes on from there; what is called in it the parent
/// learns through memory that both have.
#[derive(Clone, Copy)]
struct Forks {
    parent: u32,
    shared: &'static Shared,
}

struct Shared {
    done: AtomicBool,
    calls_in_child: AtomicU64,
    child: AtomicI32,
}

impl Forks {
    fn new() -> Forks {
        // SAFETY: new memory of zeros, which the parts may be; it is never given back.
        let shared = unsafe {
            let (access, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            let place = libc::mmap(null_mut(), size_of::<Shared>(), access, kind, -1, 0);
            assert_ne!(place, libc::MAP_FAILED);
            &*place.cast::<Shared>()
        };
        Forks { parent: std::process::id(), shared }
    }

    fn is_child(self) -> bool {
        std::process::id() != self.parent
    }

    /// A function of the host's is called; it is here that the first one forks, if so.
    fn called(self, here: bool) {
        if self.is_child() {
            self.shared.calls_in_child.fetch_add(1, Ordering::SeqCst);
        } else if here && !self.shared.done.swap(true, Ordering::SeqCst) {
            // SAFETY: the child goes on in the library, which takes no lock of another thread's there.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child != 0 {
                self.shared.child.store(child, Ordering::SeqCst);
            }
        }
    }

    /// In the child: ends it. In the parent: fails if the child did not end well, or called something.
    fn verdict(self, answer: sw_status, what: &str) {
        if self.is_child() {
            // SAFETY: it ends without a word to what it shares.
            unsafe { libc::_exit(i32::from(answer != SW_FORKED)) };
        }
        assert_eq!(answer, SW_OK, "{what}");
        let (child, mut status) = (self.shared.child.load(Ordering::SeqCst), -1);
        let begin = Instant::now();
        // SAFETY: our own child, which has not been waited for.
        while unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } == 0 {
            if begin.elapsed() > Duration::from_secs(20) {
                // SAFETY: as above. It may be deaf to other signals.
                unsafe { libc::kill(child, libc::SIGKILL) };
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(status, 0, "the child: {what}");
        assert_eq!(self.shared.calls_in_child.load(Ordering::SeqCst), 0, "in the child: {what}");
    }
}

unsafe extern "C-unwind" fn plain(ctx: *mut c_void, _: *const sw_expiry) {
    // SAFETY: the test's own, kept.
    unsafe { *ctx.cast_const().cast::<Forks>() }.called(true);
}

unsafe extern "C-unwind" fn unfired(arg: *mut c_void, _: sw_timer, _: *mut c_void, _: u64) {
    // SAFETY: the test's own, kept.
    unsafe { *arg.cast_const().cast::<Forks>() }.called(true);
}

fn arg(forks: Forks) -> *mut c_void {
    std::ptr::from_ref(keep(forks)).cast_mut().cast()
}

/// Two timers each of: a plain one, one with a drop, and a periodic one each of whose periods is served.
fn all_kinds(svc: &Svc, forks: Forks, place: &'static str) {
    for _ in 0..2 {
        let callback = if place == "plain callback" { Some(plain as _) } else { None };
        let (raw, arg, out) = (svc.raw(), arg(forks), null_mut());
        let quiet = Some(Log::callback as _);
        let log = Log::counting().ctx();
        // SAFETY: context and callback belong together, and stay.
        let status = unsafe {
            match callback {
                Some(_) => sw_timer_start(raw, MS, callback, arg, out),
                None => sw_timer_start(raw, MS, quiet, log, out),
            }
        };
        assert_eq!(status, SW_OK);
        let once = svc.timer().delay(MS).run(move |_| forks.called(place == "callback"));
        once.ended(move || forks.called(place == "drop")).start();
        let every = svc.timer().delay(MS).period(MS).flags(SW_TIMER_BURST);
        every.run(move |_| forks.called(place == "period")).start();
    }
}

#[test]
fn s5_a_poll_that_forks_ends_in_the_child() {
    alone("processes::s5_a_poll_that_forks_ends_in_the_child", || {
        for place in ["plain callback", "callback", "drop", "period", "slow"] {
            for how in [None, Some(SW_ATTACH_EXCLUSIVE)] {
                let forks = Forks::new();
                let slow = move |_, _, _, _| forks.called(place == "slow");
                let setup = Setup::manual(MS);
                let svc = if place == "plain callback" { setup } else { setup.on_slow(1, slow) };
                let svc = svc.start();
                if let Some(how) = how {
                    assert_eq!(svc.attach(0, how), SW_OK);
                }
                all_kinds(&svc, forks, place);
                svc.advance(3 * MS);
                let polled = svc.try_poll(0, 0);
                forks.verdict(polled.err().unwrap_or(SW_OK), place);
                assert_eq!(polled, Ok(10));
                assert_eq!(svc.pending(), 2);
            }
        }
    });
}

/// The first process of the test below.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// What else would be done at the end of a child is not for a test.
extern "C" fn a_child_is_over() {
    if std::process::id() != FIRST.load(Ordering::SeqCst) {
        // SAFETY: it ends without a word to what it shares.
        unsafe { libc::_exit(0) };
    }
}

#[test]
fn s5_a_shards_thread_that_forks_ends_in_the_child() {
    alone("processes::s5_a_shards_thread_that_forks_ends_in_the_child", || {
        FIRST.store(std::process::id(), Ordering::SeqCst);
        // SAFETY: the handler lives as long as the process.
        unsafe { libc::atexit(a_child_is_over) };
        for place in ["plain callback", "callback", "drop", "period", "thread start"] {
            let forks = Forks::new();
            let svc = Setup::threaded(1)
                .on_thread_start(move |_| forks.called(place == "thread start"))
                .on_thread_stop(move |_| forks.called(false))
                .start();
            all_kinds(&svc, forks, place);
            eventually("the parent goes on", || svc.stats().fired >= 30);
            forks.verdict(SW_OK, place);
        }
    });
}

#[test]
fn s5_a_stop_that_forks_ends_in_the_child() {
    alone("processes::s5_a_stop_that_forks_ends_in_the_child", || {
        for place in ["unfired", "drop", "drop as it is freed"] {
            let forks = Forks::new();
            let svc = Setup::manual(MS).shards(2).start();
            for shard in [0, 0, 1] {
                let timer = svc.timer().shard(shard).delay(HOUR).run(|_| {});
                timer.ended(move || forks.called(place != "unfired")).start();
            }
            let mut returned = 77;
            let told = if place == "unfired" { Some(unfired as _) } else { None };
            // SAFETY: the service is freed once, in the end.
            let status = unsafe {
                match place {
                    "drop as it is freed" => sw_service_free(svc.raw()),
                    _ => sw_service_stop(svc.raw(), told, arg(forks), &mut returned),
                }
            };
            if place == "drop as it is freed" {
                std::mem::forget(svc);
            }
            forks.verdict(status, place);
        }
    });
}

#[test]
fn s5_freeing_a_queue_that_forks_ends_in_the_child() {
    alone("processes::s5_freeing_a_queue_that_forks_ends_in_the_child", || {
        let forks = Forks::new();
        let svc = Setup::manual(MS).start();
        let queue = svc.queue();
        for _ in 0..3 {
            svc.timer().delay(HOUR).queue(queue).ended(move || forks.called(true)).start();
        }
        forks.verdict(queue.free(), "drop");
        assert_eq!(svc.stats().cancelled, 3);
    });
}
