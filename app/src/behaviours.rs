//! Behaviours: scripts that improve elements of the page. Each behaviour has listeners
//! for the whole page and acts on elements with its attribute. Therefore it also works
//! for elements that are added later. Pages work without scripts; behaviours only make
//! them more comfortable.
//!
//! What does not belong here: components that redraw themselves (`live`).

mod api_request;
mod autosubmit;
mod brush;
mod busy;
mod code;
mod copy;
mod dirty;
mod guard;
mod key_sentence;
mod menu;
mod outcome;
mod palette;
mod password;
mod refresh;
mod reorder;
mod shortcuts;
mod times;
mod toast;
mod validate;

use leptos::prelude::{document, window, window_event_listener_untyped};
use leptos::wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Document, DomParser, Element, Event, HtmlElement, KeyboardEvent, Response, SupportedType,
};

/// Starts all behaviours. Call it once.
pub fn start() {
    // `dirty` comes first: it can stop a submission before other listeners act on it.
    dirty::start();
    api_request::start();
    autosubmit::start();
    brush::start();
    busy::start();
    code::start();
    copy::start();
    guard::start();
    key_sentence::start();
    menu::start();
    outcome::start();
    palette::start();
    password::start();
    refresh::start();
    reorder::start();
    shortcuts::start();
    times::start();
    toast::start();
    validate::start();
}

/// Calls `act` for every event of this type in the page.
fn on(event: &str, act: impl Fn(&Event, &Element) + 'static) {
    // The listener stays for the lifetime of the page.
    let _forever = window_event_listener_untyped(event, move |event| {
        if let Some(target) = event.target().and_then(|target| target.dyn_into().ok()) {
            act(&event, &target);
        }
    });
}

/// Calls `act` with every element that matches the selector.
fn each<E: JsCast>(selector: &str, act: impl Fn(&E)) {
    let Ok(found) = document().query_selector_all(selector) else { return };
    for at in 0..found.length() {
        if let Some(element) = found.get(at).and_then(|node| node.dyn_into::<E>().ok()) {
            act(&element);
        }
    }
}

/// Elements inside `element` that match the selector.
fn all_within(element: &Element, selector: &str) -> Vec<HtmlElement> {
    let Ok(found) = element.query_selector_all(selector) else { return Vec::new() };
    (0..found.length()).filter_map(|at| found.get(at)?.dyn_into().ok()).collect()
}

/// Moves the focus through a list with the arrow keys. Down from the opener reaches the
/// first element; up from the first element returns to the opener.
fn step(
    event: &KeyboardEvent,
    target: &Element,
    list: &[HtmlElement],
    opener: impl FnOnce() -> Option<HtmlElement>,
) {
    let at = list.iter().position(|element| element.is_same_node(Some(target)));
    let to = match (event.key().as_str(), at) {
        ("ArrowDown", Some(at)) => list.get(at + 1).or(list.first()).cloned(),
        ("ArrowDown", None) => list.first().cloned(),
        ("ArrowUp", Some(0)) => opener(),
        ("ArrowUp", Some(at)) => list.get(at - 1).cloned(),
        ("ArrowUp", None) => list.last().cloned(),
        _ => return,
    };
    event.prevent_default();
    if let Some(to) = to {
        let _ = to.focus();
    }
}

/// The page at an address. `None`: there is no answer, or the server redirected to
/// another page.
async fn page_at(address: &str) -> Option<Document> {
    let answer = JsFuture::from(window().fetch_with_str(address)).await.ok()?;
    let answer: Response = answer.dyn_into().ok()?;
    if !answer.ok() || answer.redirected() {
        return None;
    }
    let text = JsFuture::from(answer.text().ok()?).await.ok()?;
    let page = DomParser::new().ok()?;
    page.parse_from_string(&text.as_string()?, SupportedType::TextHtml).ok()
}

/// The element, or its nearest ancestor that matches the selector.
fn closest(element: &Element, selector: &str) -> Option<Element> {
    element.closest(selector).ok().flatten()
}

/// The first element inside `element` that matches the selector.
fn within<E: JsCast>(element: &Element, selector: &str) -> Option<E> {
    element.query_selector(selector).ok().flatten()?.dyn_into().ok()
}
