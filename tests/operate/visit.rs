//! Who is pending: for debugging, and to carry timers over a restart.

use crate::support::*;
use std::collections::HashMap;
use std::ffi::c_void;
use std::io::{BufReader, BufWriter, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

/// All that is pending on a shard, by visits of at most `most`.
pub fn visit(door: Door, shard: u32, most: usize) -> Vec<sw_pending> {
    let (mut all, mut place) = (Vec::new(), 0);
    let blank = sw_pending { timer: 0, deadline_ns: 0, period_ns: 0, ctx: std::ptr::null_mut() };
    let mut part = vec![blank; most];
    while place != SW_VISIT_END {
        let mut visited = usize::MAX;
        // SAFETY: `part` has room for `most`; the rest is writable.
        let status = unsafe {
            sw_shard_visit(door.raw(), shard, &mut place, part.as_mut_ptr(), most, &mut visited)
        };
        assert_eq!(status, SW_OK);
        assert!(visited <= most);
        all.extend_from_slice(&part[..visited]);
    }
    all
}

#[test]
fn tells_handle_deadline_period_and_context() {
    let svc = Setup::manual(MS).shards(2).start();
    let (log, door) = (Log::counting(), svc.door());
    let queue = svc.queue();
    assert!(visit(door, 0, 7).is_empty());
    svc.advance(MS);
    let timer = |shard| svc.timer().shard(shard).log(log);
    let mut expected = vec![
        (timer(0).delay(5 * MS + 7).start(), 6 * MS + 7, 0),
        (timer(0).delay(u64::MAX).start(), SW_NEVER, 0),
        (timer(0).at(1 << 62).start(), 1 << 62, 0),
        (timer(0).delay(3 * MS).period(3 * MS).start(), 4 * MS, 3 * MS),
        (timer(0).delay(2 * MS).queue(queue).start(), 3 * MS, 0),
        (timer(0).at(0).start(), 0, 0),
    ];
    let elsewhere = timer(1).delay(HOUR).start();
    let gone = timer(0).delay(HOUR).start();
    assert_eq!(svc.cancel(gone), SW_OK);
    let tell = |expected: &[(sw_timer, u64, u64)]| {
        for most in [1, 2, 100] {
            let mut found: Vec<_> = visit(door, 0, most)
                .iter()
                .inspect(|pending| assert!(log.is(Ptr(pending.ctx))))
                .map(|pending| (pending.timer, pending.deadline_ns, pending.period_ns))
                .collect();
            found.sort_unstable();
            let mut expected = expected.to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected, "{most}");
        }
    };
    tell(&expected);
    assert_eq!(visit(door, 1, 10)[0].timer, elsewhere);
    // Two fire or are delivered; the event that waits in the queue is pending still.
    svc.advance(2 * MS);
    assert_eq!(svc.poll_shard(0), 2);
    expected.pop();
    tell(&expected);
    assert_eq!(queue.poll(1).len(), 1);
    expected.pop();
    tell(&expected);
    assert_eq!(svc.stop(), SW_OK);
    tell(&[]);
}

#[test]
fn a_periodic_timer_at_its_callback_is_told_of_and_a_one_shot_is_not() {
    let svc = Setup::manual(MS).start();
    let door = svc.door();
    let call = move |expiry: &sw_expiry| {
        let found = visit(door, 0, 10);
        let own = found.iter().find(|pending| pending.timer == expiry.timer);
        assert_eq!(own.map(|own| own.deadline_ns), Some(expiry.deadline_ns + 5 * MS));
    };
    let periodic = || svc.timer().delay(5 * MS).period(5 * MS);
    periodic().run(call).start();
    periodic().flags(SW_TIMER_FIXED_DELAY).run(call).start();
    let one_shot = move |expiry: &sw_expiry| {
        assert!(visit(door, 0, 10).iter().all(|pending| pending.timer != expiry.timer));
    };
    svc.timer().delay(5 * MS).run(one_shot).start();
    assert_eq!(svc.run(5 * MS), 3);
}

#[test]
fn an_almost_empty_shard_takes_short_steps() {
    let svc = Setup::manual(MS).start();
    let log = Log::counting();
    let timers: Vec<_> = (0..10_000).map(|_| svc.start(HOUR, log)).collect();
    for &timer in &timers[..9_999] {
        assert_eq!(svc.cancel(timer), SW_OK);
    }
    let blank = sw_pending { timer: 0, deadline_ns: 0, period_ns: 0, ctx: std::ptr::null_mut() };
    let (mut one, mut place, mut calls, mut found) = (blank, 0, 0, Vec::new());
    while place != SW_VISIT_END {
        let mut visited = 0;
        // SAFETY: room for one.
        let status = unsafe { sw_shard_visit(svc.raw(), 0, &mut place, &mut one, 1, &mut visited) };
        assert_eq!(status, SW_OK);
        found.extend((visited == 1).then_some(one.timer));
        calls += 1;
    }
    assert_eq!(found, [timers[9_999]]);
    assert!(calls > 100, "64 slots a call: {calls}");
}

