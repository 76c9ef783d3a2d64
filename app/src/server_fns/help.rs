//! The user guide.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter, ui_error};
use crate::error::UiError;

/// Pages under one heading of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuideSection {
    /// The heading.
    pub(crate) title: String,
    /// Name and title of each page.
    pub(crate) pages: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuidePage {
    pub(crate) title: String,
    /// The text below the title, as HTML.
    pub(crate) html: String,
}

/// Lists the pages of the guide by section.
#[server(prefix = "/_fn", endpoint = "list_help_pages")]
pub(crate) async fn list_help_pages() -> Result<Vec<GuideSection>, UiError> {
    use crate::help::{IndexSection, index};

    enter()?;
    let section = |IndexSection { title, pages }| GuideSection { title, pages };
    Ok(index().into_iter().map(section).collect())
}

/// Returns the page of the guide with this name.
#[server(prefix = "/_fn", endpoint = "get_help_page")]
pub(crate) async fn get_help_page(name: String) -> Result<GuidePage, UiError> {
    use crate::help::{Page, page};

    enter()?;
    let Page { title, html } =
        page(&name).ok_or_else(|| ui_error(weir_service::Error::NotFound("Not found.")))?;
    Ok(GuidePage { title, html })
}
