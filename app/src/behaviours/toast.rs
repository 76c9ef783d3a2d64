//! Removes messages about completed actions after some time, unless the user is reading
//! or using them.

use std::time::Duration;

use leptos::prelude::{document, set_timeout};
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement};

use super::{closest, each, on, within};

/// Screen readers do not announce text that is in the page from the beginning. The
/// message is therefore set again after this delay.
const MOMENT: Duration = Duration::from_millis(300);
const SECOND: Duration = Duration::from_secs(1);

/// `data-toast`: the time that the message is shown, in seconds.
pub(super) fn start() {
    each::<Element>("[data-toast]", |toast| {
        let toast = toast.clone();
        let seconds = toast.get_attribute("data-toast").and_then(|text| text.parse().ok());
        set_timeout(
            move || {
                if let Some(text) = within::<Element>(&toast, "[data-toast-text]") {
                    text.set_text_content(text.text_content().as_deref());
                }
                count_down(toast, seconds.unwrap_or(6));
            },
            MOMENT,
        );
    });
    on("click", |_, target| {
        if let Some(toast) = closest(target, "[data-toast-close]")
            .and_then(|button| closest(&button, "[data-toast]"))
        {
            toast.remove();
            let main = document().get_element_by_id("main");
            if let Some(main) = main.and_then(|main| main.dyn_into::<HtmlElement>().ok()) {
                let _ = main.focus();
            }
        }
    });
}

fn count_down(toast: Element, seconds: u32) {
    if seconds == 0 {
        toast.remove();
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
