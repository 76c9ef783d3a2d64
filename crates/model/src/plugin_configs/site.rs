//! Code for visited pages, as browser libraries are told of it (PLG-22).

use serde::Serialize;

/// An app that a browser library is to load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteApp {
    /// The id of its config.
    pub id: String,
    /// The path of its code. Another one after every change.
    pub url: String,
    /// Always `site_app`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}
