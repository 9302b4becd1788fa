//! Q5: threads that own shards.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

type Job = Box<dyn FnOnce(Door) + Send>;

/// A thread that does what it is told, one thing after the other, until it is dropped.
struct Owner {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Owner {
    fn new(svc: &Svc) -> Owner {
        let (jobs, list) = mpsc::channel::<Job>();
        let door = svc.door();
        let thread = std::thread::spawn(move || list.into_iter().for_each(|job| job(door)));
        Owner { jobs: Some(jobs), thread: Some(thread) }
    }

    /// Runs it over there and waits for the answer.
    #[track_caller]
    fn does<T: Send + 'static>(&self, call: impl FnOnce(Door) -> T + Send + 'static) -> T {
        let (answer, wait) = mpsc::channel();
        let job = Box::new(move |door| _ = answer.send(call(door)));
        self.jobs.as_ref().unwrap().send(job).unwrap();
        wait.recv_timeout(Duration::from_secs(30)).expect("the owner's call failed")
    }

    fn attaches(&self, shard: u32, how: u32) {
        assert_eq!(self.does(move |door| door.attach(shard, how)), SW_OK);
    }

    /// Ends the thread.
    fn ends(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn q5_polled_by_its_owner_alone() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
        svc.start(0, log);
        let owner = Owner::new(&svc);
        owner.attaches(0, how);
        assert_eq!(svc.try_poll(0, 0), Err(SW_BUSY));
        assert_eq!(svc.try_poll(0, 1), Err(SW_BUSY));
        assert_eq!(owner.does(|door| door.try_poll(0, 0)), Ok(1));
        assert_eq!(owner.does(|door| door.detach(0)), SW_OK);
        assert_eq!(svc.try_poll(0, 0), Ok(0));
        assert_eq!(owner.does(|door| door.try_poll(0, 0)), Ok(0), "anybody's again");
    }
}

#[test]
fn q5_shared_any_thread_still_starts_cancels_and_resets() {
    let svc = Setup::manual(MS).start();
    let owner = Owner::new(&svc);
    owner.attaches(0, SW_ATTACH_SHARED);
    let log = Log::new();
    let mine = svc.start(HOUR, log);
    let theirs = owner.does(move |door| door.start(HOUR, log));
    for timer in [mine, theirs] {
        assert_eq!(svc.reset(timer, 2 * HOUR), SW_OK);
        assert_eq!(svc.reset_at(timer, 5 * MS), SW_OK);
        assert_eq!(owner.does(move |door| door.reset(timer, 3 * MS)), SW_OK);
        assert_eq!(svc.remaining(timer), Ok(3 * MS));
    }
    assert_eq!(svc.cancel(theirs), SW_OK);
    assert_eq!(owner.does(move |door| door.cancel(mine)), SW_OK);
    svc.start(MS, log);
    owner.does(move |door| door.start(MS, log));
    let batch = [svc.timer().delay(MS).log(log).spec(); 2];
    svc.start_batch(&batch).unwrap();
    svc.advance(MS);
    assert_eq!(owner.does(|door| door.poll()), 4);
}

#[test]
fn q5_a_queue_is_freed_beside_an_exclusive_owner_who_has_none_of_its_timers() {
    let svc = Setup::manual(MS).shards(2).start();
    let log = Log::new();
    let (idle, mine, theirs) = (svc.queue(), svc.queue(), svc.queue());
    let timer = |queue, shard| svc.timer().delay(MS).queue(queue).shard(shard).log(log);
    timer(mine, 1).start();
    timer(theirs, 0).start();
    timer(theirs, 1).start();
    let owner = Owner::new(&svc);
    owner.attaches(0, SW_ATTACH_EXCLUSIVE);
    assert_eq!(idle.free(), SW_OK);
    assert_eq!(mine.free(), SW_OK);
    assert_eq!((log.dropped(), svc.pending()), (1, 2));
    assert_eq!(theirs.free(), SW_BUSY);
    assert_eq!((log.dropped(), svc.pending()), (1, 2), "and changes nothing");
    svc.advance(MS);
    assert_eq!(owner.does(|door| door.poll()), 1);
    assert_eq!(theirs.free(), SW_BUSY, "its event waits");
    assert_eq!(theirs.poll(9).len(), 1);
    assert_eq!(theirs.free(), SW_OK);
    assert_eq!((log.dropped(), svc.pending()), (2, 0));
}

