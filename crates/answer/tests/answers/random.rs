//! Numbers that another one chooses.

/// Numbers that another one chooses.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15 | 1)
    }

    pub(crate) fn below(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 >> 33) ^ (self.0 >> 15 & 0xFFFF);
        usize::try_from(mixed).unwrap() % below
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Some of the items, at least one.
    pub(crate) fn some<T: Clone>(&mut self, items: &[T]) -> Vec<T> {
        let mut some = vec![self.pick(items).clone()];
        for item in items {
            if self.one_in(3) {
                some.push(item.clone());
            }
        }
        some
    }
}
