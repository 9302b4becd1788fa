//! The inbox by one thread, and by two.

use super::*;

fn limit() -> u64 {
    u64::MAX
}

#[test]
fn keeps_order_and_reuses_blocks() {
    let inbox = Inbox::new();
    let mut next_in = 0u64;
    let mut next_out = 0u64;
    for round in 0..2_000usize {
        for _ in 0..(round * 7) % 600 {
            // SAFETY: the only thread.
            unsafe {
                inbox.reserve(1, limit).unwrap();
                inbox.push(next_in);
            }
            next_in += 1;
        }
        // SAFETY: the only thread.
        unsafe {
            inbox.take((round * 11) % 700, |entry, _| {
                assert_eq!(entry, next_out);
                next_out += 1;
                true
            });
        }
    }
    assert!(inbox.bytes() < 1 << 20, "{}", inbox.bytes());
    assert_eq!(inbox.waiting(), next_in - next_out);
}

#[test]
fn refuses_at_its_limit_and_recovers() {
    let inbox = Inbox::new();
    let bound = || 4 * BLOCK as u64;
    let mut count = 0;
    // SAFETY: the only thread.
    while unsafe { inbox.reserve(1, bound) }.is_ok() {
        // SAFETY: the only thread, room reserved.
        unsafe { inbox.push(count) };
        count += 1;
    }
    assert_eq!(count, 4 * BLOCK as u64);
    // SAFETY: the only thread.
    unsafe {
        assert_eq!(inbox.take(usize::MAX, |_, _| true), 4 * BLOCK);
        inbox.reserve(300, bound).unwrap();
    }
}

#[test]
fn purging_keeps_the_order_of_what_lives() {
    let inbox = Inbox::new();
    let mut expected = Vec::new();
    for entry in 0..10_000u64 {
        // SAFETY: the only thread.
        unsafe {
            inbox.reserve(1, limit).unwrap();
            inbox.push(entry % 3_000);
            if entry == 700 {
                inbox.take(500, |_, _| true);
            }
            if entry % 2_500 == 2_499 {
                inbox.purge(|entry| entry % 3 == 0);
            }
        }
    }
    // SAFETY: as above.
    unsafe {
        inbox.purge(|entry| entry % 3 == 0);
        assert_eq!(inbox.waiting(), 1_000);
        inbox.take(usize::MAX, |entry, _| {
            expected.push(entry);
            true
        });
        assert!(expected.is_sorted_by_key(|&entry| (entry < 501, entry)), "{expected:?}");
        inbox.reserve(1_000, limit).unwrap();
        for entry in 0..1_000 {
            inbox.push(entry);
        }
        let mut next = 0;
        inbox.take(usize::MAX, |entry, _| {
            assert_eq!(entry, next);
            next += 1;
            true
        });
        assert_eq!(next, 1_000);
    }
}

#[test]
fn two_threads() {
    let inbox = Inbox::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for entry in 0..200_000 {
                // SAFETY: the only producer.
                unsafe {
                    inbox.reserve(1, limit).unwrap();
                    inbox.push(entry);
                }
            }
        });
        let mut next = 0;
        while next < 200_000 {
            // SAFETY: the only consumer.
            unsafe {
                inbox.take(1_000, |entry, _| {
                    assert_eq!(entry, next);
                    next += 1;
                    true
                });
            }
        }
    });
}
