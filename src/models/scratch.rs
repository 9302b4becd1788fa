use super::*;
use crate::sync::{AtomicU64 as A, UnsafeCell};
use crossbeam_utils::CachePadded;
#[test]
fn s1() {
    explore("s1", None, || {
        let x = Arc::new(A::new(0));
        let y = x.clone();
        let t = thread(move || y.store(1, Ordering::Release));
        let v = x.load(Ordering::Acquire);
        t.join().unwrap();
        let _ = v;
    });
}
#[test]
fn s2() {
    explore("s2", None, || {
        let x = Arc::new((A::new(0), CachePadded::new(A::new(0))));
        let y = x.clone();
        let t = thread(move || y.1.store(1, Ordering::Release));
        let v = x.1.load(Ordering::Acquire);
        t.join().unwrap();
        let _ = v;
    });
}
#[test]
fn s3() {
    explore("s3", None, || {
        let inbox = Arc::new(crate::inbox::Inbox::new());
        let y = inbox.clone();
        let t = thread(move || unsafe { y.reserve(1, || u64::MAX).unwrap(); y.push(1); });
        let v = inbox.waiting();
        t.join().unwrap();
        let _ = v;
    });
}
#[test]
fn s4() {
    explore("s4", None, || {
        let x = Arc::new(A::new(0));
        let y = x.clone();
        let t = thread(move || (0..2).for_each(|n| y.store(n, Ordering::Release)));
        let v = x.load(Ordering::Acquire);
        t.join().unwrap();
        let _ = v;
    });
}
struct S { u: UnsafeCell<u32>, a: A, b: A }
unsafe impl Sync for S {}
unsafe impl Send for S {}
#[test]
fn s5() {
    explore("s5", None, || {
        let x = Arc::new(S { u: UnsafeCell::new(0), a: A::new(0), b: A::new(0) });
        let y = x.clone();
        let t = thread(move || y.u.with_mut(|_| y.a.store(1, Ordering::Release)));
        let v = x.a.load(Ordering::Acquire);
        t.join().unwrap();
        let _ = v;
    });
}
#[test]
fn s6() {
    explore("s6", None, || {
        let x = Arc::new(S { u: UnsafeCell::new(0), a: A::new(0), b: A::new(0) });
        let y = x.clone();
        let t = thread(move || {y.a.load(Ordering::Relaxed); y.a.store(1, Ordering::Release)});
        let v = x.a.load(Ordering::Acquire);
        t.join().unwrap();
        let _ = v;
    });
}
#[test]
fn s7() {
    explore("s7", None, || {
        let x = Arc::new(S { u: UnsafeCell::new(0), a: A::new(0), b: A::new(0) });
        let y = x.clone();
        let t = thread(move || {y.b.load(Ordering::Relaxed); y.a.store(1, Ordering::Release)});
        let v = (x.b.load(Ordering::Relaxed), x.a.load(Ordering::Acquire));
        t.join().unwrap();
        let _ = v;
    });
}
