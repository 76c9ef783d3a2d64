//! Behaviours: scripts that improve elements of the page. Each behaviour has listeners
//! for the whole page and acts on elements with its attribute. Therefore it also works
//! for elements that are added later. Pages work without scripts; behaviours only make
//! them more comfortable.
//!
//! What does not belong here: what concerns the page as a whole (`client`).

mod api_request;
mod autosubmit;
mod brush;
pub(crate) mod bulk;
pub(crate) mod busy;
pub(crate) mod chart;
mod code;
mod copy;
mod dirty;
mod fragment;
pub(crate) mod guard;
mod key_sentence;
mod menu;
pub(crate) mod outcome;
pub(crate) mod palette;
mod password;
mod preload;
pub(crate) mod reorder;
mod shortcuts;
pub(crate) mod times;
pub(crate) mod toast;
pub(crate) mod validate;

use std::cell::Cell;

use leptos::prelude::{document, window};
use leptos::wasm_bindgen::JsCast;
use leptos::wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Document, DomParser, Element, Event, HtmlElement, KeyboardEvent, Node, Response, SupportedType,
};

/// Starts the behaviours of all pages. Call it once.
pub fn start() {
    // `dirty` comes first: it can stop a submission before other listeners act on it.
    dirty::start();
    api_request::start();
    autosubmit::start();
    bulk::start();
    busy::start();
    code::start();
    copy::start();
    guard::start();
    key_sentence::start();
    menu::start();
    palette::start();
    password::start();
    preload::start();
    shortcuts::start();
    times::start();
    toast::start();
    validate::start();
    fragment::start();
}

thread_local! {
    static ARE_CHARTS_READ: Cell<bool> = const { Cell::new(false) };
    static IS_REORDERING: Cell<bool> = const { Cell::new(false) };
}

/// Starts the behaviours of charts, with the first chart: their code is in its area.
pub(crate) fn start_charts() {
    if !ARE_CHARTS_READ.replace(true) {
        brush::start();
        chart::start();
    }
}

/// Starts the behaviour of lists whose order users change, with the first of them: its code is
/// in the area of that list.
pub(crate) fn start_reordering() {
    if !IS_REORDERING.replace(true) {
        reorder::start();
    }
}

/// Calls `act` for every event of this type in the page, before components do.
fn on(event: &str, act: impl Fn(&Event, &Element) + 'static) {
    listen(event, Box::new(act));
}

/// What is called for an event, with its target.
type Listener = Box<dyn Fn(&Event, &Element)>;

/// Like [`on`], without the type of the function, so that it is compiled once.
fn listen(event: &str, act: Listener) {
    let act = Closure::<dyn Fn(Event)>::new(move |event: Event| {
        if let Some(target) = event.target().and_then(|target| target.dyn_into().ok()) {
            act(&event, &target);
        }
    });
    let listener = act.as_ref().unchecked_ref();
    let _ = window().add_event_listener_with_callback_and_bool(event, listener, true);
    // The listener stays for the lifetime of the page.
    act.forget();
}

/// Changes the text of an element that a component drew, within its text node, which the
/// component keeps.
fn write(element: &Element, text: &str) {
    match text_node(element) {
        Some(node) => node.set_node_value(Some(text)),
        None => element.set_text_content(Some(text)),
    }
}

/// The text that [`write`] changes.
fn written(element: &Element) -> String {
    text_node(element).and_then(|node| node.node_value()).unwrap_or_default()
}

/// The first text directly inside of an element that is not empty.
fn text_node(element: &Element) -> Option<Node> {
    let nodes = element.child_nodes();
    (0..nodes.length()).filter_map(|at| nodes.get(at)).find(|node| {
        let is_text = node.node_type() == Node::TEXT_NODE;
        is_text && node.node_value().is_some_and(|text| !text.trim().is_empty())
    })
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
