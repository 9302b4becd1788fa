//! A thread that has used a service before, and so has the short ways in, is answered as one that has
//! not, whatever has become of the service, its shards and other threads meanwhile.

use crate::Random;
use crate::support::*;
use std::cell::RefCell;
use std::collections::HashMap;

/// Uses the service, so that the calling thread has all short ways that there are.
fn warm(door: Door, log: Log) {
    for _ in 0..3 {
        let timer = door.start(HOUR, log);
        assert_eq!(door.reset(timer, 2 * HOUR), SW_OK);
        assert_eq!(door.cancel(timer), SW_OK);
    }
}

#[test]
fn q5_threads_that_end_leave_nothing_to_the_next() {
    let services: Vec<_> = (0..3).map(|_| Setup::manual(MS).start()).collect();
    let log = Log::new();
    for round in 0..60 {
        let doors: Vec<_> = services.iter().map(|svc| svc.door()).collect();
        let how = [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE][round % 2];
        // One thread after the other, so that each gets the stack of the last.
        let kept = std::thread::spawn(move || {
            for door in &doors {
                warm(*door, log);
            }
            assert_eq!(doors[round % 3].attach(0, how), SW_OK);
            warm(doors[round % 3], log);
            doors.iter().map(|door| door.start(10 * MS, log)).collect::<Vec<_>>()
        })
        .join()
        .unwrap();
        for (svc, timer) in services.iter().zip(kept) {
            assert_eq!(svc.reset(timer, 20 * MS), SW_OK);
            assert_eq!(svc.attach(0, how), SW_OK, "nobody is attached any more");
            assert_eq!(svc.detach(0), SW_OK);
            assert_eq!(svc.run(19 * MS), 0);
            assert_eq!(svc.run(MS), 1);
            assert_eq!(svc.next(), SW_NEVER);
        }
    }
}

#[test]
fn c7_a_service_in_the_place_of_another_is_another() {
    let log = Log::new();
    let mut stale = Vec::new();
    for _ in 0..50 {
        let svc = Setup::manual(MS).start();
        for &timer in &stale {
            assert!([SW_NOT_FOUND, SW_INVALID].contains(&svc.cancel(timer)));
            assert!([SW_NOT_FOUND, SW_INVALID].contains(&svc.reset(timer, HOUR)));
        }
        warm(svc.door(), log);
        stale.push(svc.start(MS, log));
        assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
        warm(svc.door(), log);
        stale.push(svc.start(MS, log));
        assert_eq!(svc.run(MS), 2);
        assert_eq!(svc.stop(), SW_OK);
        assert_eq!(svc.try_start(MS, log), Err(SW_STOPPED));
        assert_eq!(svc.cancel(stale[0]), SW_STOPPED);
        assert_eq!(svc.reset(stale[0], MS), SW_STOPPED);
    }
}

/// Uses a service as its thread ends.
struct AtTheEnd(Door, Log, sw_timer);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        warm(self.0, self.1);
        assert_eq!(self.0.cancel(self.2), SW_OK);
        self.0.start(MS, self.1);
    }
}

