//! Shows times in the viewer's time zone. The key `u` switches to UTC and back. Islands
//! are notified and redraw their own times.

use leptos::prelude::{document, window};
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, Event, KeyboardEvent};

use super::{each, on};
use crate::ui::keyboard::is_free;
use crate::ui::time::{
    LOCAL_ZONE_ATTR, ZONE_CHANGED, ZONE_OF_PROJECT, begins_local, title, to_the_minute,
};

/// Acts on `time.time` outside of islands.
pub(super) fn start() {
    show(begins_local());
    on("keydown", |event, target| {
        let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
        if is_free(event, target, "u") {
            show(!is_local());
        }
    });
}

/// Draws all times, for example after elements were added.
pub(super) fn again() {
    show(is_local());
}

fn is_local() -> bool {
    document().document_element().is_some_and(|page| page.has_attribute(LOCAL_ZONE_ATTR))
}

fn show(local: bool) {
    if let Some(page) = document().document_element() {
        let _ = page.toggle_attribute_with_force(LOCAL_ZONE_ATTR, local);
    }
    let project = document().query_selector(&format!("[{ZONE_OF_PROJECT}]")).ok().flatten();
    let project = project.and_then(|of| of.get_attribute(ZONE_OF_PROJECT));
    each::<Element>("time.time:not(leptos-island *)", |time| {
        if let Some(iso) = time.get_attribute("datetime") {
            time.set_text_content(Some(&to_the_minute(&iso, local)));
            let _ = time.set_attribute("title", &title(&iso, true, project.as_deref()));
        }
    });
    if let Ok(event) = Event::new(ZONE_CHANGED) {
        let _ = window().dispatch_event(&event);
    }
}
