//! The filter of a section: which keys it does not have.
//!
//! In the file: seed (eight bytes), length of a segment, its mask, length of all segments
//! but two, number of fingerprints (four bytes each), then the fingerprints.

use twox_hash::XxHash64;
use xorf::{BinaryFuse8, BinaryFuse16, Descriptor, Filter as _};

use super::{FilterSize, KeyBytes, Numbers};

/// The hash of a key. It must never change: filters in files were built with it.
pub(super) fn hash(key: &KeyBytes) -> u64 {
    XxHash64::oneshot(0, key)
}

/// A filter in memory.
pub(super) enum Filter {
    Eight(BinaryFuse8),
    Sixteen(BinaryFuse16),
}

impl Filter {
    /// A filter that admits these hashes. `None`: it could not be built, which does not
    /// happen with hashes of distinct keys.
    ///
    /// This takes about 30 bytes of memory for each hash for a moment.
    pub(super) fn build(mut hashes: Vec<u64>, size: FilterSize) -> Option<Self> {
        // Two keys may have the same hash; the filter wants it once.
        hashes.sort_unstable();
        hashes.dedup();
        let filter = match size {
            FilterSize::Eight => Self::Eight(BinaryFuse8::try_from(&hashes[..]).ok()?),
            FilterSize::Sixteen => Self::Sixteen(BinaryFuse16::try_from(&hashes[..]).ok()?),
        };
        // A filter that denies a key would let its event be stored a second time.
        hashes.iter().all(|hash| filter.may_have(*hash)).then_some(filter)
    }

    /// Whether a key with this hash may be in the section.
    pub(super) fn may_have(&self, hash: u64) -> bool {
        match self {
            Self::Eight(filter) => filter.contains(&hash),
            Self::Sixteen(filter) => filter.contains(&hash),
        }
    }

    /// Memory that the filter takes, bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Eight(filter) => size_of_val(&*filter.fingerprints),
                Self::Sixteen(filter) => size_of_val(&*filter.fingerprints),
            }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let descriptor = match self {
            Self::Eight(filter) => &filter.descriptor,
            Self::Sixteen(filter) => &filter.descriptor,
        };
        let mut bytes = descriptor.seed.to_be_bytes().to_vec();
        let lengths = [
            descriptor.segment_length,
            descriptor.segment_length_mask,
            descriptor.segment_count_length,
        ];
        bytes.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
        let count = match self {
            Self::Eight(filter) => filter.fingerprints.len(),
            Self::Sixteen(filter) => filter.fingerprints.len(),
        };
        bytes.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        match self {
            Self::Eight(filter) => bytes.extend_from_slice(&filter.fingerprints),
            Self::Sixteen(filter) => {
                bytes.extend(filter.fingerprints.iter().flat_map(|print| print.to_be_bytes()));
            }
        }
        bytes
    }

    /// `None`: the bytes are no filter of this size.
    pub(super) fn from_bytes(bytes: &[u8], size: FilterSize) -> Option<Self> {
        let mut numbers = Numbers(bytes);
        let descriptor = Descriptor {
            seed: numbers.u64()?,
            segment_length: numbers.u32()?,
            segment_length_mask: numbers.u32()?,
            segment_count_length: numbers.u32()?,
        };
        let count = usize::try_from(numbers.u32()?).ok()?;
        // So that every look-up stays within the fingerprints.
        let length = descriptor.segment_length;
        let end = u64::from(descriptor.segment_count_length) + 2 * u64::from(length);
        if !length.is_power_of_two()
            || descriptor.segment_length_mask != length - 1
            || !descriptor.segment_count_length.is_multiple_of(length)
            || end > count as u64
        {
            return None;
        }
        let prints = numbers.0;
        match size {
            FilterSize::Eight => (prints.len() == count)
                .then(|| Self::Eight(BinaryFuse8 { descriptor, fingerprints: prints.into() })),
            FilterSize::Sixteen => {
                let (prints, rest) = prints.as_chunks::<2>();
                let fingerprints = prints.iter().map(|print| u16::from_be_bytes(*print)).collect();
                (rest.is_empty() && prints.len() == count)
                    .then_some(Self::Sixteen(BinaryFuse16 { descriptor, fingerprints }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_admits_its_keys_and_few_others_also_after_reading() {
        for (size, most) in [(FilterSize::Eight, 90), (FilterSize::Sixteen, 4)] {
            for count in [0, 1, 2, 3, 10, 431, 10_000] {
                let mut hashes: Vec<u64> = (0..count)
                    .map(|n: u64| hash(&[n.to_be_bytes(); 3].as_flattened().try_into().unwrap()))
                    .collect();
                hashes.extend_from_within(..hashes.len() / 2);
                let filter = Filter::build(hashes.clone(), size).unwrap();
                let bytes = filter.to_bytes();
                let read = Filter::from_bytes(&bytes, size).unwrap();
                assert_eq!(read.to_bytes(), bytes);
                assert!(hashes.iter().all(|hash| read.may_have(*hash)));
                let others = (0..10_000_u64).filter(|n| {
                    let other = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (1 << 17);
                    read.may_have(other)
                });
                assert!(count < 431 || others.count() <= most, "{size:?} {count}");
            }
        }
    }

    #[test]
    fn bytes_that_would_lead_outside_are_no_filter() {
        let size = FilterSize::Sixteen;
        let bytes = Filter::build((0..1_000).collect(), size).unwrap().to_bytes();
        assert!(Filter::from_bytes(&bytes[..bytes.len() - 2], size).is_none());
        assert!(Filter::from_bytes(&bytes[..10], size).is_none());
        assert!(Filter::from_bytes(&bytes, FilterSize::Eight).is_none());
        for at in 8..24 {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x40;
            assert!(Filter::from_bytes(&wrong, size).is_none(), "{at}");
        }
    }

    #[test]
    fn the_hash_is_fixed() {
        assert_eq!(hash(&[0; 24]), 0xBB33_02E8_A960_8868);
    }
}
