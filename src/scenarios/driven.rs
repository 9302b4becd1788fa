//! Services whose shards the host's threads poll.

use super::{Service, at, explore};
use crate::config::Mode;
use crate::status::Error;
use crate::types::SHARD_ANY;
use shuttle::thread::yield_now;

/// Two threads poll both shards, one of them attached in between, and two start, push out, pull in and
/// cancel; then all that is due comes, once.
///
/// Found: `own` that does not compare; a hand-over before the word is published.
#[test]
fn polls_and_attachments_change_hands() {
    explore(|| {
        let service = Service::new(Mode::Driven, 2, 200);
        let mut threads = Vec::new();
        for poller in 0..2_u32 {
            threads.push(service.thread(move |service| {
                for round in 0..3 {
                    let attached = round == 1 && service.attach(poller, poller == 0) == Ok(());
                    for shard in 0..2 {
                        match service.poll(shard, 2) {
                            Ok(_) | Err(Error::Busy) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                    if attached {
                        service.detach(poller).unwrap();
                    }
                }
            }));
        }
        for number in 0..2_u64 {
            threads.push(service.thread(move |service| {
                for nth in 0..4 {
                    let shard = ((number + nth) % 2) as u32;
                    let Ok((timer, life)) = service.start(at(1 + nth, shard), None) else {
                        continue;
                    };
                    match nth {
                        0 => drop(service.end(timer, &life, false)),
                        1 => drop(service.reset_at(timer, 0)),
                        2 => drop(service.reset_after(timer, super::TICK)),
                        _ => service.forward(1),
                    }
                }
            }));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        service.forward(10);
        for shard in 0..2 {
            service.poll(shard, 0).unwrap();
        }
        assert_eq!(service.stats(SHARD_ANY).unwrap().pending, 0);
        assert_eq!(service.halt(), Ok(0));
        service.judge();
    });
}

/// Room for six, which threads take two at a time: three threads start, cancel and fire; who is refused finds
/// room as soon as somebody has made it, what others hold unused included, and there are never more than six.
///
/// Found: `collect_credits` that forgets other ports; a cancel that gives its credit back twice; a
/// `settle` that does not wait.
#[test]
fn room_goes_round() {
    explore(|| {
        let service = Service::new(Mode::Driven, 1, 6);
        let mut threads: Vec<_> = (0..3)
            .map(|number| {
                service.resident(move |service| {
                    for nth in 0..3 {
                        let tick = if number == 0 { 0 } else { 1 << 20 };
                        match service.start(at(tick, 0), None) {
                            Ok((timer, life)) if tick != 0 || nth == 1 => {
                                drop(service.end(timer, &life, false).unwrap());
                            }
                            Ok(_) => {}
                            Err(error) => assert_eq!(error, Error::Full),
                        }
                        let live = service.stats(SHARD_ANY).unwrap().pending;
                        assert!(live <= 6, "{live} live");
                    }
                })
            })
            .collect();
        threads.push(service.resident(|service| {
            for _ in 0..3 {
                match service.poll(0, 0) {
                    Ok(_) | Err(Error::Busy) => yield_now(),
                    Err(error) => panic!("{error:?}"),
                }
            }
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        service.poll(0, 0).unwrap();
        // All is over, so there is room for six again.
        for _ in 0..6 {
            service.start(at(1 << 20, 0), None).unwrap();
        }
        assert_eq!(service.start(at(1, 0), None).map(|_| ()), Err(Error::Full));
        assert_eq!(service.halt(), Ok(6));
        service.judge();
    });
}
