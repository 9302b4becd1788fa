//! Slots, magazines, notes, ports: what travels between threads when timers end.

use super::*;
use crate::arena::{Arena, Zeroed};
use crate::handle::Handle;
use crate::port::Port;
use crate::slab::{MAGAZINE, Slab};
use crate::sync::AtomicU32 as Link;
use crate::tagged::TaggedStack;
use crate::ticks::Ticks;
use std::sync::atomic::AtomicBool;

/// Says who has what: taking twice is a failure.
struct Held([AtomicBool; 64]);

impl Held {
    fn new() -> Arc<Held> {
        Arc::new(Held(std::array::from_fn(|_| AtomicBool::new(false))))
    }

    fn take(&self, index: u32) {
        assert_ne!(index, 0);
        assert!(!self.0[index as usize].swap(true, Ordering::Relaxed), "{index} is had twice");
    }

    fn give(&self, index: u32) {
        assert!(self.0[index as usize].swap(false, Ordering::Relaxed), "{index} was not held");
    }
}

/// An element that is popped, pushed and popped again by others while a pop is on its way: the tag tells,
/// and no element is had twice.
#[test]
fn tagged_stack_aba() {
    struct Stack {
        stack: TaggedStack,
        links: [Link; 4],
        held: Arc<Held>,
    }
    impl Stack {
        fn pop(&self) -> Option<u32> {
            let index = self.stack.pop(|index| &self.links[index as usize])?;
            self.held.take(index);
            Some(index)
        }

        fn push(&self, index: u32) {
            self.held.give(index);
            self.stack.push(index, &self.links[index as usize]);
        }
    }
    explore("tagged_stack_aba", Some(3), || {
        let all = Arc::new(Stack {
            stack: TaggedStack::new(),
            links: std::array::from_fn(|_| Link::new(0)),
            held: Held::new(),
        });
        for index in 1..4 {
            all.held.take(index);
            all.push(index);
        }
        let theirs = all.clone();
        let other = thread(move || {
            let (first, second) = (theirs.pop().unwrap(), theirs.pop());
            theirs.push(first);
            second
        });
        let mine = all.pop();
        let second = other.join().unwrap();
        let rest = std::iter::from_fn(|| all.pop());
        assert_eq!(mine.into_iter().chain(second).chain(rest).count(), 3);
    });
}

/// What is pushed comes with what was written to it before.
#[test]
fn tagged_stack_publishes() {
    explore("tagged_stack_publishes", Some(3), || {
        let all =
            Arc::new((TaggedStack::new(), [Link::new(0), Link::new(0), Link::new(0)], cells()));
        let push = |index: usize| {
            let all = all.clone();
            thread(move || {
                // SAFETY: the element is this thread's until it is pushed.
                all.2.0[index].with_mut(|cell| unsafe { *cell = index as u32 });
                all.0.push(index as u32, &all.1[index]);
            })
        };
        let pushers = [push(1), push(2)];
        let mut count = 0;
        for _ in 0..2 {
            if let Some(index) = all.0.pop(|index| &all.1[index as usize]) {
                // SAFETY: popped, so it is this thread's.
                let value = all.2.0[index as usize].with(|cell| unsafe { *cell });
                assert_eq!(value, index);
                count += 1;
            }
        }
        join(pushers);
        while all.0.pop(|index| &all.1[index as usize]).is_some() {
            count += 1;
        }
        assert_eq!(count, 2);
    });
}

struct Cells([crate::sync::UnsafeCell<u32>; 3]);

// SAFETY: who has an element of the stack has its cell.
unsafe impl Send for Cells {}
// SAFETY: as above.
unsafe impl Sync for Cells {}

fn cells() -> Cells {
    Cells(std::array::from_fn(|_| crate::sync::UnsafeCell::new(0)))
}

// SAFETY: an integer.
unsafe impl Zeroed for Link {}

/// Threads that make the same segment at once agree on one; indices are handed out once; and who
/// finds a segment by an index finds its elements made.
#[test]
fn arena_grow_race() {
    explore("arena_grow_race", Some(3), || {
        let arena = Arc::new(Arena::<Link>::new(3, 64));
        let held = Held::new();
        let grow = |want| {
            let (arena, held) = (arena.clone(), held.clone());
            thread(move || {
                let crate::returned::Row { first, count, .. } = arena.fresh(want).unwrap();
                for index in first..first + count {
                    held.take(index);
                    assert_eq!(
                        arena.at(index).fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                        0
                    );
                }
            })
        };
        let growers = [grow(2), grow(3)];
        // A handle from nowhere: a zero, or nothing.
        if let Some(element) = arena.get(5) {
            assert!(element.load(std::sync::atomic::Ordering::Relaxed) <= 1);
        }
        join(growers);
        assert_eq!(arena.used(), 8);
        // What each has written is where all find it.
        (3..8).for_each(|index| {
            assert_eq!(arena.at(index).load(std::sync::atomic::Ordering::Relaxed), 1);
        });
    });
}

