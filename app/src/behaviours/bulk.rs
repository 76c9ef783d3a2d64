//! Says how many entries of a list are selected, and selects all. The selection belongs to the
//! entries, not to the elements, which show other entries after a list is drawn again.

use std::cell::RefCell;

use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlInputElement, KeyboardEvent};

use super::{each, on, write};

/// The check box of an entry.
const ENTRY: &str = "[data-bulk-entry]";

thread_local! {
    /// The selected entries of the list that is drawn again.
    static SELECTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Acts on the boxes of `ui::bulk`.
pub(super) fn start() {
    on("change", |_, target| {
        let Some(changed) = target.dyn_ref::<HtmlInputElement>() else { return };
        if changed.has_attribute("data-bulk-all") {
            each::<HtmlInputElement>(ENTRY, |entry| entry.set_checked(changed.checked()));
            count();
        } else if changed.has_attribute("data-bulk-entry") {
            count();
        }
    });
    // Without scripts the first button of the form takes the key, and sends nothing.
    on("keydown", |event, target| {
        let is_enter = event.dyn_ref::<KeyboardEvent>().is_some_and(|event| event.key() == "Enter");
        if is_enter
            && (target.has_attribute("data-bulk-all") || target.has_attribute("data-bulk-entry"))
        {
            event.prevent_default();
        }
    });
    count();
}

/// Clears the selection before the list is drawn again.
pub(crate) fn undo() {
    let selected = RefCell::new(Vec::new());
    each::<HtmlInputElement>(ENTRY, |entry| {
        if entry.checked() {
            selected.borrow_mut().push(entry.value());
            entry.set_checked(false);
        }
    });
    SELECTED.set(selected.into_inner());
}

/// Selects the same entries of the new list, unless `is_done`: their action is done.
pub(crate) fn again(is_done: bool) {
    let selected = SELECTED.take();
    each::<HtmlInputElement>(ENTRY, |entry| {
        entry.set_checked(!is_done && selected.contains(&entry.value()));
    });
    count();
}

fn count() {
    let (all, selected) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    each::<HtmlInputElement>(ENTRY, |entry| {
        all.set(all.get() + 1);
        selected.set(selected.get() + u32::from(entry.checked()));
    });
    let (all, selected) = (all.get(), selected.get());
    each::<HtmlInputElement>("[data-bulk-all]", |of_all| {
        of_all.set_checked(selected > 0 && selected == all);
        of_all.set_indeterminate(selected > 0 && selected < all);
    });
    each::<Element>("[data-bulk-count]", |text| match selected {
        0 => write(text, "None selected"),
        selected => write(text, &format!("{selected} selected")),
    });
}