#[test]
fn s2_after_stop_a_start_on_any_shard_is_refused_as_stopped() {
    let svc = Setup::manual(MS).shards(2).start();
    let log = Log::new();
    let owners = [0, 1].map(|shard| {
        let owner = Owner::new(&svc);
        owner.attaches(shard, SW_ATTACH_EXCLUSIVE);
        owner
    });
    assert_eq!(svc.try_start(MS, log), Err(SW_BUSY));
    svc.stop();
    assert_eq!(svc.try_start(MS, log), Err(SW_STOPPED));
    assert_eq!(svc.timer().log(log).try_start(), Err(SW_STOPPED));
    assert_eq!(svc.start_batch(&[svc.timer().log(log).spec()]), Err(SW_STOPPED));
    drop(owners);
}

#[test]
fn q5_exclusive_calls_from_others_are_busy_and_change_nothing() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let before = svc.start(HOUR, log);
    let owner = Owner::new(&svc);
    owner.attaches(0, SW_ATTACH_EXCLUSIVE);
    let theirs = owner.does(move |door| door.start(HOUR, log));
    let stats = svc.stats();
    let none = std::ptr::null_mut();
    let call = Some(Log::callback as _);
    // SAFETY: a live service, a log.
    unsafe {
        assert_eq!(sw_timer_start(svc.raw(), 0, call, log.ctx(), none), SW_BUSY);
        assert_eq!(sw_timer_start_at(svc.raw(), 0, call, log.ctx(), none), SW_BUSY);
        assert_eq!(sw_timer_start_every(svc.raw(), MS, call, log.ctx(), none), SW_BUSY);
    }
    assert_eq!(svc.timer().shard(0).log(log).try_start(), Err(SW_BUSY));
    assert_eq!(svc.start_batch(&[svc.timer().shard(0).log(log).spec()]), Err(SW_BUSY));
    assert_eq!(log.dropped(), 2);
    for timer in [before, theirs] {
        assert_eq!(svc.cancel(timer), SW_BUSY);
        assert_eq!(svc.cancel_wait(timer), SW_BUSY);
        assert_eq!(svc.reset(timer, 0), SW_BUSY);
        assert_eq!(svc.reset_at(timer, 0), SW_BUSY);
        assert_eq!(svc.remaining(timer), Ok(HOUR), "remaining is for every thread");
    }
    assert_eq!(svc.try_poll(0, 0), Err(SW_BUSY));
    assert_eq!(svc.attach(0, SW_ATTACH_SHARED), SW_BUSY);
    assert_eq!(svc.detach(0), SW_BUSY);
    let now = svc.stats();
    assert_eq!((now.pending, now.started, now.cancelled), (2, stats.started, 0));
    // For every thread: next, fd, the clock, stats.
    assert!(svc.next() <= HOUR);
    assert!(svc.fd_of(0).is_ok());
    svc.advance(MS);
    assert_eq!(svc.now(), MS);
    assert_eq!(svc.remaining(before), Ok(HOUR - MS));
    // The owner's calls go on, on old and new timers.
    assert_eq!(owner.does(move |door| door.cancel(before)), SW_OK);
    assert_eq!(owner.does(move |door| door.reset(theirs, MS)), SW_OK);
    svc.advance(MS);
    assert_eq!(owner.does(|door| door.poll()), 1);
    assert_eq!(owner.does(move |door| door.cancel(theirs)), SW_NOT_FOUND);
    // Free to all again.
    let last = owner.does(move |door| door.start(HOUR, log));
    assert_eq!(owner.does(|door| door.detach(0)), SW_OK);
    assert_eq!(svc.cancel(last), SW_OK);
}

