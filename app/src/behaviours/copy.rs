//! Copies code to the clipboard.

use std::time::Duration;

use leptos::prelude::{set_timeout, window};
use web_sys::Element;

use super::{closest, on, within, write};

/// `data-copy` on a button: copies the first code in the nearest `data-copyable`
/// ancestor.
pub(super) fn start() {
    on("click", |_, target| {
        let Some(button) = closest(target, "[data-copy]") else { return };
        let code: Option<Element> =
            closest(&button, "[data-copyable]").and_then(|around| within(&around, "code"));
        let Some(text) = code.and_then(|code| code.text_content()) else { return };
        // If the browser refuses, users can still select the text.
        let _ = window().navigator().clipboard().write_text(&text);
        say(&button, "Copied");
        set_timeout(move || say(&button, "Copy"), Duration::from_secs(2));
    });
}

fn say(button: &Element, word: &str) {
    if let Some(label) = within::<Element>(button, "[data-copy-label]") {
        write(&label, word);
    }
    let _ = button.class_list().toggle_with_force("copied", word == "Copied");
}
