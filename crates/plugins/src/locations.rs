//! Locations of IP addresses, for steps of the catalogue.

use std::net::IpAddr;
use std::sync::Arc;

use weir_catalogue::{Locate, StepDependencies};
use weir_ingest::location::Locations;

/// Prefix of the properties with locations.
const PREFIX: &str = "$geoip_";

struct AddressLocations(Arc<Locations>);

impl Locate for AddressLocations {
    fn locate(&self, address: IpAddr) -> Vec<(&'static str, String)> {
        let found = self.0.properties(address).into_iter();
        found.filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value))).collect()
    }
}

/// What steps need, with these locations.
pub(crate) fn step_dependencies(locations: Option<&Arc<Locations>>) -> StepDependencies {
    let places = locations.map(|locations| AddressLocations(Arc::clone(locations)));
    StepDependencies { locate: places.map(|places| Arc::new(places) as Arc<dyn Locate>) }
}
