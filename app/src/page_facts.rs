//! Facts about the request of a page that its drawing needs, in the browser too: the
//! server writes them into the document.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::preferences::NumberFormat;

#[cfg(not(feature = "ssr"))]
use crate::server_fns::account::Viewer;
use crate::ui::field::{Typed, provide_typed_values};
use crate::ui::page_data::PageData;
use crate::ui::time::provide_zone;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct PageFacts {
    /// Scheme and host to which clients can send events.
    pub(crate) origin: String,
    /// How the viewer writes numbers.
    numbers: NumberFormat,
    /// Values of a form that was not saved, without secrets.
    typed: Vec<(String, String)>,
    /// The notice of the form that led to this page, as in its cookie.
    pub(crate) notice: Option<String>,
}

/// Provides the facts to all components.
pub(crate) fn provide() {
    let facts = SharedValue::new(|| PageData::of(of_request())).into_inner();
    let facts = facts.get::<PageFacts>().unwrap_or_default();
    provide_context(Numbers(RwSignal::new(facts.numbers)));
    provide_typed_values(Typed::new(facts.typed.clone()));
    provide_context(facts);
    provide_zone();
}

/// How the viewer writes numbers.
#[derive(Clone, Copy)]
struct Numbers(RwSignal<NumberFormat>);

/// The viewer's number format.
pub(crate) fn number_format() -> NumberFormat {
    use_context::<Numbers>().map(|numbers| numbers.0.get_untracked()).unwrap_or_default()
}

/// Draws again when the viewer chooses another number format.
pub(crate) fn track_number_format() {
    if let Some(numbers) = use_context::<Numbers>() {
        numbers.0.track();
    }
}

/// Applies the preferences of the viewer to the document. They change without a new
/// document when the user signs in, or chooses others.
#[cfg(not(feature = "ssr"))]
pub(crate) fn apply_preferences(viewer: &Viewer) {
    use crate::behaviours::times;
    use crate::theme::Theme;
    use crate::ui::time::PREFERRED_ZONE_ATTR;

    let Some(root) = document().document_element() else { return };
    let set = |name: &str, value: Option<&str>| {
        if root.get_attribute(name).as_deref() == value {
            return false;
        }
        let _ = match value {
            Some(value) => root.set_attribute(name, value),
            None => root.remove_attribute(name),
        };
        true
    };
    let scheme = match viewer.theme {
        Theme::System => "light dark",
        Theme::Light => "light",
        Theme::Dark => "dark",
    };
    set("data-theme", Some(viewer.theme.word()));
    if let Ok(Some(meta)) = document().query_selector("meta[name=color-scheme]") {
        let _ = meta.set_attribute("content", scheme);
    }
    let preferences = &viewer.preferences;
    set("data-rows", Some(preferences.rows.word()));
    set("data-shortcuts", (!preferences.shortcuts).then_some("off"));
    if set(PREFERRED_ZONE_ATTR, preferences.zone.name()) {
        times::begin();
    }
    if let Some(numbers) = use_context::<Numbers>()
        && numbers.0.get_untracked() != preferences.numbers
    {
        numbers.0.set(preferences.numbers);
    }
}

pub(crate) fn page_facts() -> PageFacts {
    use_context().unwrap_or_default()
}

#[cfg(feature = "ssr")]
fn of_request() -> PageFacts {
    let Some(visit) = crate::context::visit() else { return PageFacts::default() };
    PageFacts {
        origin: visit.origin,
        numbers: visit.preferences.numbers,
        typed: visit.typed,
        notice: visit.notice.map(|notice| notice.text_in_cookie()),
    }
}

/// Without a server's document, clients send events to where the app comes from.
#[cfg(not(feature = "ssr"))]
fn of_request() -> PageFacts {
    PageFacts { origin: window().location().origin().unwrap_or_default(), ..PageFacts::default() }
}
