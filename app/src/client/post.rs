//! Sends forms without loading a document: those of server functions, and filters.

use std::cell::RefCell;

use gloo_net::http::Request;
use leptos::prelude::*;
use leptos::server_fn::error::SERVER_FN_ERROR_HEADER;
use leptos::server_fn::redirect::REDIRECT_HEADER;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Event, FormData, HtmlButtonElement, HtmlFormElement, SubmitEvent, UrlSearchParams};

use super::{navigation, paint};
use crate::behaviours::busy;
use crate::error::UiError;
use crate::local_path::path_of;
use crate::ui::form_action::of_shown_page;

/// Below this path are the server functions.
const FUNCTIONS: &str = "/_fn/";
/// Attribute of a form that was sent to another function than its own.
pub(crate) const TRIES: &str = "data-tries";
const FORM: &str = "application/x-www-form-urlencoded";

thread_local! {
    /// The form that was sent last, and its button.
    static LAST: RefCell<Option<(HtmlFormElement, Option<HtmlButtonElement>)>> =
        const { RefCell::new(None) };
}

/// Acts on the forms of the app.
pub(crate) fn start() {
    let _forever = window_event_listener_untyped("submit", |event| {
        if event.default_prevented() {
            return;
        }
        let form = event.target().and_then(|target| target.dyn_into::<HtmlFormElement>().ok());
        if let Some(form) = form
            && send(&event, &form).is_some()
        {
            event.prevent_default();
        }
    });
}

/// `None` if the browser sends the form.
fn send(event: &Event, form: &HtmlFormElement) -> Option<()> {
    if !form.target().is_empty() {
        return None;
    }
    let button = event.dyn_ref::<SubmitEvent>().and_then(SubmitEvent::submitter);
    let button = button.and_then(|button| button.dyn_into::<HtmlButtonElement>().ok());
    let named = |name: &str| button.as_ref().and_then(|button| button.get_attribute(name));
    let action = named("formaction").or_else(|| form.get_attribute("action")).unwrap_or_default();
    let (path, fragment) = target(&action);
    let fields = fields(form, button.as_ref())?;
    match form.method().as_str() {
        "get" if path.starts_with('/') => {
            // An empty field filters nothing, so the address does not have it.
            let is_set = |pair: &&str| !pair.ends_with('=');
            let fields = fields.split('&').filter(is_set).collect::<Vec<_>>().join("&");
            let sign = if fields.is_empty() { "" } else { "?" };
            let to = format!("{path}{sign}{fields}");
            let from = navigation::opening();
            spawn_local(async move {
                // The browser first shows that the key or the button was pressed: opening a
                // page is a long task.
                paint::painted().await;
                if navigation::opening() != from {
                    // Another page was opened meanwhile.
                    return;
                }
                navigation::go_to(&(to.clone() + &fragment));
                if to == from {
                    // The router draws nothing for an address that stays.
                    busy::again();
                    if let Some(page) = of_shown_page() {
                        page.load_again();
                    }
                }
            });
        }
        "post" if path.starts_with(FUNCTIONS) && form.enctype() == FORM && !waits(form) => {
            // Its other button does not save what the fields say.
            let _ = form.toggle_attribute_with_force(TRIES, named("formaction").is_some());
            LAST.set(Some((form.clone(), button.clone())));
            spawn_local(post(path, fields));
        }
        _ => return None,
    }
    Some(())
}

/// Whether the form confirms a password for another form, which the server then carries
/// out and answers with a document.
fn waits(form: &HtmlFormElement) -> bool {
    form.query_selector("[name=held]").ok().flatten().is_some()
}

/// Path and fragment that a form is sent to. Without a path it is sent to its own page.
fn target(action: &str) -> (String, String) {
    let (path, fragment) = path_of(action).split_once('#').unwrap_or((path_of(action), ""));
    let path = if path.is_empty() { window().location().pathname().ok() } else { None }
        .unwrap_or_else(|| path.to_owned());
    let sign = if fragment.is_empty() { "" } else { "#" };
    (path, format!("{sign}{fragment}"))
}

/// The fields, encoded.
fn fields(form: &HtmlFormElement, button: Option<&HtmlButtonElement>) -> Option<String> {
    let data = FormData::new_with_form(form).ok()?;
    if let Some(button) = button.filter(|button| !button.name().is_empty()) {
        data.append_with_str(&button.name(), &button.value()).ok()?;
    }
    UrlSearchParams::new_with_str_sequence_sequence(&data).ok()?.to_string().as_string()
}

/// The button that sent the last form.
pub(crate) fn last_button() -> Option<HtmlButtonElement> {
    LAST.with_borrow(|last| last.as_ref().and_then(|(_, button)| button.clone()))
}

/// Lets the browser send the form again whose answer came last, in place of this document.
pub(crate) fn send_by_browser() {
    let Some((form, button)) = LAST.take() else { return };
    if let Some(button) = button {
        if let Some(action) = button.get_attribute("formaction") {
            let _ = form.set_attribute("action", &action);
        }
        if let Ok(field) = document().create_element("input") {
            for (name, value) in
                [("type", "hidden".to_owned()), ("name", button.name()), ("value", button.value())]
            {
                let _ = field.set_attribute(name, &value);
            }
            let _ = form.append_child(&field);
        }
    }
    let _ = form.submit();
}

async fn post(path: String, fields: String) {
    let error = match sent(&path, fields).await {
        Ok(error) => error,
        Err(_) => Some(UiError::NoAnswer),
    };
    if let Some(page) = of_shown_page() {
        page.record(&path, error);
    }
}

/// The error of the server function, if it failed.
async fn sent(path: &str, fields: String) -> Result<Option<UiError>, gloo_net::Error> {
    let request =
        Request::post(path).header("content-type", FORM).header("accept", "application/json");
    let answer = request.body(fields)?.send().await?;
    let headers = answer.headers();
    if headers.get(REDIRECT_HEADER).is_some()
        && let Some(to) = headers.get("location")
    {
        navigation::redirect(&to);
    }
    if answer.ok() && headers.get(SERVER_FN_ERROR_HEADER).is_none() {
        return Ok(None);
    }
    Ok(Some(UiError::from_query(&answer.text().await?)))
}
