//! Rows of a PostHog events export: `uuid`, `event`, `timestamp`, `distinct_id`,
//! `elements_chain`, and `properties`, `set` and `set_once` as object or as JSON text.
//!
//! Columns about the person at the time of the export (`person_id`, `person_properties`)
//! and about the export are omitted: persons are created again from the events.

use super::jsonl;
use crate::event::Draft;
use crate::object::LineObject;

/// The property with the chain of clicked elements.
const ELEMENTS_CHAIN: &str = "$elements_chain";

pub(super) fn draft(mut line: LineObject<'_>) -> Draft<'_> {
    let chain = line.take("elements_chain").filter(|chain| chain != "\"\"");
    let address = line.take("ip").filter(|address| address != "\"\"");
    let mut draft = jsonl::draft(line);
    if let Some(chain) = chain {
        draft.properties.add(ELEMENTS_CHAIN, chain);
    }
    if let Some(address) = address {
        draft.properties.add("$ip", address);
    }
    draft
}
