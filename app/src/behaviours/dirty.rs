//! Warns before a page with unsaved changes is left.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use leptos::prelude::{document, set_timeout, window_event_listener_untyped};
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{
    Element, Event, HtmlDialogElement, HtmlElement, HtmlFormElement, MouseEvent, SubmitEvent,
};

use super::{closest, each, on, within};

/// Attribute of a form with unsaved changes.
const DIRTY: &str = "data-dirty";
const DIRTY_FORMS: &str = "form[data-dirty]";
const DIALOG: &str = "dialog[data-dirty-dialog]";
const DIALOG_HTML: &str = "<h2 id=\"dirty-title\">Leave without saving?</h2>\
    <p>What you changed in the form is lost.</p>\
    <div class=\"submit\">\
    <button type=\"button\" class=\"button button-primary\" data-dirty-keep>Keep editing</button>\
    <button type=\"button\" class=\"button\" data-dirty-discard>Discard changes</button>\
    </div>";

/// The link, or the button of another form, that the user has clicked. It is clicked again
/// if the user discards the changes.
type Clicked = Rc<RefCell<Option<HtmlElement>>>;

/// `data-dirty-guard` is on a form or around one. Start this behaviour first: it prevents a
/// submission, and the others check `default_prevented`.
pub(super) fn start() {
    let clicked = Clicked::default();
    for event in ["input", "change"] {
        on(event, |_, target| mark(target));
    }
    let of_submit = clicked.clone();
    on("submit", move |event, target| {
        if target.has_attribute(DIRTY) {
            let _ = target.remove_attribute(DIRTY);
        } else if is_dirty() {
            let button = event.dyn_ref::<SubmitEvent>().and_then(SubmitEvent::submitter);
            ask(event, &of_submit, button);
        }
    });
    on("click", move |event, target| {
        if closest(target, "[data-dirty-keep]").is_some() {
            close();
        } else if closest(target, "[data-dirty-discard]").is_some() {
            close();
            each::<Element>(DIRTY_FORMS, |form| {
                let _ = form.remove_attribute(DIRTY);
            });
            let element = clicked.borrow_mut().take();
            if let Some(element) = element {
                // In a new task: the listener of the current click cannot be called again
                // while it runs.
                set_timeout(move || element.click(), Duration::ZERO);
            }
        } else if let Some(link) = closest(target, "a[href]")
            && leaves(event, &link)
            && is_dirty()
        {
            ask(event, &clicked, link.dyn_into().ok());
        }
    });
    // For other ways to leave, the browser shows its own question.
    let _forever = window_event_listener_untyped("beforeunload", |event| {
        if is_dirty() {
            event.prevent_default();
        }
    });
}

fn mark(field: &Element) {
    let Some(form) = closest(field, "form").filter(is_guarded) else { return };
    let _ = form.set_attribute(DIRTY, "");
}

/// Not guarded: `GET` forms, which change nothing, and confirmations, which are short.
fn is_guarded(form: &Element) -> bool {
    let changes = form.dyn_ref::<HtmlFormElement>().is_some_and(|form| form.method() == "post");
    changes
        && closest(form, "[data-dirty-guard]").is_some()
        && closest(form, "details.confirm").is_none()
}

fn is_dirty() -> bool {
    document().query_selector(DIRTY_FORMS).ok().flatten().is_some()
}

/// Whether this click opens another page in this window.
fn leaves(event: &Event, link: &Element) -> bool {
    let plain = event.dyn_ref::<MouseEvent>().is_none_or(|click| {
        click.button() == 0
            && !click.ctrl_key()
            && !click.meta_key()
            && !click.shift_key()
            && !click.alt_key()
    });
    let within_page = link.get_attribute("href").is_some_and(|href| href.starts_with('#'));
    let elsewhere = link.has_attribute("target") || link.has_attribute("download");
    plain && !event.default_prevented() && !within_page && !elsewhere
}

fn ask(event: &Event, clicked: &Clicked, element: Option<HtmlElement>) {
    let Some(dialog) = dialog() else { return };
    event.prevent_default();
    clicked.replace(element);
    let _ = dialog.show_modal();
}

/// The dialog. It is created on first use.
fn dialog() -> Option<HtmlDialogElement> {
    let body: Element = document().body()?.into();
    if let Some(dialog) = within(&body, DIALOG) {
        return Some(dialog);
    }
    let dialog = document().create_element("dialog").ok()?;
    dialog.set_class_name("dialog");
    dialog.set_inner_html(DIALOG_HTML);
    for (name, value) in [("data-dirty-dialog", ""), ("aria-labelledby", "dirty-title")] {
        let _ = dialog.set_attribute(name, value);
    }
    body.append_child(&dialog).ok()?;
    dialog.dyn_into().ok()
}

fn close() {
    each::<HtmlDialogElement>(DIALOG, HtmlDialogElement::close);
}
