//! One bit for each row of a group.

/// Bits that are numbered from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    length: usize,
}

impl Bits {
    /// Makes it `length` bits, none of which is set. Its memory is used again.
    pub fn reset(&mut self, length: usize) {
        self.words.clear();
        self.words.resize(length.div_ceil(64), 0);
        self.length = length;
    }

    /// Makes it `length` bits, all of which are set.
    pub fn fill(&mut self, length: usize) {
        self.reset(length);
        self.words.fill(u64::MAX);
        let rest = length % 64;
        if let Some(last) = self.words.last_mut().filter(|_| rest > 0) {
            *last = (1 << rest) - 1;
        }
    }

    /// Clears the bits that are not set in others.
    pub fn intersect(&mut self, others: &Self) {
        for (at, word) in self.words.iter_mut().enumerate() {
            *word &= others.words.get(at).copied().unwrap_or(0);
        }
    }

    /// Clears the bits that are set in others.
    pub fn subtract(&mut self, others: &Self) {
        for (word, other) in self.words.iter_mut().zip(&others.words) {
            *word &= !other;
        }
    }

    /// Sets the bits that are set in others of the same length.
    pub fn unite(&mut self, others: &Self) {
        for (word, other) in self.words.iter_mut().zip(&others.words) {
            *word |= other;
        }
    }

    /// Whether no bit is set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Sets a bit, if there is one of this number.
    pub fn set(&mut self, at: usize) {
        if at < self.length
            && let Some(word) = self.words.get_mut(at / 64)
        {
            *word |= 1 << (at % 64);
        }
    }

    /// Whether a bit is set. One that does not exist is not.
    pub fn get(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// The number of bits that are set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The numbers of the bits that are set, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.checked_sub(1)?;
                Some(at * 64 + bit as usize)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_set_until_the_next_reset() {
        let mut bits = Bits::default();
        for length in [0, 1, 63, 64, 65, 200] {
            bits.reset(length);
            assert_eq!(bits.count(), 0);
            let set: Vec<usize> = (0..length).filter(|at| at % 3 == 0 || at % 64 == 63).collect();
            for at in &set {
                bits.set(*at);
                bits.set(*at);
            }
            bits.set(length);
            bits.set(usize::MAX);
            assert_eq!(bits.ones().collect::<Vec<_>>(), set, "{length}");
            assert_eq!(bits.count(), set.len());
            for at in 0..length + 64 {
                assert_eq!(bits.get(at), set.contains(&at), "{at} of {length}");
            }
            assert!(!bits.get(usize::MAX));
        }
    }

    #[test]
    fn bits_are_combined_bit_by_bit() {
        for length in [0, 1, 63, 64, 65, 200] {
            let of = |is_set: &dyn Fn(usize) -> bool| {
                let mut bits = Bits::default();
                bits.reset(length);
                (0..length).filter(|at| is_set(*at)).for_each(|at| bits.set(at));
                bits
            };
            let (twos, threes) = (of(&|at| at % 2 == 0), of(&|at| at % 3 == 0));
            let mut all = Bits::default();
            all.fill(length);
            assert_eq!(all, of(&|_| true));
            let combined = |change: &dyn Fn(&mut Bits)| {
                let mut bits = twos.clone();
                change(&mut bits);
                bits
            };
            assert_eq!(combined(&|bits| bits.intersect(&threes)), of(&|at| at % 6 == 0));
            let expected = of(&|at| at % 2 == 0 && at % 3 != 0);
            assert_eq!(combined(&|bits| bits.subtract(&threes)), expected);
            let expected = of(&|at| at % 2 == 0 || at % 3 == 0);
            assert_eq!(combined(&|bits| bits.unite(&threes)), expected);
            assert_eq!(combined(&|bits| bits.unite(&all)), all);
            assert!(combined(&|bits| bits.subtract(&all)).is_empty());
            assert_eq!(all.is_empty(), length == 0);
        }
    }
}
