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
}
