//! Search in a dialog over the page: `Ctrl K`, `⌘ K`, or the search link.
//! Results come from the search page. Its listener for clicks closes the other dialogs too.
//!
//! The dialog is a popover. `showModal` would compute the style of the whole page again before
//! the first paint with the dialog; here the page becomes inert after that paint.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use leptos::prelude::{document, set_timeout};
use leptos::task::spawn_local;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{
    Document, Element, HtmlDialogElement, HtmlElement, HtmlInputElement, KeyboardEvent, MouseEvent,
};

use super::{all_within, closest, each, on, page_at, step, within};
use crate::client::{navigation, paint};
use crate::local_path;

const DIALOG: &str = "palette";
pub(super) const OPEN: &str = "#palette:popover-open";
/// Everything but dialogs.
const PAGE: &str = ".skip, .frame";
/// Delay between the last key and the search.
const PAUSE: Duration = Duration::from_millis(120);

thread_local! {
    /// Number of the newest search. Answers of older searches are ignored.
    static LATEST_SEARCH: Cell<u32> = const { Cell::new(0) };
    /// The text whose results are shown.
    static SHOWN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// `#palette` is the dialog, `data-palette` opens it, `data-closes` closes any dialog.
pub(super) fn start() {
    on("keydown", |event, target| {
        let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
        let with_control = (event.ctrl_key() || event.meta_key()) && !event.alt_key();
        if with_control && !event.shift_key() && event.key().eq_ignore_ascii_case("k") {
            if open() {
                event.prevent_default();
            }
        } else if let Some(dialog) = closest(target, OPEN) {
            handle_key(event, target, &dialog);
        }
    });
    on("click", |event, target| {
        let plain = event.dyn_ref::<MouseEvent>().is_some_and(|event| {
            !event.ctrl_key() && !event.meta_key() && !event.shift_key() && event.button() == 0
        });
        if plain && closest(target, "[data-palette]").is_some() && open() {
            event.prevent_default();
        }
        close(target);
        // Nothing else closes it if the result is the page that is open.
        if plain
            && let Some(result) = closest(target, "#palette a")
            && result.get_attribute("href") == Some(navigation::here())
            && let Some(dialog) = dialog()
        {
            let _ = dialog.hide_popover();
        }
    });
    on("input", |_, target| {
        if target.id() == "palette-q" {
            search_after(PAUSE);
        }
    });
    // Before it closes, because the browser then restores the focus.
    on("beforetoggle", |_, target| {
        if target.id() == DIALOG {
            set_inert(false);
        }
    });
}

fn dialog() -> Option<HtmlDialogElement> {
    document().get_element_by_id(DIALOG)?.dyn_into().ok()
}

fn field() -> Option<HtmlInputElement> {
    within(&dialog()?.into(), "input")
}

/// Opens the dialog, unless another one is open.
fn open() -> bool {
    let Some(dialog) = dialog() else { return false };
    if exists("dialog[open]") || !exists(OPEN) && dialog.show_popover().is_err() {
        return false;
    }
    if let Some(field) = field() {
        let _ = field.focus();
        field.select();
    }
    search_after(Duration::ZERO);
    paint::later(|| {
        if exists(OPEN) {
            set_inert(true);
        }
    });
    true
}

pub(super) fn exists(selector: &str) -> bool {
    document().query_selector(selector).is_ok_and(|element| element.is_some())
}

/// Sets whether the page under the dialog can be used.
pub(crate) fn set_inert(inert: bool) {
    each::<HtmlElement>(PAGE, |part| part.set_inert(inert));
}

/// Closes any dialog on a click on its button or outside of it. The browser restores the
/// focus.
fn close(target: &Element) {
    let is_button = closest(target, "[data-closes]").is_some();
    if (is_button || target.tag_name() == "DIALOG")
        && let Some(dialog) = closest(target, "dialog")
        && let Some(dialog) = dialog.dyn_ref::<HtmlDialogElement>()
    {
        if dialog.id() == DIALOG {
            let _ = dialog.hide_popover();
        } else {
            dialog.close();
        }
    }
}

/// Arrow keys move through the results. Enter in the field opens the first result.
fn handle_key(event: &KeyboardEvent, target: &Element, dialog: &Element) {
    let links = all_within(dialog, "[data-palette-found] a");
    let in_field = target.id() == "palette-q";
    if event.key() == "Enter" && in_field && is_shown(target) {
        if let Some(first) = links.first() {
            event.prevent_default();
            first.click();
        }
        return;
    }
    step(event, target, &links, || field().map(Into::into));
}

/// Whether the shown results belong to the typed text.
fn is_shown(field: &Element) -> bool {
    let typed = field.dyn_ref::<HtmlInputElement>().map(HtmlInputElement::value);
    SHOWN.with_borrow(|shown| shown.is_some() && *shown == typed)
}

/// Searches after a delay, unless more was typed in the meantime.
fn search_after(pause: Duration) {
    let number = LATEST_SEARCH.get().wrapping_add(1);
    LATEST_SEARCH.set(number);
    set_timeout(
        move || {
            if LATEST_SEARCH.get() == number
                && let Some(field) = field()
            {
                spawn_local(load_results(field.value(), number));
            }
        },
        pause,
    );
}

async fn load_results(text: String, number: u32) {
    let page = fetch(&text).await;
    if LATEST_SEARCH.get() != number {
        return;
    }
    let found = page.and_then(|page| page.query_selector("[data-found]").ok().flatten());
    let (html, count) = match &found {
        Some(found) => (found.inner_html(), found.get_attribute("data-count")),
        None => (String::new(), Some("The search gave no answer. Press Enter to try.".to_owned())),
    };
    let Some(dialog) = dialog() else { return };
    if let Some(results) = within::<Element>(&dialog, "[data-palette-found]") {
        results.set_inner_html(&html);
    }
    if let Some(status) = within::<Element>(&dialog, "[data-palette-count]") {
        status.set_text_content(count.as_deref());
    }
    SHOWN.set(found.map(|_| text));
}

/// The search page without its frame.
async fn fetch(text: &str) -> Option<Document> {
    page_at(&format!("/search?part=1&q={}", local_path::encode(text))).await
}
