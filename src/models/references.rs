//! Counted references (`shared`), with loom's atomics for the counts.

use crate::models::{explore, join, spawn_with};
use crate::sync::UnsafeCell;
use shared::{Shared, WeakShared};

mod sync {
    pub(crate) mod counts {
        pub(crate) use crate::sync::{AtomicU64, Ordering, fence};
    }
}

#[allow(dead_code, unreachable_pub, reason = "the whole file, of which models use a part")]
#[path = "../shared.rs"]
mod shared;

/// A value whose parts threads write without synchronization, each its own, and whose drop reads them all.
struct Value {
    me: WeakShared<Value>,
    parts: [UnsafeCell<u32>; 3],
}

// SAFETY: the models say who touches which part when, which is what they check.
unsafe impl Send for Value {}
// SAFETY: as above.
unsafe impl Sync for Value {}

impl Value {
    fn new() -> Shared<Value> {
        Shared::new_cyclic(Value::with).unwrap()
    }

    fn with(me: &WeakShared<Value>) -> Value {
        Value { me: me.clone(), parts: [1, 0, 0].map(UnsafeCell::new) }
    }

    fn write(&self, part: usize) {
        // SAFETY: each thread has a part of its own.
        self.parts[part].with_mut(|part| unsafe { *part += 1 });
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        for part in &self.parts {
            // SAFETY: the last reference is gone: that is what the models check.
            assert!(part.with(|part| unsafe { *part }) <= 1);
        }
    }
}

/// Two threads use the value and let it go: whoever is last drops it, after all that the other did.
#[test]
fn references_drop_vs_drop() {
    explore("references_drop_vs_drop", None, || {
        let first = Value::new();
        let second = first.clone();
        let other = spawn_with(move || second.write(2));
        first.write(1);
        drop(first);
        other.join().unwrap();
    });
}

/// Two threads make further references at once: the value stays until all are gone.
#[test]
fn references_clone_vs_clone() {
    explore("references_clone_vs_clone", None, || {
        let work = |mine: Shared<Value>, part: usize| {
            let again = mine.clone();
            drop(mine);
            again.write(part);
        };
        let first = Value::new();
        let second = first.clone();
        let other = spawn_with(move || work(second, 2));
        work(first, 1);
        other.join().unwrap();
    });
}

/// A weak reference is taken up while the last strong one goes: there is a value that lives, or none.
#[test]
fn references_upgrade_vs_drop() {
    explore("references_upgrade_vs_drop", None, || {
        let value = Value::new();
        let upgrade = || {
            let weak = value.me.clone();
            spawn_with(move || weak.upgrade().is_some_and(|value| value.me.is_alive()))
        };
        let others = [upgrade(), upgrade()];
        drop(value);
        join(others);
    });
}

/// Who is handed a weak reference while the value is being made finds it whole, or not at all.
#[test]
fn references_made_vs_upgrade() {
    explore("references_made_vs_upgrade", None, || {
        let mut other = None;
        let value = Shared::new_cyclic(|me: &WeakShared<Value>| {
            let weak = me.clone();
            other = Some(spawn_with(move || {
                let Some(value) = weak.upgrade() else { return };
                // SAFETY: nobody writes this part.
                assert_eq!(value.parts[0].with(|part| unsafe { *part }), 1);
            }));
            Value::with(me)
        });
        drop(value);
        other.unwrap().join().unwrap();
    });
}
