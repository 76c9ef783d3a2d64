//! Before a page is drawn again: undoes what behaviours changed in its elements, because
//! the new drawing is compared with the previous one. After it: restores what the user had
//! opened, and moves the focus to the outcome of a form.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use web_sys::{
    Element, FocusOptions, HtmlElement, HtmlFormElement, HtmlInputElement, HtmlSelectElement,
    HtmlTextAreaElement,
};

use super::navigation;
use super::post::{self, TRIES};
use crate::behaviours::{bulk, busy, chart, guard, reorder, toast, validate};
use crate::ui::notice;

/// Elements in use.
const IN_USE: &str = "#main :is(input, select, textarea):focus, #main details.confirm[open], \
                      #main details.menu[open], #main details.api-request[open], \
                      #main [popover]:popover-open, form[data-dirty], \
                      #main [data-bulk-entry]:checked";

/// Forms that show what is stored, although they were refused.
const SHOWS_STORED: &str = "#main form:has([data-shows-stored])";

thread_local! {
    /// Whether a form has an outcome that is not drawn yet, and whether it succeeded.
    static OUTCOME: Cell<Option<bool>> = const { Cell::new(None) };
    /// What the user entered.
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
    /// The details by id, and whether they are open.
    static OPEN: RefCell<Vec<(String, bool)>> = const { RefCell::new(Vec::new()) };
    /// The fields that the user typed in since the address changed.
    static TYPED: RefCell<Vec<HtmlInputElement>> = const { RefCell::new(Vec::new()) };
    /// The forms whose outcome is drawn next, and the ids of the elements that show it. A form
    /// can be that of another entry after the drawing.
    static SENT: RefCell<Vec<(HtmlFormElement, Option<String>)>> =
        const { RefCell::new(Vec::new()) };
}

/// Starts to note in which fields the user types.
pub(crate) fn start() {
    let _forever = window_event_listener_untyped("input", |event| {
        let field = event.target().and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
        TYPED.with_borrow_mut(|typed| {
            // The text of a file field cannot be set, and a tick is not text.
            if let Some(field) = field
                && !matches!(field.type_().as_str(), "file" | "checkbox" | "radio")
                && !typed.contains(&field)
            {
                typed.push(field);
            }
        });
    });
}

/// The address changed: what the user types from now on belongs to the next drawing.
pub(crate) fn address_changed() {
    TYPED.take();
}

/// A form has an outcome. The page is drawn again.
pub(crate) fn form_ended(succeeded: bool) {
    OUTCOME.set(Some(succeeded));
}

/// Call it immediately before the elements of a page change. `is_other`: the page has other
/// inputs than before, for example after the redirect of a form.
pub(crate) fn before(is_other: bool) {
    if OUTCOME.get().is_some() {
        let sent = elements::<HtmlFormElement>("form[aria-busy]");
        let parts: Vec<_> = sent.iter().map(part_of).collect();
        SENT.set(sent.into_iter().zip(parts).collect());
    }
    if is_other || OUTCOME.get().is_some() {
        busy::again();
    }
    validate::undo();
    reorder::undo();
    chart::undo();
    bulk::undo();
    ENTERED.set(entered());
    let open = elements::<Element>("#main details[id]");
    OPEN.set(open.iter().map(|it| (it.id(), it.has_attribute("open"))).collect());
}

