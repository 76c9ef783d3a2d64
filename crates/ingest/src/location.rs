//! Where an address is, from a database file that the operator supplies (MaxMind's
//! format, `$geoip_…`; ING-48).
//!
//! What belongs here: the file, and the properties that an address adds to an event. What
//! does not: which address an event has.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use maxminddb::{MaxMindDbError, Reader, geoip2::City};

/// Properties of a location. The second name is the one under which a person keeps the
/// first value.
const NAMES: [(&str, &str); 13] = [
    ("$geoip_city_name", "$initial_geoip_city_name"),
    ("$geoip_country_name", "$initial_geoip_country_name"),
    ("$geoip_country_code", "$initial_geoip_country_code"),
    ("$geoip_continent_name", "$initial_geoip_continent_name"),
    ("$geoip_continent_code", "$initial_geoip_continent_code"),
    ("$geoip_postal_code", "$initial_geoip_postal_code"),
    ("$geoip_latitude", "$initial_geoip_latitude"),
    ("$geoip_longitude", "$initial_geoip_longitude"),
    ("$geoip_accuracy_radius", "$initial_geoip_accuracy_radius"),
    ("$geoip_time_zone", "$initial_geoip_time_zone"),
    ("$geoip_subdivision_1_code", "$initial_geoip_subdivision_1_code"),
    ("$geoip_subdivision_1_name", "$initial_geoip_subdivision_1_name"),
    ("$geoip_subdivision_2_code", "$initial_geoip_subdivision_2_code"),
];

/// The database file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` cannot be used as a database of locations")]
pub struct LocationError {
    path: PathBuf,
    #[source]
    source: MaxMindDbError,
}

/// A database of locations, held in memory.
pub struct Locations {
    reader: Reader<Vec<u8>>,
}

/// One property of a location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    pub(crate) name: &'static str,
    /// The name under which a person keeps the first value.
    pub(crate) initial: &'static str,
    /// The value as JSON text.
    pub(crate) value: String,
}

impl Locations {
    /// Reads a database file.
    ///
    /// # Errors
    /// When the file cannot be read or has another format.
    pub fn open(path: &Path) -> Result<Self, LocationError> {
        let reader = Reader::open_readfile(path)
            .map_err(|source| LocationError { path: path.to_owned(), source })?;
        Ok(Self { reader })
    }

    /// The location of an address as properties with their JSON text. Empty if the
    /// address is unknown.
    pub fn properties(&self, address: IpAddr) -> Vec<(&'static str, String)> {
        let found = self.find(&address.to_string()).into_iter();
        found.map(|located| (located.name, located.value)).collect()
    }

    /// The whole record of an address as it is in the file, or `None` if the file has
    /// none.
    pub fn record(&self, address: IpAddr) -> Option<serde_json::Value> {
        // A damaged entry of the file counts as an unknown address.
        self.reader.lookup(address).ok()?.decode().ok()?
    }

    /// The location of an address as properties. Empty if the text is not an address.
    pub(crate) fn find(&self, address: &str) -> Vec<Located> {
        let Ok(address) = address.parse::<IpAddr>() else { return Vec::new() };
        // A damaged entry of the file counts as an unknown address.
        let found = self.reader.lookup(address).and_then(|found| found.decode::<City<'_>>());
        let Ok(Some(city)) = found else { return Vec::new() };
        let mut located = Vec::new();
        let mut text = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                put(&mut located, name, weir_json::quoted(value));
            }
        };
        text("$geoip_city_name", city.city.names.english);
        text("$geoip_country_name", city.country.names.english);
        text("$geoip_country_code", city.country.iso_code);
        text("$geoip_continent_name", city.continent.names.english);
        text("$geoip_continent_code", city.continent.code);
        text("$geoip_postal_code", city.postal.code);
        text("$geoip_time_zone", city.location.time_zone);
        let mut parts = city.subdivisions.iter();
        if let Some(first) = parts.next() {
            text("$geoip_subdivision_1_code", first.iso_code);
            text("$geoip_subdivision_1_name", first.names.english);
        }
        text("$geoip_subdivision_2_code", parts.next().and_then(|second| second.iso_code));
        let numbers = [
            ("$geoip_latitude", city.location.latitude),
            ("$geoip_longitude", city.location.longitude),
            ("$geoip_accuracy_radius", city.location.accuracy_radius.map(f64::from)),
        ];
        for (name, number) in numbers {
            if let Some(number) = number.and_then(serde_json::Number::from_f64) {
                put(&mut located, name, number.to_string());
            }
        }
        located
    }
}

fn put(located: &mut Vec<Located>, name: &str, value: String) {
    if let Some((name, initial)) = NAMES.iter().find(|(known, _)| *known == name) {
        located.push(Located { name, initial, value });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;

    use super::Locations;

    /// A database with invented locations of addresses that are reserved for
    /// documentation.
    pub(crate) fn places() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/places.mmdb")
    }

    #[test]
    fn an_address_becomes_properties() {
        let locations = Locations::open(&places()).unwrap();
        let found = locations.find("203.0.113.7");
        let of = |name: &str| {
            found.iter().find(|located| located.name == name).map(|located| located.value.as_str())
        };
        assert_eq!(of("$geoip_city_name"), Some("\"Weirhaven\""));
        assert_eq!(of("$geoip_country_code"), Some("\"WR\""));
        assert_eq!(of("$geoip_latitude"), Some("53.25"));
        assert_eq!(of("$geoip_accuracy_radius"), Some("20.0"));
        assert_eq!(of("$geoip_subdivision_1_name"), Some("\"Upper Weir\""));
        assert_eq!(of("$geoip_subdivision_2_code"), None);
        for nowhere in ["198.51.100.1", "2001:db8::1", "nonsense", ""] {
            assert_eq!(locations.find(nowhere), [], "{nowhere}");
        }
    }

    #[test]
    fn another_file_is_refused() {
        let other = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let refused = Locations::open(&other).err().unwrap();
        assert!(refused.to_string().contains("Cargo.toml"));
    }
}