#[test]
fn what_is_pending_all_the_while_is_told_of_once() {
    let svc = Setup::threaded(1).start();
    let (log, door) = (Log::counting(), svc.door());
    let kept: Vec<_> = (0..20_000).map(|_| svc.start(HOUR, log)).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let timer = door.start(2 * HOUR, log);
                assert_eq!(door.reset(timer, HOUR), SW_OK);
                assert_eq!(door.cancel(timer), SW_OK);
                door.start(0, log);
            }
        });
        for _ in 0..20 {
            let mut times: HashMap<sw_timer, u32> = HashMap::new();
            for pending in visit(door, 0, 1_000) {
                *times.entry(pending.timer).or_default() += 1;
            }
            assert!(kept.iter().all(|timer| times.get(timer) == Some(&1)));
            assert!(times.values().all(|&count| count == 1), "a slot is looked at once");
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(svc.cancel_batch(&kept), Ok(20_000));
}

#[test]
fn bad_arguments_are_refused() {
    let svc = Setup::manual(MS).start();
    let mut one = sw_pending { timer: 0, deadline_ns: 0, period_ns: 0, ctx: std::ptr::null_mut() };
    let (mut place, mut visited) = (0, 7);
    let raw = svc.raw();
    // SAFETY: each call has one thing wrong, which is refused.
    unsafe {
        let none = std::ptr::null_mut();
        let (at, out, count) = (&raw mut place, &raw mut one, &raw mut visited);
        assert_eq!(sw_shard_visit(none, 0, at, out, 1, count), SW_INVALID);
        assert_eq!(sw_shard_visit(raw, 1, at, out, 1, count), SW_INVALID);
        assert_eq!(sw_shard_visit(raw, 0, std::ptr::null_mut(), out, 1, count), SW_INVALID);
        assert_eq!(sw_shard_visit(raw, 0, at, std::ptr::null_mut(), 1, count), SW_INVALID);
        assert_eq!(sw_shard_visit(raw, 0, at, out, 0, count), SW_INVALID);
        assert_eq!(sw_shard_visit(raw, 0, at, out, 1, std::ptr::null_mut()), SW_INVALID);
    }
    assert_eq!((place, visited), (0, 7));
    // Any place will do.
    for mut place in [u64::MAX, u64::MAX - 1, 1 << 32] {
        // SAFETY: room for one.
        let status = unsafe { sw_shard_visit(raw, 0, &mut place, &mut one, 1, &mut visited) };
        assert_eq!((status, place, visited), (SW_OK, SW_VISIT_END, 0));
    }
}

#[test]
fn overdue_ones_are_spread() {
    let svc = Setup::manual(MS).start();
    let log = Log::new();
    svc.advance(1_000 * MS);
    let at = |deadline| svc.timer().at(deadline).log(log).spec();
    let mut specs: Vec<_> = (0..100).map(|nth| at(nth * MS)).collect();
    specs.push(at(1_001 * MS));
    specs.push(svc.timer().delay(0).log(log).spec());
    let mut timers = vec![0; specs.len()];
    let start = |spread| {
        // SAFETY: as many specs as handles.
        let status = unsafe {
            let (count, out) = (specs.len(), timers.as_ptr().cast_mut());
            sw_timer_start_spread(svc.raw(), specs.as_ptr(), count, spread, out)
        };
        assert_eq!(status, SW_OK);
    };
    start(200 * MS);
    assert_eq!(svc.poll(), 2, "the first of them, and the one without a delay");
    assert_eq!(svc.run(MS), 1, "1001: its own time");
    for _ in 0..99 {
        assert_eq!(svc.run(2 * MS), 1);
    }
    assert_eq!(svc.pending(), 0);
    assert!(log.fires().iter().all(|fire| fire.now - fire.deadline < 2 * MS), "none is late");
    start(0);
    assert_eq!(svc.poll(), 102, "not spread");
    timers.clear();
}

