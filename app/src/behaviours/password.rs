//! Shows and hides passwords.

use web_sys::HtmlInputElement;

use super::{closest, on, within};

/// `data-shows` on a button: shows or hides the field next to it.
pub(super) fn start() {
    on("click", |_, target| {
        let Some(button) = closest(target, "[data-shows]") else { return };
        let input =
            button.parent_element().and_then(|beside| within::<HtmlInputElement>(&beside, "input"));
        if let Some(input) = input {
            let show = input.type_() == "password";
            input.set_type(if show { "text" } else { "password" });
            let _ = button.set_attribute("aria-pressed", if show { "true" } else { "false" });
        }
    });
}
