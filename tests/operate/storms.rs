//! Storms: a million timers due in one tick, reset and cancelled in that very tick, or passed by a
//! jump of the clock. Each of them is accounted for, one by one.

use crate::support::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::yield_now;

const MILLION: usize = 1_000_000;

/// What has become of each timer of one storm: the deadline that it fired for, if it fired, and how often.
/// A timer's context is its number.
struct Board {
    fired_for: Vec<AtomicU64>,
    count: AtomicU64,
    twice: AtomicBool,
    disorder: AtomicBool,
    last: AtomicU64,
}

impl Board {
    fn new() -> &'static Board {
        Box::leak(Box::new(Board {
            fired_for: (0..MILLION).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicU64::new(0),
            twice: AtomicBool::new(false),
            disorder: AtomicBool::new(false),
            last: AtomicU64::new(0),
        }))
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn of(&self, number: usize) -> u64 {
        self.fired_for[number].load(Ordering::Relaxed)
    }
}

/// The boards of the tests here, by the upper bits of a context.
static BOARDS: [std::sync::OnceLock<&Board>; 3] = [const { std::sync::OnceLock::new() }; 3];
const SHIFT: u32 = 24;

unsafe extern "C-unwind" fn arrive(ctx: *mut c_void, expiry: *const sw_expiry) {
    // SAFETY: the library's promise.
    let expiry = unsafe { &*expiry };
    let board = BOARDS[ctx.addr() >> SHIFT].get().expect("set before the first start");
    let number = ctx.addr() & ((1 << SHIFT) - 1);
    let before = board.fired_for[number].swap(expiry.deadline_ns.max(1), Ordering::Relaxed);
    if before != 0 {
        board.twice.store(true, Ordering::Relaxed);
    }
    if board.last.swap(expiry.deadline_ns, Ordering::Relaxed) > expiry.deadline_ns {
        board.disorder.store(true, Ordering::Relaxed);
    }
    board.count.fetch_add(1, Ordering::Relaxed);
}

/// Starts a million timers on shard 0, each as `deadline` says.
fn start(door: Door, board: usize, deadline: impl Fn(usize) -> u64) -> Vec<sw_timer> {
    let specs: Vec<_> = (0..MILLION)
        .map(|number| {
            let timer = door.timer().shard(0).at(deadline(number)).with(|spec| {
                spec.callback = Some(arrive);
                spec.ctx = std::ptr::without_provenance_mut(board << SHIFT | number);
            });
            timer.spec()
        })
        .collect();
    door.start_batch(&specs).unwrap()
}

/// The median and the worst.
fn lateness(fires: &[Fire]) -> (u64, u64) {
    let mut late: Vec<u64> = fires.iter().map(|fire| fire.now - fire.deadline).collect();
    late.sort_unstable();
    (late.get(late.len() / 2).copied().unwrap_or(0), late.last().copied().unwrap_or(0))
}

#[test]
fn a_million_in_one_tick_leave_room_for_starts_and_cancels_and_for_other_shards() {
    let board = *BOARDS[0].get_or_init(Board::new);
    let svc = Setup::threaded(2).start();
    let door = svc.door();
    let (other, late) = (Log::new(), Log::counting());
    // Held until all are due.
    static HELD: Gate = Gate::new();
    svc.timer().shard(0).run(|_| HELD.wait()).start();
    let due = svc.now() + MS;
    let timers = start(door, 0, |_| due);
    let witness = Witness::new();
    svc.timer().shard(1).delay(MS).period(5 * MS).log(other).start();
    eventually("the other shard is at work", || other.count() > 100);
    let calm = lateness(&other.take());
    let mut won = vec![false; MILLION];
    let began = svc.now();
    HELD.open();
    eventually("the storm is on", || board.count() > 0);
    // From the end: those are called last.
    let (mut started, mut in_storm) = (0, 0);
    for (number, &timer) in timers.iter().enumerate().rev() {
        won[number] = door.cancel(timer) == SW_OK;
        if number % 100 == 0 {
            door.timer().shard(0).delay(0).log(late).start();
            started += 1;
        }
        if won[number] {
            in_storm += 1;
        } else if number % 100 == 0 && board.of(number) != 0 {
            // The two have met.
            break;
        }
    }
    let expected = MILLION as u64 - in_storm;
    eventually("the storm is over", || board.count() == expected && late.count() == started);
    let took = svc.now() - began;
    let stormy = lateness(&other.fires());
    let fired = expected + started;
    println!("{fired} firings, {} ns each, {in_storm} cancels", took / fired);
    println!(
        "the other shard's lateness (median, worst): calm {calm:?} ns, in the storm {stormy:?} ns"
    );
    assert!(in_storm > 1_000, "cancels that won while it was on: {in_storm}");
    for (number, &won) in won.iter().enumerate() {
        assert_eq!(board.of(number) != 0, !won, "{number}: it fires or is cancelled");
    }
    assert!(!board.twice.load(Ordering::Relaxed));
    // No more than before, but for what the machine itself adds.
    assert!(stormy.0 < calm.0 + witness.slack(), "{calm:?} {stormy:?}");
    assert!(stormy.1 < MS + witness.slack(), "{stormy:?}");
    let stats = svc.stats_of(0);
    assert_eq!((stats.cancelled, stats.pending), (in_storm, 0));
}

