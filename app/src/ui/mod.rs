//! Parts that pages are made of. They know nothing of resources; most of them
//! are native elements with a class, so that they work without scripts.

pub(crate) mod alert;
pub(crate) mod bytes;
pub(crate) mod copy;
pub(crate) mod field;
pub(crate) mod form;
pub(crate) mod icon;
pub(crate) mod json;
pub(crate) mod keyboard;
pub(crate) mod menu;
pub(crate) mod page_head;
pub(crate) mod panel;
pub(crate) mod password;
pub(crate) mod tabs;
pub(crate) mod time;

use leptos::html::ElementType;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;

/// Moves the focus to an element once it is on the page.
pub(crate) fn focus<E>(element: NodeRef<E>)
where
    E: ElementType + 'static,
    E::Output: AsRef<web_sys::HtmlElement> + Clone + JsCast + 'static,
{
    request_animation_frame(move || {
        if let Some(element) = element.get_untracked() {
            // Not focusable any more: it was taken away meanwhile.
            let element: &web_sys::HtmlElement = element.as_ref();
            let _ = element.focus();
        }
    });
}