#[test]
fn rust_visits_and_spreads_too() {
    let service = shardwheel::Service::builder().driven().manual_clock().shards(1).build().unwrap();
    let second = Duration::from_secs(1);
    let plain = service.after_fn(second, |_, _| {}, 7).unwrap();
    let closure = service.every(2 * second, |_| {}).unwrap();
    let shard = service.shard(0).unwrap();
    let mut found: Vec<_> = shard.visit().collect();
    found.sort_by_key(|pending| pending.deadline);
    assert_eq!((found[0].timer, found[0].token, found[0].period), (plain, Some(7), None));
    assert_eq!((found[1].timer, found[1].token), (closure, None));
    assert_eq!(found[1].period, Some(2 * second));
    service.advance(10 * second).unwrap();
    assert_eq!(shard.poll(), Ok(2));
    let mut batch = service.batch();
    for token in 0..10 {
        batch.add_fn(service.timer().deadline(found[0].deadline), |_, _| {}, token);
    }
    batch.spread(10 * second);
    batch.start().unwrap();
    for _ in 0..10 {
        assert!(shard.poll().unwrap() >= 1);
        service.advance(second).unwrap();
    }
}

// ------------------------------------------------------------- over a restart

const MILLION: u64 = 1_000_000;

/// How often each number has come back.
static CAME: [AtomicU8; MILLION as usize] = [const { AtomicU8::new(0) }; MILLION as usize];

unsafe extern "C-unwind" fn arrive(ctx: *mut c_void, _: *const sw_expiry) {
    CAME[ctx.addr()].fetch_add(1, Ordering::Relaxed);
}

fn numbered(door: Door, number: u64, deadline_ns: u64) -> sw_timer_spec {
    let plain = door.timer().at(deadline_ns).with(|spec| {
        spec.callback = Some(arrive);
        spec.ctx = std::ptr::without_provenance_mut(number as usize);
    });
    plain.spec()
}

/// The process that is killed: it starts a million timers, writes down who is pending, and waits.
#[test]
#[ignore = "runs in a process of its own, as a part of the next test"]
fn saves_a_million() {
    let Some(path) = std::env::var_os("SHARDWHEEL_SAVE_TO") else { return };
    let svc = Setup::threaded(2).start();
    let door = svc.door();
    let now = svc.now();
    let specs: Vec<_> = (0..MILLION)
        .map(|number| numbered(door, number, now + 60 * SEC + number % 1_000 * 600 * MS))
        .collect();
    svc.start_batch(&specs).unwrap();
    let mut file = BufWriter::new(std::fs::File::create(path).unwrap());
    for shard in 0..2 {
        for pending in visit(door, shard, 10_000) {
            file.write_all(&(pending.ctx.addr() as u64).to_le_bytes()).unwrap();
            file.write_all(&pending.deadline_ns.to_le_bytes()).unwrap();
        }
    }
    file.flush().unwrap();
    println!("saved");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_secs(300));
}

/// A million timers outlive the process that started them.
#[test]
fn a_million_saved_killed_and_restored() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("saved-timers");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["visit::saves_a_million", "--exact", "--ignored", "--nocapture"])
        .env("SHARDWHEEL_SAVE_TO", &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    for byte in BufReader::new(child.stdout.take().unwrap()).bytes() {
        said.push(byte.unwrap());
        if said.ends_with(b"saved\n") {
            break;
        }
    }
    assert!(said.ends_with(b"saved\n"), "{}", String::from_utf8_lossy(&said));
    child.kill().unwrap();
    child.wait().unwrap();

    let saved = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(saved.len() as u64, MILLION * 16);
    // The clock is moved by hand, ten minutes at once: 900,000 or so are overdue then.
    let svc = Setup::manual(MS).shards(2).start();
    let door = svc.door();
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let first = saved.chunks(16).map(|pair| word(&pair[8..])).min().unwrap();
    svc.advance(first + 540 * SEC);
    let specs: Vec<_> = saved
        .chunks(16)
        .enumerate()
        .map(|(nth, pair)| {
            let mut spec = numbered(door, word(&pair[..8]), word(&pair[8..]));
            spec.shard = nth as u32 % 2;
            spec
        })
        .collect();
    let mut timers = vec![0; specs.len()];
    // SAFETY: as many specs as handles.
    let status = unsafe {
        let (count, out) = (specs.len(), timers.as_mut_ptr());
        sw_timer_start_spread(svc.raw(), specs.as_ptr(), count, 10 * SEC, out)
    };
    assert_eq!(status, SW_OK);
    let mut fired = 0;
    for tenth in 0..100 {
        let now = svc.poll_shard(0) + svc.poll_shard(1);
        assert!(now <= 20_000, "no stampede: {now} in the {tenth}. tenth of a second");
        fired += now as u64;
        svc.advance(100 * MS);
    }
    assert!((890_000..=MILLION).contains(&fired), "the overdue ones: {fired}");
    svc.advance(HOUR);
    fired += (svc.poll_shard(0) + svc.poll_shard(1)) as u64;
    assert_eq!((fired, svc.pending()), (MILLION, 0));
    assert!(CAME.iter().all(|came| came.load(Ordering::Relaxed) == 1), "each once, none lost");
}