/// Call it when the new elements are known. The rest happens when they are in the document.
/// `path` is that of the page. `is_other`: it has other inputs than before.
pub(crate) fn after(path: String, is_other: bool) {
    set_timeout(
        move || {
            guard::again();
            toast::shown();
            if is_other {
                // A redirect to the page itself with other values does not arrive anywhere.
                notice::show_next();
                // What was typed before the address changed belongs to what was shown before.
                let typed = TYPED.take();
                let kept: Vec<String> = typed.iter().map(HtmlInputElement::value).collect();
                for form in elements::<HtmlFormElement>("#main form") {
                    form.reset();
                }
                for (field, value) in typed.iter().zip(&kept) {
                    field.set_value(value);
                }
            }
            let open = OPEN.take();
            for details in elements::<Element>("#main details[id]") {
                let was_open = open.iter().find(|(id, _)| !is_other && *id == details.id());
                if let Some((_, was_open)) = was_open {
                    let _ = details.toggle_attribute_with_force("open", *was_open);
                }
            }
            let (sent, parts): (Vec<_>, Vec<_>) = SENT.take().into_iter().unzip();
            let is_saved = OUTCOME.get() == Some(true);
            let stored = elements::<HtmlFormElement>(SHOWS_STORED);
            for field in ENTERED.take() {
                let form = field.form();
                let is_of =
                    |forms: &[HtmlFormElement]| forms.iter().any(|it| form.as_ref() == Some(it));
                if !(is_other || is_saved && is_of(&sent) || is_of(&stored)) {
                    field.restore();
                }
            }
            for form in stored {
                form.reset();
            }
            let is_bulk = |form: &HtmlFormElement| form.has_attribute("data-bulk");
            bulk::again(is_other || is_saved && sent.iter().any(is_bulk));
            let outcome = OUTCOME.take();
            if outcome.is_some() {
                // The page shows the outcome.
                for dialog in elements::<HtmlElement>("#main [popover]:popover-open") {
                    let _ = dialog.hide_popover();
                }
            }
            match outcome {
                Some(true) => {
                    // Fields show what was stored, and what was confirmed is done.
                    for (form, part) in sent.into_iter().zip(parts) {
                        if form.has_attribute(TRIES) {
                            continue;
                        }
                        form.reset();
                        if let Ok(Some(confirm)) = form.closest("details.confirm") {
                            let _ = confirm.remove_attribute("open");
                        }
                        if let Ok(Some(menu)) = form.closest("details.row-menu") {
                            if let Some(opener) = opener_in(part).or(menu.first_element_child())
                                && let Ok(opener) = opener.dyn_into::<HtmlElement>()
                            {
                                let _ = opener.focus();
                            }
                            let _ = menu.remove_attribute("open");
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
            for tab in elements::<HtmlElement>(".subnav > [aria-current]") {
                show_tab(&tab);
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

/// Scrolls to the tab of the page, in browsers where the style sheet does not.
fn show_tab(tab: &HtmlElement) {
    let Some(tabs) = tab.parent_element() else { return };
    let end = |element: &Element| element.get_bounding_client_rect().right();
    let hidden = end(tab) - end(&tabs);
    if hidden > 0.0 && tabs.scroll_left() == 0 {
        tabs.scroll_by_with_x_and_y(hidden, 0.0);
    }
}

/// The id of the element that shows the outcome of a form.
fn part_of(form: &HtmlFormElement) -> Option<String> {
    form.query_selector("[name=back_part]").ok().flatten()?.get_attribute("value")
}

/// The opener of the menu in an element.
fn opener_in(part: Option<String>) -> Option<Element> {
    let part = document().get_element_by_id(&part?)?;
    part.query_selector("details.row-menu > summary").ok().flatten()
}

fn empty_passwords(form: &HtmlFormElement) {
    for field in elements::<HtmlInputElement>("#main form input[type=password]") {
        if field.form().as_ref() == Some(form) {
            field.set_value("");
        }
    }
}

/// Focuses the element that the page marks, as the browser does for a document. Without one
/// the button of the form has the focus again, which it lost while it was disabled.
fn focus() {
    if let Some(marked) = elements::<HtmlElement>("#main [autofocus]").first() {
        let _ = marked.focus();
    } else if document().active_element().is_none_or(|element| element.tag_name() == "BODY")
        && let Some(button) = post::last_button()
    {
        let options = FocusOptions::new();
        options.set_prevent_scroll(true);
        let _ = button.focus_with_options(&options);
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
    fn form(&self) -> Option<HtmlFormElement> {
        match self {
            Self::Text(field, _) | Self::Tick(field, _) => field.form(),
            Self::Long(field, _) => field.form(),
            Self::Choice(field, _) => field.form(),
        }
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
