//! Changes the order of a list by dragging. Buttons next to the lines do the same without
//! a pointer and without scripts.

use std::cell::RefCell;

use leptos::prelude::document;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement, HtmlInputElement, Node};

use super::{closest, on, within};

thread_local! {
    /// The line that was moved last, and the node that followed it before.
    static MOVED: RefCell<Option<(Element, Option<Node>)>> = const { RefCell::new(None) };
}

const LINE: &str = "[data-reorder-item]";
/// Class of the line that is dragged.
const DRAGGED: &str = "dragged";
/// Classes of the line before or after which the dragged line would be dropped.
const PLACES: [&str; 2] = ["drop-before", "drop-behind"];

/// `data-reorder` around a list whose lines have `data-reorder-item`, the id of the line,
/// and a `data-reorder-handle`. A form in the same `data-reorder` is sent after a drop:
/// `data-reorder-wanted` gets the ids in the new order, and `data-reorder-send` is its
/// button.
pub(super) fn start() {
    on("dragstart", |_, target| {
        if let Some(line) =
            closest(target, "[data-reorder-handle]").and_then(|it| closest(&it, LINE))
        {
            let _ = line.class_list().add_1(DRAGGED);
        }
    });
    on("dragover", |event, target| {
        let Some((line, over)) = dragged_over(target) else { return };
        // Browsers allow a drop only where the default is prevented.
        event.prevent_default();
        unmark();
        let class = if is_before(&line, &over) { PLACES[1] } else { PLACES[0] };
        let _ = over.class_list().add_1(class);
    });
    on("drop", |event, target| {
        let Some((line, over)) = dragged_over(target) else { return };
        event.prevent_default();
        drop_at(&line, &over);
    });
    on("dragend", |_, _| {
        unmark();
        if let Some(line) = dragged() {
            let _ = line.class_list().remove_1(DRAGGED);
        }
    });
}

/// Puts the moved line back, because the list is drawn again in the order of the answer.
pub(crate) fn undo() {
    let Some((line, next)) = MOVED.take() else { return };
    if let Some(list) = line.parent_node() {
        let _ = list.insert_before(&line, next.as_ref());
    }
}

fn dragged() -> Option<Element> {
    document().query_selector(&format!("{LINE}.{DRAGGED}")).ok().flatten()
}

/// The dragged line, and the line of the same list under the pointer.
fn dragged_over(target: &Element) -> Option<(Element, Element)> {
    let (line, over) = (dragged()?, closest(target, LINE)?);
    let is_other = !line.is_same_node(Some(&over));
    let same_list = line.parent_element()?.is_same_node(over.parent_element().as_deref());
    (is_other && same_list).then_some((line, over))
}

fn unmark() {
    for class in PLACES {
        super::each::<Element>(&format!(".{class}"), |line| {
            let _ = line.class_list().remove_1(class);
        });
    }
}

/// The lines of the list around an element, in their order.
fn lines(around: &Element) -> Vec<Element> {
    let found = around.parent_element().and_then(|list| list.query_selector_all(LINE).ok());
    let Some(found) = found else { return Vec::new() };
    (0..found.length()).filter_map(|at| found.get(at)?.dyn_into().ok()).collect()
}

/// Whether `line` comes before `other`.
fn is_before(line: &Element, other: &Element) -> bool {
    let at = |wanted: &Element| {
        lines(line).iter().position(|one| one.is_same_node(Some(wanted))).unwrap_or_default()
    };
    at(line) < at(other)
}

/// Moves the line to the position of the other one, and sends the new order.
fn drop_at(line: &Element, over: &Element) {
    let Some(list) = line.parent_element() else { return };
    let next = if is_before(line, over) { over.next_sibling() } else { Some(over.clone().into()) };
    MOVED.set(Some((line.clone(), line.next_sibling())));
    let _ = list.insert_before(line, next.as_ref());
    let Some(around) = closest(line, "[data-reorder]") else { return };
    let ids: Vec<String> =
        lines(line).iter().filter_map(|line| line.get_attribute("data-reorder-item")).collect();
    if let Some(wanted) = within::<HtmlInputElement>(&around, "[data-reorder-wanted]") {
        wanted.set_value(&ids.join(","));
    }
    if let Some(send) = within::<HtmlElement>(&around, "[data-reorder-send]") {
        send.click();
    }
}