fn slab() -> Slab {
    Slab::new(Ticks::new(TICK), 0, 1 << 27)
}

/// Slots that one thread gives back, a magazine at a time, and that others take: each is had once, and
/// none is lost on the way.
#[test]
fn magazine_handover() {
    explore("magazine_handover", Some(3), || {
        let slab = Arc::new(slab());
        let ports = Arc::new([(); 2].map(|()| Port::new(std::ptr::null())));
        let held = Held::new();
        // SAFETY: the only thread so far.
        let slots = [(); 6].map(|()| unsafe { ports[0].take_slot(&slab).unwrap() });
        slots.iter().for_each(|&slot| held.take(slot));
        let (theirs, their_ports, their_held) = (slab.clone(), ports.clone(), held.clone());
        let giver = thread(move || {
            for slot in slots {
                their_held.give(slot);
                // SAFETY: this thread alone uses the port; the slot is its own.
                unsafe { their_ports[0].give_slot(&theirs, slot) };
            }
        });
        for _ in 0..2 * MAGAZINE {
            // SAFETY: this thread alone uses the port.
            held.take(unsafe { ports[1].take_slot(&slab).unwrap() });
        }
        giver.join().unwrap();
        // SAFETY: the only thread.
        let rest = unsafe { (0..6).map(|_| ports[0].take_slot(&slab).unwrap()) };
        rest.for_each(|slot| held.take(slot));
        assert!(slab.end() <= 1 + 12);
    });
}

/// Two threads flush and refill at once.
#[test]
fn depot_flush_refill() {
    explore("depot_flush_refill", Some(3), || {
        let slab = Arc::new(slab());
        let held = Held::new();
        let mut magazine = [0; MAGAZINE];
        slab.refill(&mut magazine).unwrap();
        slab.flush(&magazine);
        let swap = || {
            let (slab, held) = (slab.clone(), held.clone());
            thread(move || {
                let mut slots = [0; MAGAZINE];
                for _ in 0..2 {
                    let count = slab.refill(&mut slots).unwrap();
                    slots[..count].iter().for_each(|&slot| held.take(slot));
                    slots[..count].iter().for_each(|&slot| held.give(slot));
                    slab.flush(&slots[..count]);
                }
            })
        };
        join([swap(), swap()]);
        let mut slots = [0; MAGAZINE];
        let last = slab.end();
        while slab.end() == last {
            let count = slab.refill(&mut slots).unwrap();
            slots[..count].iter().for_each(|&slot| held.take(slot));
        }
        assert!(
            (1..last).all(|slot| held.0[slot as usize].load(Ordering::Relaxed)),
            "none is lost"
        );
    });
}