#[test]
fn a_million_reset_and_cancelled_in_the_tick_in_which_they_are_due() {
    let board = *BOARDS[1].get_or_init(Board::new);
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let (due, later) = (10 * MS, 20 * MS);
    // The first of them holds the turn until each of the two threads is well on its way.
    const AHEAD: u64 = 1_000;
    static MET: AtomicU64 = AtomicU64::new(0);
    svc.timer().at(due).run(|_| eventually("both", || MET.load(Ordering::SeqCst) == 2)).start();
    let timers = start(door, 1, |_| due);
    assert_eq!(svc.poll(), 0);
    svc.advance(due);
    // All are due. Two threads go through them from both ends, while a third delivers.
    let (mut reset, mut cancelled) = (Vec::new(), Vec::new());
    let met = |number: usize, last: usize| {
        MET.fetch_add(u64::from(number == last), Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        let (timers, reset, cancelled) = (&timers, &mut reset, &mut cancelled);
        scope.spawn(move || {
            let answer = |(number, &timer): (usize, &sw_timer)| {
                met(number, MILLION - 3 * AHEAD as usize);
                (number % 3 == 0).then(|| (number, door.reset_at(timer, later)))
            };
            *reset = timers.iter().enumerate().rev().filter_map(answer).collect();
        });
        scope.spawn(move || {
            let answer = |(number, &timer): (usize, &sw_timer)| {
                met(number, 3 * AHEAD as usize);
                (number % 3 == 1).then(|| (number, door.cancel(timer)))
            };
            *cancelled = timers.iter().enumerate().filter_map(answer).collect();
        });
        yield_now();
        door.poll();
    });
    svc.poll();
    svc.advance(later - due);
    while svc.pending() > 0 {
        svc.poll();
    }
    let mut moved = 0;
    for (number, answer) in reset {
        let expected = match answer {
            SW_OK => later,
            SW_NOT_FOUND | SW_RUNNING => due,
            other => panic!("{other:?}"),
        };
        moved += u64::from(answer == SW_OK);
        assert_eq!(board.of(number), expected, "{number}: {answer:?}");
    }
    let mut ended = 0;
    for (number, answer) in cancelled {
        ended += u64::from(answer == SW_OK);
        assert_eq!(board.of(number), if answer == SW_OK { 0 } else { due }, "{number}: {answer:?}");
    }
    for number in (2..MILLION).step_by(3) {
        assert_eq!(board.of(number), due);
    }
    println!("{moved} resets and {ended} cancels won");
    assert!(moved >= AHEAD && ended >= AHEAD, "those before the turn went on: {moved}, {ended}");
    assert_eq!(board.count(), MILLION as u64 - ended);
    assert!(!board.twice.load(Ordering::Relaxed));
}

#[test]
fn the_clock_jumps_over_a_million_in_an_hour() {
    let board = *BOARDS[2].get_or_init(Board::new);
    let svc = Setup::manual(MS).start();
    let each = HOUR / MILLION as u64;
    // Far apart in the order of starting.
    start(svc.door(), 2, |number| 1 + (number * 7_919 % MILLION) as u64 * each);
    assert_eq!(svc.poll(), 0);
    svc.advance(HOUR);
    assert_eq!(svc.poll(), MILLION, "one poll delivers all of them");
    assert_eq!((svc.pending(), board.count()), (0, MILLION as u64));
    assert!(!board.twice.load(Ordering::Relaxed));
    for (number, fired) in board.fired_for.iter().enumerate() {
        let deadline = 1 + (number * 7_919 % MILLION) as u64 * each;
        assert_eq!(fired.load(Ordering::Relaxed), deadline);
    }
    let stats = svc.stats();
    assert!(stats.lateness_max_ns >= HOUR - each && stats.lateness_max_ns < HOUR + MS);
}
