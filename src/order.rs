//! Puts what was taken from a queue in order.
//!
//! Ground rules: plain memory of the caller's; nothing is allocated; what has the same key keeps its order. (The standard
//! library's stable sort allocates. Its other one would need each event's place as a second key, for which an event has
//! no room.)
//!
//! What waits in a lane is in order but for a few, or is some parts in a row that each are in order, as each turn
//! delivers in order. So each half is put in order, which most often is but a look at it, and the halves are merged in
//! place, by turning round what lies between (as in SymMerge of Kim and Kutzner). What is in order already costs one
//! look at each; one out of its place, a few looks more and one move of what lies between. At worst it is n times the
//! square of log n, so no host makes it slow by what it starts; inserting one by one would be quadratic.

/// Puts `part` in the order of `key`; what has the same key stays in order.
pub(crate) fn put_in_order<T>(part: &mut [T], key: impl Fn(&T) -> u64 + Copy) {
    if part.is_sorted_by_key(key) {
        return;
    }
    let middle = part.len() / 2;
    put_in_order(&mut part[..middle], key);
    put_in_order(&mut part[middle..], key);
    merge(part, middle, key);
}

/// Merges what is before `middle` with what is not; each is in order.
fn merge<T>(part: &mut [T], middle: usize, key: impl Fn(&T) -> u64 + Copy) {
    let (left, right) = part.split_at(middle);
    let (Some(last), Some(first)) = (left.last(), right.first()) else { return };
    let (least, most) = (key(first), key(last));
    if most <= least {
        return;
    }
    // What is in its place already stays out of it.
    let begin = left.partition_point(|item| key(item) <= least);
    let end = middle + right.partition_point(|item| key(item) < most);
    let (part, middle) = (&mut part[begin..end], middle - begin);
    let (left, right) = part.split_at(middle);
    // Halves the longer one, and the other where its middle belongs.
    let (from, to) = if left.len() >= right.len() {
        let from = left.len() / 2;
        let pivot = key(&left[from]);
        (from, right.partition_point(|item| key(item) < pivot))
    } else {
        let to = right.len() / 2;
        let pivot = key(&right[to]);
        (left.partition_point(|item| key(item) <= pivot), to)
    };
    part[from..middle + to].rotate_left(middle - from);
    let (lower, upper) = part.split_at_mut(from + to);
    merge(lower, from, key);
    merge(upper, middle - from, key);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// An event's size; the key, and where it was.
    type Item = (u64, usize, [u64; 3]);

    fn items(keys: impl IntoIterator<Item = u64>) -> Vec<Item> {
        keys.into_iter().enumerate().map(|(place, key)| (key, place, [0; 3])).collect()
    }

    /// Puts them in order; how many keys were looked at for that.
    fn looks(keys: impl IntoIterator<Item = u64>) -> usize {
        let mut found = items(keys);
        let mut wanted = found.clone();
        wanted.sort_by_key(|item| item.0);
        let looks = Cell::new(0);
        let key = |item: &Item| {
            looks.set(looks.get() + 1);
            item.0
        };
        put_in_order(&mut found, key);
        assert!(found == wanted, "in order, and stable");
        looks.get()
    }

    proptest! {
        #[test]
        fn it_is_in_order_and_stable(keys in proptest::collection::vec(0..20_u64, 0..200)) {
            looks(keys);
        }

        #[test]
        fn runs_are_merged(runs in proptest::collection::vec((0..50_u64, 0..40_u64), 0..8)) {
            looks(runs.into_iter().flat_map(|(from, count)| from..from + count));
        }
    }

    #[test]
    fn the_cost_follows_the_disorder() {
        let all = 100_000;
        let at_the_end = |key| (1..=all).chain([key]);
        assert!(looks(0..all) <= all as usize + 1);
        for key in [0, all / 3, all - 1] {
            assert!(looks(at_the_end(key)) <= 5 * all as usize);
        }
        assert!(looks((0..all).chain(0..all)) <= 20 * all as usize);
    }

    #[test]
    fn the_worst_is_not_quadratic() {
        let all = 100_000_u64;
        let scattered = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let combed = |n: u64| n % 2 * 100_000 + n;
        for keys in [|n| 100_000 - n, scattered, combed, |n| n % 7] {
            assert!(looks((0..all).map(keys)) < 140 * all as usize);
        }
    }
}