/// Two threads start, cancel and start, through the whole service: no slot has two timers at a time.
#[test]
fn two_threads_allocate_and_free() {
    explore("two_threads_allocate_and_free", Some(3), || {
        let service = Service::new(8);
        let (seen, held) = (Seen::new(), Held::new());
        let work = || {
            let (service, seen, held) = (service.clone(), seen.clone(), held.clone());
            move || {
                let start = || {
                    let timer = service.begin(&once(9, &seen));
                    held.take(Handle::unpack(timer).slot);
                    timer
                };
                let stop = |timer| {
                    held.give(Handle::unpack(timer).slot);
                    assert_eq!(service.end(timer), Outcome::Done);
                };
                let timers = [(); 3].map(|()| start());
                timers.into_iter().for_each(stop);
                start();
            }
        };
        let other = mortal(work());
        work()();
        other.join().unwrap();
        assert_eq!(service.quiet().pending, 2);
        service.forward(9);
        assert_eq!(service.turn0(), 2);
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// A thread ends and another begins to use the shard, on the same port or a new one: room, slots, and what
/// waits in the inbox stay.
#[test]
fn port_given_up_vs_claimed() {
    explore("port_given_up_vs_claimed", Some(3), || {
        let service = Service::new(2);
        let seen = [Seen::new(), Seen::new()];
        let start = |seen: &Arc<Seen>| {
            let (service, seen) = (service.clone(), seen.clone());
            mortal(move || {
                service.begin(&once(1, &seen));
            })
        };
        let threads = [start(&seen[0]), start(&seen[1])];
        service.turn0();
        join(threads);
        assert_eq!(service.try_start(&once(1, &seen[0])), Err(Error::Full));
        service.forward(1);
        service.turn0();
        assert_eq!((seen[0].fired(), seen[1].fired()), (1, 1));
        let stats = service.quiet();
        assert_eq!((stats.pending, stats.started), (0, 2));
        threads::leave(true);
    });
}

/// A thread has ended; two begin to use the shard at once: one of them gets the port that it has left.
#[test]
fn port_claimed_once() {
    explore("port_claimed_once", Some(2), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let start = || {
            let (service, seen) = (service.clone(), seen.clone());
            move || service.begin(&once(1, &seen))
        };
        mortal(start()).join().unwrap();
        join([thread(start()), thread(start())]);
        service.forward(1);
        assert_eq!((service.turn0(), seen.fired()), (3, 3));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// Deadlines beyond what a word holds: the notes that hold them are used again only when nobody relies on
/// what they said.
#[test]
fn far_note_reuse() {
    const FAR: u64 = 1 << 40;
    explore("far_note_reuse", Some(2), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let timer = service.begin(&once(FAR, &seen[0]));
        let other = service.clone();
        let mover = thread(move || {
            assert_eq!(other.move_to(timer, FAR + 5), Outcome::Done);
            assert_eq!(other.move_to(timer, FAR + 3), Outcome::Done);
        });
        let (other, theirs) = (service.clone(), seen[1].clone());
        let starter = thread(move || other.begin(&once(FAR + 9, &theirs)));
        service.turn0();
        service.turn0();
        mover.join().unwrap();
        let second = starter.join().unwrap();
        assert_eq!(service.remaining(timer).unwrap(), (Outcome::Done, (FAR + 3) * TICK));
        assert_eq!(service.remaining(second).unwrap(), (Outcome::Done, (FAR + 9) * TICK));
        service.forward(FAR + 2);
        assert_eq!(service.turn0(), 0);
        service.forward(1);
        assert_eq!((service.turn0(), seen[0].fired()), (1, 1));
        service.forward(6);
        assert_eq!((service.turn0(), seen[1].fired()), (1, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}

/// The owner finds the reminder of a timer that has been put off; meanwhile it is put off further, and its old note is
/// wanted for another timer: the first is not lost from sight.
#[test]
fn far_note_vs_put_off() {
    const FAR: u64 = 1 << 40;
    explore("far_note_vs_put_off", Some(2), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let timer = service.begin(&once(FAR, &seen[0]));
        service.turn0();
        assert_eq!(service.move_to(timer, FAR + 5), Outcome::Done);
        service.forward(FAR);
        let (other, theirs) = (service.clone(), seen[1].clone());
        let mover = thread(move || {
            assert_eq!(other.move_to(timer, FAR + 6), Outcome::Done);
            other.begin(&once(FAR + 50, &theirs));
        });
        assert_eq!(service.turn0(), 0);
        mover.join().unwrap();
        assert!(service.next(0).unwrap() <= (FAR + 6) * TICK);
        service.forward(6);
        assert_eq!((service.turn0(), seen[0].fired()), (1, 1));
        assert_eq!(service.quiet().pending, 1);
        threads::leave(true);
    });
}

/// How long a timer still has is asked while it is moved, and its old note used again for another timer: the answer is of
/// this timer, before or after.
#[test]
fn remaining_vs_note_reuse() {
    const FAR: u64 = 1 << 40;
    explore("remaining_vs_note_reuse", Some(2), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let timer = service.begin(&once(FAR, &seen[0]));
        service.turn0();
        let other = service.clone();
        let asker = thread(move || other.remaining(timer).unwrap());
        assert_eq!(service.move_to(timer, FAR + 5), Outcome::Done);
        service.turn0();
        service.begin(&once(FAR + 9, &seen[1]));
        let (outcome, left_ns) = asker.join().unwrap();
        assert_eq!(outcome, Outcome::Done);
        assert!([FAR, FAR + 5].contains(&(left_ns / TICK)), "{}", left_ns / TICK - FAR);
        assert_eq!(service.quiet().pending, 2);
        threads::leave(true);
    });
}

/// A thread ends while another begins to use the shard, perhaps by the port that is left: what was written there is
/// seen.
#[test]
fn port_handed_on() {
    explore("port_handed_on", Some(3), || {
        let service = Service::new(4);
        let seen = Seen::new();
        let (other, theirs) = (service.clone(), seen.clone());
        let ending = mortal(move || {
            let timer = other.begin(&once(1, &theirs));
            assert_eq!(other.end(timer), Outcome::Done);
        });
        service.begin(&once(1, &seen));
        ending.join().unwrap();
        service.forward(1);
        assert_eq!((service.turn0(), seen.fired()), (1, 1));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}
