//! Orders and parts of persons, for tests of accumulators.

/// The items in an order that a number decides, each with its new position.
pub(crate) fn shuffled<T: Clone>(items: &[T], order: u64) -> Vec<(usize, T)> {
    let mut state = order | 1;
    let mut keyed: Vec<(u64, T)> = items
        .iter()
        .map(|item| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 32, item.clone())
        })
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, item)| item).enumerate().collect()
}

/// What accumulators of parts of persons, taken in any order and merged, have in the end.
pub(crate) fn in_parts<P: Clone, A: Clone>(
    persons: &[P],
    order: u64,
    empty: &A,
    add: impl Fn(&mut A, &P),
    merge: impl Fn(&mut A, A),
) -> A {
    let parts = 1 + (order % 4) as usize;
    let mut some = vec![empty.clone(); parts];
    for (at, person) in shuffled(persons, order) {
        add(&mut some[at % parts], &person);
    }
    let mut all = empty.clone();
    some.into_iter().rev().for_each(|part| merge(&mut all, part));
    all
}
