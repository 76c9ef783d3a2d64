//! Pseudo-random numbers that are the same each time (splitmix64).

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of a list, which must not be empty.
    pub(crate) fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let index = self.index(list.len());
        &list[index]
    }

    /// The index of an element of a list of this length, which must not be zero.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        let end = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.below(end)).unwrap_or(0)
    }

    /// An index, each as often as its weight says.
    pub(crate) fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return index,
            }
        }
        0
    }

    pub(crate) fn bits(&mut self) -> u128 {
        u128::from(self.number()) << 64 | u128::from(self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn numbers_are_the_same_each_time_and_as_frequent_as_their_weights() {
        let mut random = Random::new(7);
        let mut again = Random::new(7);
        let mut found = [0; 3];
        for _ in 0..1_000 {
            let index = random.weighted(&[1, 0, 3]);
            assert_eq!(index, again.weighted(&[1, 0, 3]));
            found[index] += 1;
        }
        assert_eq!(found[1], 0);
        assert!((150..350).contains(&found[0]), "{found:?}");
    }
}
