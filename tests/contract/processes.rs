//! S5, S2: the process forks, or ends, inside a function that the library calls.

use crate::support::*;
use std::sync::atomic::{AtomicPtr, Ordering};

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
