//! Keeps parts of a page up to date: loads the page again in the background and replaces
//! the parts that change.

use std::time::Duration;

use leptos::prelude::{document, set_timeout, window};
use leptos::task::spawn_local;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Document, Element, HtmlElement};

use super::{each, guard, page_at, times, within};

/// Parts that are replaced, including the line that reports a failed update.
const PARTS: &str = "[data-fresh], [data-refresh]";
/// Parts in use. They are not replaced until the user leaves them. Details with an id are
/// replaced anyway: they are opened again, and their summary gets the focus back.
const IN_USE: &str = ":focus:not(details[id] > summary), details.confirm[open], \
                      details.menu[open], details.api-request[open], form[data-dirty]";
/// Longest wait before the next attempt, in seconds.
const LONGEST_WAIT: u32 = 120;

/// `data-refresh`: the interval in seconds.
pub(super) fn start() {
    if let Some(every) = interval(&document()) {
        again_in(every, every);
    }
}

fn interval(page: &Document) -> Option<u32> {
    let place = page.query_selector("[data-refresh]").ok().flatten()?;
    place.get_attribute("data-refresh")?.parse().ok().filter(|every| *every > 0)
}

fn again_in(wait: u32, every: u32) {
    set_timeout(
        move || {
            if document().hidden() {
                again_in(every, every);
            } else {
                spawn_local(load(wait, every));
            }
        },
        Duration::from_secs(wait.into()),
    );
}

async fn load(wait: u32, every: u32) {
    match fetch().await {
        Some(fresh) => {
            replace(&fresh);
            say("");
            // A page whose work has ended has no interval and is not loaded again.
            if let Some(every) = interval(&fresh) {
                again_in(every, every);
            }
        }
        None => {
            let wait = wait.saturating_mul(2).min(LONGEST_WAIT.max(every));
            say(&format!("This may be out of date: the last update failed. Next try in {wait} s."));
            again_in(wait, every);
        }
    }
}

/// The current version of the page.
async fn fetch() -> Option<Document> {
    page_at(&window().location().href().ok()?).await
}

fn replace(fresh: &Document) {
    each::<Element>(PARTS, |old| {
        let in_use = old.matches(IN_USE).unwrap_or(false)
            || old.query_selector(IN_USE).ok().flatten().is_some();
        if in_use {
            return;
        }
        match fresh.get_element_by_id(&old.id()) {
            Some(new) => {
                keep_open(old, &new);
                let focused = focused(old);
                if let Some(around) = old.parent_node() {
                    let _ = around.replace_child(&new, old);
                }
                if let Some(details) = focused {
                    focus_summary(&details);
                }
            }
            None => old.remove(),
        }
    });
    times::again();
    guard::again();
}

/// Opens the details that were open before.
fn keep_open(old: &Element, new: &Element) {
    let Ok(opened) = old.query_selector_all("details[open][id]") else { return };
    for at in 0..opened.length() {
        let id =
            opened.get(at).and_then(|node| node.dyn_into::<Element>().ok()).map(|one| one.id());
        let Some(id) = id else { continue };
        let Ok(all) = new.query_selector_all("details[id]") else { return };
        for at in 0..all.length() {
            let same = all.get(at).and_then(|node| node.dyn_into::<Element>().ok());
            if let Some(same) = same.filter(|one| one.id() == id) {
                let _ = same.set_attribute("open", "");
            }
        }
    }
}

/// The id of the details whose summary has the focus.
fn focused(part: &Element) -> Option<String> {
    let summary: Element = within(part, "details[id] > summary:focus")?;
    summary.parent_element().map(|details| details.id())
}

/// Focuses without scrolling, because the summary can be outside the visible part.
fn focus_summary(details: &str) {
    let details = document().get_element_by_id(details);
    if let Some(summary) = details.and_then(|details| within::<HtmlElement>(&details, "summary")) {
        let at = window().scroll_y().unwrap_or_default();
        let _ = summary.focus();
        window().scroll_to_with_x_and_y(0.0, at);
    }
}

fn say(text: &str) {
    each::<Element>("[data-stale]", |note| {
        if note.text_content().as_deref() != Some(text) {
            note.set_text_content(Some(text));
        }
    });
}