#[test]
fn q5_exclusive_the_owners_timers_obey_every_rule() {
    // The same walk as on a shard that nobody owns, with a mirror that counts.
    let svc = Setup::manual(MS).max_timers(500).start();
    let log = Log::new();
    assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK);
    let mut random = crate::Random(77);
    let mut alive: std::collections::HashMap<sw_timer, u64> = Default::default();
    let (mut started, mut cancelled) = (0, 0);
    for _ in 0..20_000 {
        let some = alive.keys().next().copied();
        match (random.below(8), some) {
            (0..3, _) => {
                let range = 1 << random.below(36);
                let deadline = svc.now() + random.below(range);
                match svc.timer().at(deadline).log(log).try_start() {
                    Ok(timer) => {
                        started += 1;
                        assert!(alive.insert(timer, deadline).is_none());
                    }
                    Err(status) => assert_eq!((status, alive.len()), (SW_FULL, 500)),
                }
            }
            (3 | 4, Some(timer)) => {
                assert_eq!(svc.cancel(timer), SW_OK);
                assert_eq!(svc.cancel(timer), SW_NOT_FOUND);
                alive.remove(&timer);
                cancelled += 1;
            }
            (5, Some(timer)) => {
                let range = 1 << random.below(36);
                let deadline = svc.now() + random.below(range);
                assert_eq!(svc.reset_at(timer, deadline), SW_OK);
                alive.insert(timer, deadline);
            }
            _ => {
                let range = 1 << random.below(28);
                svc.advance(random.below(range));
                svc.poll();
                for fire in log.take() {
                    assert_eq!(alive.remove(&fire.timer), Some(fire.deadline));
                }
                // None is left that is due.
                let now = svc.now();
                assert!(alive.values().all(|&at| crate::due(MS, at).unwrap() > now));
            }
        }
    }
    let stats = svc.stats();
    assert_eq!((stats.started, stats.cancelled), (started, cancelled));
    assert_eq!(stats.pending, alive.len() as u64);
}

#[test]
fn q5_stop_free_and_stats_still_work_for_others() {
    for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
        let svc = Setup::manual(MS).start();
        let log = Log::new();
        let owner = Owner::new(&svc);
        owner.attaches(0, how);
        owner.does(move |door| {
            for _ in 0..10 {
                door.timer().delay(HOUR).log(log).start();
            }
        });
        assert_eq!(svc.stats().pending, 10);
        assert_eq!(svc.stats_of(0).started, 10);
        assert_eq!(svc.stop_into().unwrap().len(), 10);
        assert_eq!(owner.does(move |door| door.try_start(0, log)), Err(SW_STOPPED));
        assert_eq!(owner.does(|door| door.try_poll(0, 0)), Err(SW_STOPPED));
        assert_eq!(log.dropped(), 10);
        // Freed while the owner lives on, which then ends.
        drop(svc);
        owner.ends();
    }
}

#[test]
fn q5_a_thread_that_ends_is_detached() {
    for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
        let svc = Setup::manual(MS).shards(2).start();
        let log = Log::new();
        let owner = Owner::new(&svc);
        owner.attaches(0, how);
        owner.attaches(1, how);
        let timer = owner.does(move |door| {
            door.timer().shard(0).delay(MS).log(log).start();
            door.timer().shard(1).delay(HOUR).log(log).start()
        });
        assert_eq!(svc.try_poll(0, 0), Err(SW_BUSY));
        owner.ends();
        assert_eq!(svc.cancel(timer), SW_OK);
        assert_eq!(svc.run(MS), 1, "its timers are still there");
        assert_eq!(svc.detach(0), SW_INVALID, "not attached");
        assert_eq!(svc.attach(0, SW_ATTACH_EXCLUSIVE), SW_OK, "another owner");
        svc.timer().shard(0).log(log).start();
        assert_eq!(svc.poll(), 1);
        assert_eq!(svc.detach(0), SW_OK);
    }
}

#[test]
fn q5_detach() {
    let svc = Setup::manual(MS).start();
    assert_eq!(svc.detach(0), SW_INVALID, "not attached");
    let owner = Owner::new(&svc);
    for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
        owner.attaches(0, how);
        assert_eq!(svc.detach(0), SW_BUSY, "a stranger's");
        assert_eq!(svc.attach(0, how), SW_BUSY);
        assert_eq!(owner.does(|door| door.detach(0)), SW_OK);
        assert_eq!(owner.does(|door| door.detach(0)), SW_INVALID);
    }
}

