//! libev, libevent and libuv, through the shims of `shims/`. A slot is a node of the library's own
//! type in an array. Which of them were there is found out when this program is compiled.

use super::{Service, Timers};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

/// A C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    Libev,
    Libevent,
    Libuv,
}

impl Library {
    pub fn name(self) -> &'static str {
        match self {
            Library::Libev => "libev",
            Library::Libevent => "libevent",
            Library::Libuv => "libuv",
        }
    }
}

/// `struct peer_api` of `shims/peer.h`.
#[repr(C)]
struct Api {
    make: unsafe extern "C" fn(usize, c_int) -> *mut c_void,
    share: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    start: unsafe extern "C" fn(*mut c_void, usize, u64),
    cancel: unsafe extern "C" fn(*mut c_void, usize),
    push_out: unsafe extern "C" fn(*mut c_void, usize, u64),
    turn: unsafe extern "C" fn(*mut c_void),
    inside: unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void),
    run: unsafe extern "C" fn(*mut c_void, Option<Tick>, Option<Fired>, *mut c_void),
}

/// Called once a millisecond by `Peer::run`; 0 ends the run.
pub type Tick = unsafe extern "C" fn(arg: *mut c_void) -> c_int;
/// Told of a slot whose timer fires.
pub type Fired = unsafe extern "C" fn(arg: *mut c_void, slot: usize);

unsafe extern "C" {
    #[cfg(have_libev)]
    static peer_libev: Api;
    #[cfg(have_libevent)]
    static peer_libevent: Api;
    #[cfg(have_libuv)]
    static peer_libuv: Api;
}

fn api(library: Library) -> Option<&'static Api> {
    // SAFETY: constants of the shims, of the type that `peer.h` gives them.
    unsafe {
        match library {
            #[cfg(have_libev)]
            Library::Libev => Some(&peer_libev),
            #[cfg(have_libevent)]
            Library::Libevent => Some(&peer_libevent),
            #[cfg(have_libuv)]
            Library::Libuv => Some(&peer_libuv),
            #[allow(unreachable_patterns)] // Reached where a library is missing.
            _ => None,
        }
    }
}

pub fn is_installed(library: Library) -> bool {
    api(library).is_some()
}

const THREADS: c_int = 1;
const PRECISE: c_int = 2;

/// A loop and its nodes, which live as long as the process.
pub struct Peer<'a> {
    api: &'static Api,
    peer: *mut c_void,
    of: PhantomData<&'a ()>,
}

impl Peer<'_> {
    fn with_flags(library: Library, slots: usize, flags: c_int) -> Peer<'static> {
        let api = api(library).expect("it is installed");
        // SAFETY: the shim's function may be called with any numbers.
        Peer { api, peer: unsafe { (api.make)(slots, flags) }, of: PhantomData }
    }

    pub fn new(library: Library, slots: usize) -> Peer<'static> {
        Peer::with_flags(library, slots, 0)
    }

    /// With the finest timers that the library has.
    pub fn precise(library: Library, slots: usize) -> Peer<'static> {
        Peer::with_flags(library, slots, PRECISE)
    }

    /// Runs `work` where the library's cached time is valid.
    pub fn inside<R>(self, work: impl FnOnce(Self) -> R) -> R {
        unsafe extern "C" fn body(job: *mut c_void) {
            // SAFETY: it is the job below.
            unsafe { (*job.cast::<&mut dyn FnMut()>())() }
        }
        let (api, peer) = (self.api, self.peer);
        let (mut work, mut result) = (Some((work, self)), None);
        let mut once = || {
            if let Some((work, peer)) = work.take() {
                result = Some(work(peer));
            }
        };
        let mut job: &mut dyn FnMut() = &mut once;
        // SAFETY: `body` is called before `inside` returns, with the job.
        unsafe { (api.inside)(peer, body, (&raw mut job).cast()) };
        result.expect("the body has run")
    }

    /// Runs the loop until `tick` answers 0; for ever without one.
    ///
    /// # Safety
    /// Both functions may be called with `arg`.
    pub unsafe fn run(self, tick: Option<Tick>, fired: Option<Fired>, arg: *mut c_void) {
        // SAFETY: the caller's promise.
        unsafe { (self.api.run)(self.peer, tick, fired, arg) };
    }

    /// The same loop, for a thread that runs it.
    pub fn running(&self) -> Running {
        Running(Peer { api: self.api, peer: self.peer, of: PhantomData })
    }

    /// What the shim knows it by, to start timers with inside of `run`.
    pub fn starter(&self) -> impl Fn(usize, u64) + use<> {
        let (start, peer) = (self.api.start, self.peer);
        // SAFETY: the peer lives as long as the process, and is used by one thread at a time.
        move |slot, delay_ns| unsafe { start(peer, slot, delay_ns) }
    }
}

