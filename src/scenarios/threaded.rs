//! Services with threads of their own.

use super::{Life, Service, at, count, explore};
use crate::config::Mode;
use crate::status::{Error, Outcome};
use crate::types::SHARD_ANY;
use shuttle::thread::{JoinHandle, yield_now};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn join(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Arms a timer on each shard, due at once: one on the own, one across.
fn arms_across(service: &Service, _: &Life, _: u64) {
    for shard in 0..2 {
        match service.start(at(0, shard), None) {
            Ok(_) | Err(Error::Stopped) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Starts, of which some fire, and arm on both shards; some are pushed out and cancelled, some pulled in, and
/// one is cancelled when it is due.
fn host(service: &Arc<Service>, number: u64) {
    for nth in 0..3 {
        let shard = [0, 1, SHARD_ANY][((number + nth) % 3) as usize];
        match (number + nth) % 3 {
            0 => {
                service.start(at(0, shard), Some(arms_across)).unwrap();
            }
            1 => {
                let (timer, life) = service.start(at(1 << 20, shard), None).unwrap();
                service.reset_at(timer, (1 << 21) * super::TICK).unwrap();
                service.end(timer, &life, nth == 1).unwrap();
            }
            _ => {
                let (timer, _) = service.start(at(1 << 20, shard), None).unwrap();
                assert_eq!(service.reset_at(timer, 0), Ok(Outcome::Done));
            }
        }
    }
    let (timer, life) = service.start(at(0, number as u32 % 2), None).unwrap();
    if service.end(timer, &life, false) == Ok(Outcome::Done) {
        service.won.fetch_add(1, Ordering::SeqCst);
    }
}

/// Nothing but the ring of a start, a pull-in or a callback's start on the other shard wakes the two
/// wheels; everything that is due comes. A wake-up that is lost ends in a deadlock.
///
/// Found: `Alarm::sleep` without its look at the inboxes after it has armed; `lower` that does not ring;
/// `reset` to an earlier instant without its reminder.
#[test]
fn due_timers_come_by_their_own_ring() {
    explore(|| {
        let service = Service::new(Mode::Threaded, 2, 200);
        let workers = service.workers();
        join((0..3).map(|number| service.thread(move |service| host(service, number))).collect());
        // Three of each kind; those that fire of themselves arm two more each.
        let sure = 3 + 2 * 3 + 3 + 3 - service.won.load(Ordering::SeqCst);
        while service.stats(SHARD_ANY).unwrap().fired < sure {
            // Nobody else has anything to do but the wheels, so if they sleep this never ends.
            assert!(!asleep(&service), "a timer is due and both wheels sleep");
            yield_now();
        }
        assert_eq!(service.halt(), Ok(0));
        join(workers);
        service.judge();
    });
}

/// Do both wheels sleep, with nothing rung?
fn asleep(service: &Service) -> bool {
    service
        .shards()
        .iter()
        .all(|shard| shard.alarm.armed() != crate::alarm::AWAKE && !shard.anything_waits())
        && service.shards().iter().any(|shard| shard.pending() > 0)
}

/// The service stops in the middle of it all: each timer that was accepted fires, is cancelled or is handed
/// back, and no start is lost between the refusal and the hand-back.
///
/// Found: a `settle` that does not wait; a gate that is entered without a look at it.
#[test]
fn stop_in_the_middle() {
    explore(|| {
        let service = Service::new(Mode::Threaded, 2, 200);
        let workers = service.workers();
        let hosts = (0..3)
            .map(|number| {
                service.thread(move |service| {
                    for nth in 0..4 {
                        let shard = ((number + nth) % 2) as u32;
                        let tick = [0, 1 << 20][nth as usize % 2];
                        let act = if tick == 0 { Some(arms_across as _) } else { None };
                        let Ok((timer, life)) = service.start(at(tick, shard), act) else { return };
                        if tick != 0 && service.reset_after(timer, 0).is_err() {
                            return;
                        }
                        if nth == 2 {
                            let _ = service.end(timer, &life, false);
                        }
                    }
                })
            })
            .collect();
        let stopper = service.thread(|service| {
            service.forward(1);
            assert!(service.halt().is_ok());
        });
        join(hosts);
        join(vec![stopper]);
        join(workers);
        service.judge();
    });
}

/// Two threads take from a queue what two wheels deliver, while others cancel, withdraw and, at the end,
/// free the queue.
///
/// Found: `redeem` that hands an event out though its swap has failed.
#[test]
fn a_queue_between_wheels_and_takers() {
    explore(|| {
        let service = Service::new(Mode::Threaded, 2, 200);
        let workers = service.workers();
        let queue = service.queue_new().unwrap() as usize;
        let mut threads: Vec<_> = (0..2_u32)
            .map(|shard| {
                service.thread(move |service| {
                    for nth in 0..4 {
                        let spec = crate::types::Spec { queue: queue as *const _, ..at(0, shard) };
                        let (timer, life) = service.start(spec, None).unwrap();
                        match nth {
                            1 | 3 => {
                                yield_now();
                                drop(service.end(timer, &life, false).unwrap());
                            }
                            2 => drop(service.reset_at(timer, 0).unwrap()),
                            _ => {}
                        }
                    }
                })
            })
            .collect();
        threads.extend((0..2).map(|_| {
            service.thread(move |_| {
                for _ in 0..4 {
                    take(queue);
                    yield_now();
                }
            })
        }));
        join(threads);
        // SAFETY: nobody else uses it any more.
        unsafe { crate::engine::Engine::queue_free(queue as *const _).unwrap() };
        for life in service.lives.lock().unwrap().iter() {
            if [&life.cancelled, &life.taken].map(count) == [0, 0] {
                // By the queue's end.
                super::bump(&life.cancelled);
            }
        }
        assert_eq!(service.halt(), Ok(0));
        join(workers);
        service.judge();
    });
}

fn take(queue: usize) {
    let mut events = Vec::<crate::types::Event>::with_capacity(3);
    // SAFETY: the queue is freed after this thread has ended; there is room for three.
    unsafe {
        let taken =
            crate::engine::Engine::queue_poll(queue as *const _, events.as_mut_ptr(), 3).unwrap();
        events.set_len(taken);
    }
    for event in events {
        // SAFETY: its life, which the service keeps.
        super::bump(unsafe { &(*event.ctx.cast::<Life>()).taken });
    }
}

/// Waits for the end of timers that fire at the same time: from outside, and from callbacks of both shards,
/// each for one of the other. None is left waiting; a wait that would close a circle is refused.
///
/// Found: `end` that does not wake who waits; `note_wait` that always answers that there is no circle.
#[test]
fn waits_from_everywhere() {
    explore(|| {
        let service = Service::new(Mode::Threaded, 2, 200);
        let workers = service.workers();
        let timers: Arc<Vec<_>> = Arc::new(
            (0..4).map(|nth| service.start(at(1, nth % 2), Some(waits)).unwrap()).collect(),
        );
        for pair in timers.chunks(2) {
            pair[0].1.peer.store(pair[1].0, Ordering::SeqCst);
            pair[1].1.peer.store(pair[0].0, Ordering::SeqCst);
        }
        service.forward(1);
        let threads = (0..2)
            .map(|number| {
                let timers = timers.clone();
                service.thread(move |service| {
                    for (timer, life) in timers.iter().skip(number * 2).take(2) {
                        service.end(*timer, life, true).unwrap();
                    }
                })
            })
            .collect();
        join(threads);
        while service.stats(SHARD_ANY).unwrap().pending > 0 {
            yield_now();
        }
        assert_eq!(service.halt(), Ok(0));
        join(workers);
        service.judge();
    });
}

/// Waits for its peer, which runs on the other shard or has yet to.
fn waits(service: &Service, life: &Life, _: u64) {
    let peer = life.peer.load(Ordering::SeqCst);
    let lives = service.lives.lock().unwrap().clone();
    match service.cancel_wait(peer) {
        Ok(Outcome::Done) => {
            let peer = lives.iter().find(|other| other.handle.load(Ordering::SeqCst) == peer);
            super::bump(&peer.expect("started").cancelled);
        }
        Ok(_) | Err(Error::WouldDeadlock) => {}
        Err(error) => panic!("{error:?}"),
    }
}
