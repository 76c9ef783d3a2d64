//! Code for visited pages, as it is announced to browser libraries (PLG-22).

use serde::Serialize;

/// An app that a browser library loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteApp {
    /// The id of its config.
    pub id: String,
    /// The path of its code. It changes with every change of the config.
    pub url: String,
    /// Always `site_app`.
    #[serde(rename = "type")]
    pub kind: &'static str,
}
