//! Shards that the test's own threads poll.

use crate::*;
use shardwheel::{Attached, Error, Outcome, Time};
use std::cell::RefCell;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Asks `poll(2)`, for which the standard library has no call.
#[allow(unsafe_code)]
pub(crate) fn readable(fd: BorrowedFd<'_>) -> bool {
    let mut ask = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, ours to write to.
    let answer = unsafe { libc::poll(&mut ask, 1, 0) };
    assert!(answer >= 0 && ask.revents & libc::POLLNVAL == 0, "{ask:?}");
    answer == 1
}

#[test]
fn a_budget_is_kept_and_none_is_no_budget() {
    let (service, shard) = manual();
    for _ in 0..10 {
        service.after(ms(1), |_| ()).unwrap();
    }
    service.advance(ms(1)).unwrap();
    assert_eq!(shard.poll_at_most(0), Err(Error::Invalid));
    assert_eq!(shard.poll_at_most(3), Ok(3));
    assert_eq!(shard.poll_at_most(usize::MAX), Ok(7));
    assert_eq!(shard.poll(), Ok(0));
    assert_eq!(shard.stats().unwrap().fired, 10);
}

#[test]
fn next_and_fd_say_when_to_poll() {
    let (service, shard) = manual();
    assert_eq!(shard.next(), Ok(None));
    let fd = shard.fd().unwrap();
    assert!(!readable(fd));
    let timer = service.after(ms(3), |_| ()).unwrap();
    assert_eq!(shard.next(), Ok(Some(Time::ZERO + ms(3))));
    assert!(!readable(fd));
    service.advance(ms(3)).unwrap();
    assert!(readable(fd));
    assert_eq!(shard.poll(), Ok(1));
    assert!(!readable(fd));
    assert_eq!(service.remaining(timer), Ok(None));
    // The descriptor stays open when the service ends, with the shard that lent it.
    drop(service);
    readable(fd);
    assert_eq!(shard.fd().unwrap_err(), Error::Stopped);
    assert_eq!(shard.next(), Err(Error::Stopped));
    assert_eq!(shard.poll(), Err(Error::Stopped));
    assert_eq!(shard.stats().unwrap().fired, 1);
}

#[test]
fn on_the_real_clock_a_host_sleeps_until_next() {
    let service = Service::builder().shards(1).driven().build().unwrap();
    let shard = service.shard(0).unwrap();
    let count = Count::default();
    let add = count.clone();
    service.after(ms(5), move |_| add.add()).unwrap();
    while count.get() == 0 {
        let next = shard.next().unwrap().expect("it is armed");
        thread::sleep(next - service.now());
        shard.poll().unwrap();
    }
}

#[test]
fn attached_shared() {
    let service = Service::builder().shards(2).driven().manual_clock().build().unwrap();
    let attached = service.shard(1).unwrap().attach().unwrap();
    assert_eq!(attached.index(), 1);
    let mine = service.after(ms(1), |_| ()).unwrap();
    assert_eq!(mine.shard(), 1);
    let (timers, shard) = (service.timers(), service.shard(1).unwrap());
    thread::spawn(move || {
        assert_eq!(shard.poll(), Err(Error::Busy));
        assert_eq!(shard.attach().unwrap_err(), Error::Busy);
        assert_eq!(timers.cancel(mine), Ok(Outcome::Done));
        timers.timer().shard(1).delay(ms(1)).start_once(|_| ()).unwrap();
    })
    .join()
    .unwrap();
    service.advance(ms(1)).unwrap();
    assert_eq!(attached.poll(), Ok(1));
    drop(attached);
    let shard = service.shard(1).unwrap();
    thread::spawn(move || assert_eq!(shard.poll(), Ok(0))).join().unwrap();
}

#[test]
fn attached_exclusive() {
    let service = Service::builder().shards(2).driven().manual_clock().build().unwrap();
    let shard = service.shard(0).unwrap();
    let attached = shard.attach_exclusive().unwrap();
    let mine = service.after(ms(1), |_| ()).unwrap();
    assert_eq!(mine.shard(), 0);
    let others = |expected| {
        let timers = service.timers();
        let all = move || {
            let dropped = Count::default();
            let guard = dropped.guard();
            let start = timers.timer().shard(0).delay(hour()).start_once(move |_| drop(guard));
            assert_eq!(start.err(), expected);
            assert_eq!(dropped.get(), u64::from(expected.is_some()));
            assert_eq!(timers.reset(mine, ms(1)).err(), expected);
            assert_eq!(timers.remaining(mine), Ok(Some(ms(1))), "for every thread");
            assert_eq!(timers.cancel(mine).err(), expected);
            // It avoids the exclusive shard.
            timers.after(hour(), |_| ()).unwrap();
        };
        thread::spawn(all).join().unwrap();
    };
    others(Some(Error::Busy));
    // Again, and shared: the guards are for the same attachment.
    let again = attached.attach().unwrap();
    others(None);
    assert_eq!(again.detach(), Ok(()));
    assert_eq!(attached.detach(), Err(Error::Invalid));
}

#[test]
fn a_guard_that_is_dropped_in_a_callback_leaves_the_thread_attached() {
    let (service, shard) = manual();
    thread_local! {
        static KEPT: RefCell<Option<Attached>> = const { RefCell::new(None) };
    }
    thread::scope(|scope| {
        scope
            .spawn(|| {
                KEPT.set(Some(shard.attach().unwrap()));
                service.after(ms(1), |_| drop(KEPT.take())).unwrap();
                assert_eq!(step(&service, ms(1)), 1);
                assert_eq!(service.panics(), 0);
                let shard = shard.clone();
                thread::spawn(move || assert_eq!(shard.poll(), Err(Error::Busy))).join().unwrap();
            })
            .join()
            .unwrap();
    });
    // Until it ends.
    eventually("the thread is gone", || shard.poll() == Ok(0));
}

#[test]
fn a_threaded_service_is_not_polled() {
    let service = threaded(1);
    let shard = service.shard(0).unwrap();
    assert_eq!(shard.poll(), Err(Error::Unsupported));
    assert_eq!(shard.attach().unwrap_err(), Error::Unsupported);
    assert_eq!(shard.next(), Err(Error::Unsupported));
    assert_eq!(shard.fd().unwrap_err(), Error::Unsupported);
    assert_eq!(service.advance(ms(1)), Err(Error::Unsupported));
    assert_eq!(service.shard(1).unwrap_err(), Error::Invalid);
    assert_eq!(service.shards().count(), 1);
    assert_eq!(shard.stats().unwrap().pending, 0);
}

#[test]
fn polls_do_not_nest() {
    let (service, shard) = manual();
    let (inner, seen) = (shard.clone(), Count::default());
    let add = seen.clone();
    service
        .after(ms(1), move |_| {
            assert_eq!(inner.poll(), Err(Error::Busy));
            assert_eq!(inner.attach().unwrap_err(), Error::Busy);
            add.add();
        })
        .unwrap();
    assert_eq!(step(&service, ms(1)), 1);
    assert_eq!((seen.get(), service.panics()), (1, 0));
}