impl Timers for Peer<'_> {
    const HANDLE: usize = 0;

    #[inline]
    fn start(&mut self, slot: usize, delay_ns: u64) {
        // SAFETY: the slot is one of the peer's.
        unsafe { (self.api.start)(self.peer, slot, delay_ns) }
    }

    #[inline]
    fn cancel(&mut self, slot: usize) {
        // SAFETY: the slot is one of the peer's, and has been started once.
        unsafe { (self.api.cancel)(self.peer, slot) }
    }

    #[inline]
    fn push_out(&mut self, slot: usize, delay_ns: u64) {
        // SAFETY: the slot is one of the peer's, and has been started once.
        unsafe { (self.api.push_out)(self.peer, slot, delay_ns) }
    }

    fn turn(&mut self) {
        // SAFETY: the peer lives.
        unsafe { (self.api.turn)(self.peer) }
    }

    fn advance(&mut self, _by_ns: u64) -> u64 {
        unreachable!("its clock is the machine's")
    }
}

/// A loop that locks, run by a thread of its own.
pub struct Locked {
    api: &'static Api,
    peer: *mut c_void,
}

// SAFETY: the library was told to lock.
unsafe impl Sync for Locked {}

impl Locked {
    pub fn new(library: Library) -> Locked {
        let peer = Peer::with_flags(library, 1, THREADS);
        let running = peer.running();
        std::thread::spawn(move || running.for_ever());
        Locked { api: peer.api, peer: peer.peer }
    }
}

/// A loop on its way to the thread that runs it. From then on only a locked one is used elsewhere.
pub struct Running(Peer<'static>);

// SAFETY: no thread uses the loop while it is on its way.
unsafe impl Send for Running {}

impl Running {
    pub fn for_ever(self) {
        // SAFETY: there is nothing to call.
        unsafe { self.0.run(None, None, std::ptr::null_mut()) };
    }
}

impl Service for Locked {
    type Local<'a> = Sharing<'a>;

    fn local(&self, slots: usize) -> Sharing<'_> {
        let share = self.api.share.expect("it can be used by several threads");
        // SAFETY: the peer lives as long as the process.
        let peer = unsafe { share(self.peer, slots) };
        Sharing(Peer { api: self.api, peer, of: PhantomData })
    }
}

/// A thread's nodes on a loop that another thread runs.
pub struct Sharing<'a>(Peer<'a>);

impl Timers for Sharing<'_> {
    const HANDLE: usize = 0;

    #[inline]
    fn start(&mut self, slot: usize, delay_ns: u64) {
        self.0.start(slot, delay_ns);
    }

    #[inline]
    fn cancel(&mut self, slot: usize) {
        self.0.cancel(slot);
    }

    #[inline]
    fn push_out(&mut self, slot: usize, delay_ns: u64) {
        self.0.push_out(slot, delay_ns);
    }

    /// The loop's thread serves the timers.
    fn turn(&mut self) {}

    fn advance(&mut self, _by_ns: u64) -> u64 {
        unreachable!("its clock is the machine's")
    }
}
