//! Chooses the time zone of the page: the viewer's, or UTC. The key `u` switches. The times
//! of the page follow (`ui::time`).

use leptos::prelude::{document, window};
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Event, KeyboardEvent};

use super::on;
use crate::ui::keyboard::is_free;
use crate::ui::time::{LOCAL_ZONE_ATTR, ZONE_CHANGED, begins_local};

pub(super) fn start() {
    begin();
    on("keydown", |event, target| {
        let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
        if is_free(event, target, "u") {
            show(!is_local());
        }
    });
}

/// Shows times in the zone that the viewer prefers.
pub(crate) fn begin() {
    show(begins_local());
}

fn is_local() -> bool {
    document().document_element().is_some_and(|page| page.has_attribute(LOCAL_ZONE_ATTR))
}

fn show(local: bool) {
    if let Some(page) = document().document_element() {
        let _ = page.toggle_attribute_with_force(LOCAL_ZONE_ATTR, local);
    }
    if let Ok(event) = Event::new(ZONE_CHANGED) {
        let _ = window().dispatch_event(&event);
    }
}
