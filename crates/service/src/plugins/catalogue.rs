//! The catalogue of plugins that can be installed.
//!
//! What belongs here: what the service brings along. What does not: plugins of
//! organizations.

use weir_model::plugins::overview::CatalogueEntry;

/// All entries, in the order in which they are shown. Nothing is brought along
/// yet.
pub(super) fn entries() -> Vec<CatalogueEntry> {
    Vec::new()
}
