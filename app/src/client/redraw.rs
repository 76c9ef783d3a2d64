//! Before a page is drawn again: takes back what behaviours changed in its elements, because
//! the new drawing is compared with the previous one. After it: restores what the user had
//! opened, and moves the focus to the outcome of a form.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use web_sys::{
    Element, HtmlElement, HtmlFormElement, HtmlInputElement, HtmlSelectElement, HtmlTextAreaElement,
};

use super::navigation;
use super::post::TRIES;
use crate::behaviours::{busy, guard, reorder, toast, validate};

/// Elements in use.
const IN_USE: &str = "#main :is(input, select, textarea):focus, #main details.confirm[open], \
                      #main details.menu[open], #main details.api-request[open], \
                      form[data-dirty]";

thread_local! {
    /// Whether a form has an outcome that is not drawn yet, and whether it succeeded.
    static OUTCOME: Cell<Option<bool>> = const { Cell::new(None) };
    /// What the user entered.
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
    /// Ids of the details that are open.
    static OPEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// The forms whose outcome is drawn next.
    static SENT: RefCell<Vec<HtmlFormElement>> = const { RefCell::new(Vec::new()) };
}

/// A form has an outcome. The page is drawn again.
pub(crate) fn form_ended(succeeded: bool) {
    OUTCOME.set(Some(succeeded));
}

/// Call it immediately before the elements of a page change.
pub(crate) fn before() {
    if OUTCOME.get().is_some() {
        SENT.set(elements("form[aria-busy]"));
        busy::again();
    }
    validate::take_back();
    reorder::take_back();
    ENTERED.set(entered());
    OPEN.set(elements::<Element>("#main details[id][open]").iter().map(Element::id).collect());
}

/// Call it when the new elements are known. The rest happens when they are in the document.
/// `path` is that of the page. `is_other`: it has other inputs than before.
pub(crate) fn after(path: String, is_other: bool) {
    set_timeout(
        move || {
            guard::again();
            toast::shown();
            if is_other {
                // What was typed belongs to what was shown before.
                for form in elements::<HtmlFormElement>("#main form") {
                    form.reset();
                }
            }
            let open = OPEN.take();
            for details in elements::<Element>("#main details[id]") {
                let _ = details.toggle_attribute_with_force("open", open.contains(&details.id()));
            }
            let sent = SENT.take();
            let is_saved = OUTCOME.get() == Some(true);
            for field in ENTERED.take() {
                if !(is_other || is_saved && sent.iter().any(|form| field.is_of(form))) {
                    field.restore();
                }
            }
            match OUTCOME.take() {
                Some(true) => {
                    // Fields show what was stored, and what was confirmed is done.
                    for form in sent {
                        if form.has_attribute(TRIES) {
                            continue;
                        }
                        form.reset();
                        if let Ok(Some(confirm)) = form.closest("details.confirm") {
                            let _ = confirm.remove_attribute("open");
                        }
                    }
                    focus();
                }
                Some(false) => {
                    // As in a new document: passwords are entered again.
                    for form in sent {
                        empty_passwords(&form);
                    }
                    focus();
                }
                None => {}
            }
            navigation::arrive(&path);
        },
        Duration::ZERO,
    );
}

/// Whether the user is doing something on the page that an update would disturb, or does
/// not see the page.
pub(crate) fn is_in_use() -> bool {
    let in_use = document().query_selector(IN_USE).ok().flatten();
    document().hidden() || in_use.is_some()
}

fn empty_passwords(form: &HtmlFormElement) {
    for field in elements::<HtmlInputElement>("#main form input[type=password]") {
        if field.form().as_ref() == Some(form) {
            field.set_value("");
        }
    }
}

/// Focuses the element that the page marks, as the browser does for a document.
fn focus() {
    if let Some(marked) = elements::<HtmlElement>("#main [autofocus]").first() {
        let _ = marked.focus();
    }
}

fn elements<E: JsCast>(selector: &str) -> Vec<E> {
    let Ok(found) = document().query_selector_all(selector) else { return Vec::new() };
    (0..found.length()).filter_map(|at| found.get(at)?.dyn_into().ok()).collect()
}

/// A field with what the user entered. Browsers drop it when the choices of the field are
/// drawn again.
enum Entered {
    Text(HtmlInputElement, String),
    Tick(HtmlInputElement, bool),
    Long(HtmlTextAreaElement, String),
    Choice(HtmlSelectElement, String),
}

impl Entered {
    fn is_of(&self, form: &HtmlFormElement) -> bool {
        let of = match self {
            Self::Text(field, _) | Self::Tick(field, _) => field.form(),
            Self::Long(field, _) => field.form(),
            Self::Choice(field, _) => field.form(),
        };
        of.as_ref() == Some(form)
    }

    fn restore(&self) {
        match self {
            Self::Text(field, value) if field.value() != *value => field.set_value(value),
            Self::Tick(field, ticked) => field.set_checked(*ticked),
            Self::Long(field, value) if field.value() != *value => field.set_value(value),
            Self::Choice(field, value) if field.value() != *value => field.set_value(value),
            Self::Text(..) | Self::Long(..) | Self::Choice(..) => {}
        }
    }
}

/// The fields of the page that do not show what they were drawn with.
fn entered() -> Vec<Entered> {
    let mut found = Vec::new();
    for field in elements::<HtmlInputElement>("#main form input") {
        if matches!(field.type_().as_str(), "checkbox" | "radio") {
            if field.checked() != field.default_checked() {
                let ticked = field.checked();
                found.push(Entered::Tick(field, ticked));
            }
        } else if !matches!(field.type_().as_str(), "hidden" | "file")
            && field.value() != field.default_value()
        {
            let value = field.value();
            found.push(Entered::Text(field, value));
        }
    }
    for field in elements::<HtmlTextAreaElement>("#main form textarea") {
        if field.default_value().is_ok_and(|drawn| drawn != field.value()) {
            let value = field.value();
            found.push(Entered::Long(field, value));
        }
    }
    for field in elements::<HtmlSelectElement>("#main form select") {
        let drawn = field.query_selector("option[selected]").ok().flatten();
        let drawn = drawn.and_then(|option| option.get_attribute("value"));
        if drawn.unwrap_or_default() != field.value() {
            let value = field.value();
            found.push(Entered::Choice(field, value));
        }
    }
    found
}
