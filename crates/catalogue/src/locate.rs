//! Locations of IP addresses, which the step `location` gets from its host.

use std::net::IpAddr;

/// A database of locations.
pub trait Locate: Send + Sync {
    /// The location of an address: names such as `city_name`, without `$geoip_`, each
    /// with the JSON text of its value.
    fn locate(&self, address: IpAddr) -> Vec<(&'static str, String)>;
}

/// The precision of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// All known data.
    Exact,
    /// The city, without the position and the postal code.
    City,
    /// The country and its subdivisions.
    Region,
    /// Only the country.
    Country,
}

impl Precision {
    /// The words in configs.
    pub(crate) const WORDS: &'static [&'static str] = &["exact", "city", "region", "country"];

    /// The precision of this word.
    pub(crate) fn of(word: &str) -> Option<Self> {
        [Self::Exact, Self::City, Self::Region, Self::Country]
            .into_iter()
            .zip(Self::WORDS)
            .find_map(|(precision, text)| (*text == word).then_some(precision))
    }

    /// Whether it includes this part of a location. Unknown parts count as exact.
    pub(crate) fn shows(self, part: &str) -> bool {
        let is_country = part.starts_with("country_") || part.starts_with("continent_");
        match self {
            Self::Exact => true,
            Self::City => {
                is_country
                    || part.starts_with("subdivision_")
                    || matches!(part, "city_name" | "time_zone")
            }
            Self::Region => is_country || part.starts_with("subdivision_") || part == "time_zone",
            Self::Country => is_country,
        }
    }
}