thread_local! {
    static AT_THE_END: RefCell<Vec<AtTheEnd>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn s2_a_thread_uses_the_service_to_its_very_end() {
    let svc = Setup::manual(MS).start();
    let (door, log) = (svc.door(), Log::new());
    for round in 1..=20 {
        let first = round % 2 == 0;
        std::thread::spawn(move || {
            // What is used first is dropped last.
            AT_THE_END.with_borrow_mut(|list| list.reserve(2));
            if !first {
                warm(door, log);
            }
            let kept = door.start(HOUR, log);
            AT_THE_END.with_borrow_mut(|list| list.push(AtTheEnd(door, log, kept)));
            assert_eq!(door.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
            warm(door, log);
        })
        .join()
        .unwrap();
        assert_eq!(svc.run(MS), 1);
        assert_eq!((log.count(), svc.pending()), (round, 0));
    }
}

#[test]
fn q5_an_exclusive_owner_keeps_out_who_has_been_here_before() {
    let svc = Setup::manual(MS).start();
    let (door, log) = (svc.door(), Log::new());
    warm(door, log);
    let timer = svc.start(HOUR, log);
    for _ in 0..3 {
        std::thread::spawn(move || {
            assert_eq!(door.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
            warm(door, log);
            std::thread::spawn(move || {
                assert_eq!(door.try_start(MS, log), Err(SW_BUSY));
            })
            .join()
            .unwrap();
        })
        .join()
        .unwrap();
        warm(door, log);
        let (asks, asked) = std::sync::mpsc::channel();
        let (ends, end) = std::sync::mpsc::channel::<()>();
        let owner = std::thread::spawn(move || {
            assert_eq!(door.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
            asks.send(()).unwrap();
            end.recv().unwrap();
            assert_eq!(door.attach(0, SW_ATTACH_SHARED), SW_OK);
            asks.send(()).unwrap();
            end.recv().unwrap();
        });
        asked.recv().unwrap();
        assert_eq!(door.try_start(MS, log), Err(SW_BUSY));
        assert_eq!(door.cancel(timer), SW_BUSY);
        assert_eq!(door.reset(timer, HOUR), SW_BUSY);
        ends.send(()).unwrap();
        asked.recv().unwrap();
        warm(door, log);
        assert_eq!(door.reset(timer, HOUR), SW_OK);
        ends.send(()).unwrap();
        owner.join().unwrap();
    }
    assert_eq!(svc.cancel(timer), SW_OK);
}

/// A timer as the test knows it.
#[derive(Clone, Copy)]
struct Known {
    deadline: u64,
    tick: u64,
    /// Place in the order of arming; none of those that were reset, or armed too late.
    order: Option<usize>,
    late: bool,
}

#[test]
fn f1_t6_at_random_every_call_does_what_it_says() {
    const MOST: usize = 150;
    for seed in 1..=20 {
        let mut random = Random(seed * 0x9E37_79B9);
        let tick_ns = [MS, 1_234_567, 7 * US, 1 << 31, HOUR][seed as usize % 5];
        let svc = Setup::manual(tick_ns).max_timers(MOST as u64).start();
        let (mut live, mut order) = (HashMap::<sw_timer, Known>::new(), 0);
        let mut all = Vec::new();
        let log = Log::new();
        if seed % 3 == 0 {
            svc.advance(1 << random.below(63));
        }
        let known = |deadline: u64, now: u64, order| {
            let late = deadline <= now;
            let up = deadline.div_ceil(tick_ns);
            let tick = if late { up.min(now / tick_ns) } else { up };
            Known { deadline, tick, late, order }
        };
        for step in 0..1_500 {
            let now = svc.now();
            let span = [3, 40, 3_000][random.below(3) as usize] * tick_ns;
            let deadline = (now + random.below(span)).saturating_sub(random.below(2) * tick_ns);
            match random.below(20) {
                0..6 => {
                    let started = match random.below(4) {
                        0 => svc.timer().at(deadline).log(log).try_start().map(|one| vec![one]),
                        1 => {
                            let count = 1 + random.below(4) as usize;
                            let specs: Vec<_> = (0..count)
                                .map(|_| {
                                    let timer = svc.timer().at(deadline);
                                    timer.log(log).with(|spec| spec.drop = None).spec()
                                })
                                .collect();
                            svc.start_batch(&specs)
                        }
                        _ if deadline >= now => {
                            svc.try_start(deadline - now, log).map(|one| vec![one])
                        }
                        _ => {
                            if live.len() < MOST {
                                Ok(vec![svc.start_at(deadline, log)])
                            } else {
                                Err(SW_FULL)
                            }
                        }
                    };
                    match started {
                        Ok(timers) => {
                            for timer in timers {
                                order += 1;
                                let new = known(deadline, now, Some(order));
                                assert!(live.insert(timer, new).is_none());
                                all.push(timer);
                            }
                            assert!(live.len() <= MOST);
                        }
                        Err(error) => {
                            assert_eq!(error, SW_FULL);
                            assert!(live.len() + 4 > MOST, "{}", live.len());
                        }
                    }
                }
                6..9 if !all.is_empty() => {
                    let back = 1 + random.below(3.min(all.len() as u64)) as usize;
                    let timer = all[all.len() - back];
                    let there = live.remove(&timer).is_some();
                    let answer = if there { SW_OK } else { SW_NOT_FOUND };
                    assert_eq!(svc.cancel(timer), answer, "seed {seed}, step {step}");
                }
                9..14 if !all.is_empty() => {
                    let far = (all.len() as u64).min(100);
                    let timer = all[all.len() - 1 - random.below(far) as usize];
                    match live.get_mut(&timer) {
                        Some(one) => {
                            *one = known(deadline, now, None);
                            assert_eq!(svc.reset_at(timer, deadline), SW_OK);
                        }
                        None => assert_eq!(svc.reset_at(timer, deadline), SW_NOT_FOUND),
                    }
                }
                14 => svc.advance(random.below(5) * tick_ns / 2),
                15 => svc.advance(random.below(span)),
                16 => {
                    let how = [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE][random.below(2) as usize];
                    assert_eq!(svc.attach(0, how), SW_OK);
                }
                17 => {
                    let answer = svc.detach(0);
                    assert!(answer == SW_OK || answer == SW_INVALID);
                }
                18 => {
                    // SAFETY: the service is alive.
                    assert_eq!(unsafe { sw_service_trim(svc.raw()) }, SW_OK);
                }
                _ => {
                    let now = svc.now();
                    let budget = [0, 0, 1 + random.below(5) as usize][random.below(3) as usize];
                    let due = live.values().filter(|one| one.tick <= now / tick_ns).count();
                    let min = live.values().map(|one| one.tick).min();
                    match min {
                        Some(tick) => assert!(svc.next() <= (tick * tick_ns).max(now)),
                        None => assert_eq!(svc.next(), SW_NEVER),
                    }
                    if due > 0 {
                        assert!(svc.readable());
                    }
                    let fired = svc.poll_budget(budget);
                    let want = if budget == 0 { due } else { due.min(budget) };
                    assert_eq!(fired, want, "seed {seed}, step {step}");
                    let mut last = (0, 0);
                    for fire in log.take() {
                        let one = live.remove(&fire.timer).expect("it lives");
                        assert_eq!(fire.deadline, one.deadline);
                        if one.late {
                            continue;
                        }
                        assert!(one.tick >= last.0, "seed {seed}, step {step}: by tick");
                        if one.tick > last.0 {
                            last = (one.tick, 0);
                        }
                        if let Some(order) = one.order {
                            assert!(order > last.1, "seed {seed}, step {step}: by arming");
                            last.1 = order;
                        }
                    }
                    assert_eq!(svc.pending(), live.len() as u64, "seed {seed}, step {step}");
                    if budget == 0 {
                        assert!(!svc.readable(), "seed {seed}, step {step}");
                    }
                }
            }
        }
        _ = svc.detach(0);
    }
}
