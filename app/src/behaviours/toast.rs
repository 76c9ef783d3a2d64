//! Removes messages about completed actions after some time, unless the user is reading
//! or using them.

use std::time::Duration;

use leptos::prelude::{document, set_timeout};
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement};

use super::{closest, each, on, within, write, written};

/// Screen readers do not announce text that is in the page from the beginning. The
/// message is therefore set again after this delay.
const MOMENT: Duration = Duration::from_millis(300);
const SECOND: Duration = Duration::from_secs(1);

/// `data-toast`: the time that the message is shown, in seconds.
pub(super) fn start() {
    on("click", |_, target| {
        if let Some(toast) = closest(target, "[data-toast-close]")
            .and_then(|button| closest(&button, "[data-toast]"))
        {
            close(&toast);
            let main = document().get_element_by_id("main");
            if let Some(main) = main.and_then(|main| main.dyn_into::<HtmlElement>().ok()) {
                let _ = main.focus();
            }
        }
    });
}

/// Announces the message of the page, and removes it in time.
pub(crate) fn shown() {
    set_timeout(
        || {
            each::<Element>("[data-toast]:not([data-toast-counted])", |toast| {
                let _ = toast.set_attribute("data-toast-counted", "");
                if let Some(text) = within::<Element>(toast, "[data-toast-text]") {
                    let said = written(&text);
                    write(&text, "");
                    write(&text, &said);
                }
                let seconds = toast.get_attribute("data-toast").and_then(|text| text.parse().ok());
                count_down(toast.clone(), seconds.unwrap_or(6));
            });
        },
        MOMENT,
    );
}

/// Hides a message. Its component removes it with the next one.
fn close(toast: &Element) {
    let _ = toast.set_attribute("hidden", "");
}

fn count_down(toast: Element, seconds: u32) {
    if seconds == 0 {
        close(&toast);
        return;
    }
    set_timeout(
        move || {
            let in_use = toast.matches(":hover, :focus-within").unwrap_or(false);
            count_down(toast, if in_use { seconds } else { seconds - 1 });
        },
        SECOND,
    );
}
