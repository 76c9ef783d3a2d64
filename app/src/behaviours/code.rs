//! Submits a six-digit sign-in code when its last digit is entered.

use web_sys::{HtmlElement, HtmlInputElement};

use super::{closest, on, within};

/// Length of a code, in digits.
const DIGITS: usize = 6;

/// `data-submits-code` on an element around a field: submits its form at the sixth digit,
/// and announces it to screen readers.
pub(super) fn start() {
    on("input", |_, target| {
        let Some(around) = closest(target, "[data-submits-code]") else { return };
        let Some(input) = within::<HtmlInputElement>(&around, "input") else { return };
        let typed = input.value();
        let digits = typed.chars().filter(char::is_ascii_digit).count();
        let is_code = typed.chars().all(|c| c.is_ascii_digit() || c.is_whitespace());
        if !is_code || digits != DIGITS {
            return;
        }
        if let Some(status) = within::<HtmlElement>(&around, "[data-code-status]") {
            super::write(&status, "The code is complete. Signing in...");
        }
        let form = closest(target, "form");
        let button = form.and_then(|form| within::<HtmlElement>(&form, "button[type=submit]"));
        if let Some(button) = button {
            button.click();
        }
    });
}
