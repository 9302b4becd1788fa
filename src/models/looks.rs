//! Looks from outside: at what is pending, and for memory to give back.

use super::*;

/// Timers are visited while one is moved, and its old note used again for another: what is told of the first is its own,
/// before or after.
#[test]
fn visit_vs_note_reuse() {
    const FAR: u64 = 1 << 40;
    explore("visit_vs_note_reuse", Some(2), || {
        let service = Service::new(4);
        let seen = [Seen::new(), Seen::new()];
        let timer = service.begin(&once(FAR, &seen[0]));
        service.turn0();
        let other = service.clone();
        let visitor = thread(move || {
            let (mut place, mut tick) = (0, 0);
            let mut tell = |pending: crate::types::Pending| {
                if pending.timer == timer {
                    tick = pending.deadline_ns / TICK;
                }
            };
            other.visit(0, &mut place, 8, &mut tell).unwrap();
            tick
        });
        assert_eq!(service.move_to(timer, FAR + 5), Outcome::Done);
        service.turn0();
        service.begin(&once(FAR + 9, &seen[1]));
        let tick = visitor.join().unwrap();
        assert!([FAR, FAR + 5].contains(&tick), "{}", tick - FAR);
        assert_eq!(service.quiet().pending, 2);
        threads::leave(true);
    });
}

/// Free slots are looked through for memory to give back while others start and cancel: none is had twice or lost.
#[test]
fn trim_vs_start() {
    explore_with_upkeep("trim_vs_start", Some(2), || {
        let service = Service::new(8);
        let seen = Seen::new();
        let start = || service.begin(&once(9, &seen));
        let timers = [(); 6].map(|()| start());
        timers.into_iter().for_each(|timer| assert_eq!(service.end(timer), Outcome::Done));
        let other = service.clone();
        let trimmer = thread(move || other.trim().unwrap());
        let mut timers = [(); 6].map(|()| start());
        trimmer.join().unwrap();
        timers.sort_unstable();
        assert!(timers.is_sorted_by(|a, b| a < b));
        service.forward(9);
        assert_eq!((service.turn0(), seen.fired()), (6, 6));
        assert_eq!(service.quiet().pending, 0);
        threads::leave(true);
    });
}
