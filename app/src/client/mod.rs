//! What the app keeps in the browser beside the page: navigation, the data of pages that
//! were shown before, and the care for elements before and after a page is drawn again.
//!
//! What does not belong here: pages and components, and behaviours of single elements
//! (`behaviours`).

pub(crate) mod ahead;
pub(crate) mod cache;
pub(crate) mod cookie;
pub(crate) mod navigation;
pub(crate) mod paint;
pub(crate) mod post;
pub(crate) mod redraw;

use std::rc::Rc;

use leptos::prelude::*;

/// Whether the document of the server is being taken over.
pub(crate) fn is_hydrating() -> bool {
    let shared = Owner::current_shared_context();
    shared.is_some_and(|shared| shared.during_hydration())
}

/// Acts when the document of the server is taken over completely, or immediately if the
/// browser draws alone.
pub(crate) fn when_hydrated(act: impl FnOnce() + 'static) {
    let shared = Owner::current_shared_context();
    let is_hydrating = move || shared.as_ref().is_some_and(|shared| shared.during_hydration());
    wait(Rc::new(is_hydrating), act);
}

fn wait(is_hydrating: Rc<dyn Fn() -> bool>, act: impl FnOnce() + 'static) {
    request_animation_frame(move || {
        if is_hydrating() {
            wait(is_hydrating, act);
        } else {
            act();
        }
    });
}