#[test]
fn q5_the_owner_attaches_again_to_change_how() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    let owner = Owner::new(&svc);
    for _ in 0..3 {
        owner.attaches(0, SW_ATTACH_SHARED);
        let timer = svc.start(HOUR, log);
        owner.attaches(0, SW_ATTACH_EXCLUSIVE);
        assert_eq!(svc.cancel(timer), SW_BUSY);
        assert_eq!(svc.try_start(HOUR, log), Err(SW_BUSY));
        owner.attaches(0, SW_ATTACH_EXCLUSIVE);
        owner.attaches(0, SW_ATTACH_SHARED);
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    // Once is enough to give it back.
    assert_eq!(owner.does(|door| door.detach(0)), SW_OK);
    assert_eq!(svc.try_poll(0, 0), Ok(0));
}

#[test]
fn q5_several_shards_and_any_goes_to_the_last_attached() {
    let svc = Setup::manual(MS).shards(4).start();
    let log = Log::new();
    let home = |log| sw_timer_shard(svc.start(HOUR, log));
    for (shard, how) in [(2, SW_ATTACH_SHARED), (0, SW_ATTACH_EXCLUSIVE), (3, SW_ATTACH_SHARED)] {
        assert_eq!(svc.attach(shard, how), SW_OK);
        assert_eq!(home(log), shard);
        assert_eq!(home(log), shard);
    }
    for shard in [0, 2, 3] {
        svc.timer().shard(shard).log(log).start();
        assert_eq!(svc.poll_shard(shard), 1);
    }
    // An owned shard that is not the last is reached by its number.
    assert_eq!(sw_timer_shard(svc.timer().shard(0).delay(HOUR).log(log).start()), 0);
    assert_eq!(svc.detach(3), SW_OK);
    let home = home(log);
    assert!(home == 0 || home == 2, "one of those it still owns: {home}");
}

#[test]
fn q5_a_strangers_any_avoids_exclusive_shards() {
    let svc = Setup::manual(MS).shards(3).start();
    let log = Log::new();
    let owner = Owner::new(&svc);
    owner.attaches(0, SW_ATTACH_EXCLUSIVE);
    owner.attaches(2, SW_ATTACH_EXCLUSIVE);
    for _ in 0..20 {
        std::thread::scope(|scope| {
            let home = scope.spawn(|| sw_timer_shard(svc.start(HOUR, log))).join().unwrap();
            assert_eq!(home, 1);
        });
    }
    owner.attaches(1, SW_ATTACH_EXCLUSIVE);
    assert_eq!(svc.try_start(HOUR, log), Err(SW_BUSY), "there are no others");
    assert_eq!(svc.start_batch(&[svc.timer().delay(HOUR).log(log).spec()]), Err(SW_BUSY));
    owner.attaches(0, SW_ATTACH_SHARED);
    assert_eq!(sw_timer_shard(svc.start(HOUR, log)), 0);
}

#[test]
fn q5_the_owners_callbacks_work_on_their_shard() {
    for how in [SW_ATTACH_SHARED, SW_ATTACH_EXCLUSIVE] {
        let svc = Setup::manual(MS).shards(2).start();
        let door = svc.door();
        assert_eq!(svc.attach(1, how), SW_OK);
        assert_eq!(svc.attach(0, how), SW_OK);
        let log = Log::new();
        let victim = svc.timer().shard(1).delay(MS).log(log).start();
        let ran = Arc::new(AtomicU64::new(0));
        let inside = ran.clone();
        let call = move |expiry: &sw_expiry| {
            assert_eq!(sw_timer_shard(door.start(MS, log)), 1, "the callback's own shard");
            assert_eq!(door.cancel(victim), SW_OK);
            assert_eq!(door.reset(expiry.timer, 2 * MS), SW_OK);
            assert_eq!(door.cancel(victim), SW_NOT_FOUND);
            inside.fetch_add(1, Ordering::SeqCst);
        };
        let timer = svc.timer().shard(1).run(call).start();
        assert_eq!(svc.poll_shard(1), 1);
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        svc.advance(MS);
        assert_eq!(svc.poll_shard(1), 1);
        assert_eq!(svc.cancel(timer), SW_OK);
    }
}
