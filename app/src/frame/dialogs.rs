//! Dialogs that scripts open over a page: search and the list of shortcuts. Without
//! scripts the search link leads to the search page.

use leptos::prelude::*;

use super::links;
use crate::ui::icon::Icon;

/// Shortcuts of every page, and their effects.
const KEYS: [(&str, &str); 6] = [
    ("Ctrl K", "Search. On a Mac: \u{2318} K"),
    ("?", "This list"),
    ("u", "Switch between UTC and your time zone"),
    ("Esc", "Close a menu, the search, or an event on the page Events"),
    ("/", "Filter, on the page Events"),
    ("Space", "Pause and resume, on the page Events"),
];

/// Both dialogs, closed.
#[component]
pub(super) fn Dialogs() -> impl IntoView {
    view! {
        <Palette />
        <Keys />
    }
}

#[component]
fn Palette() -> impl IntoView {
    view! {
        <dialog class="palette" id="palette" popover="auto" aria-modal="true" aria-label="Find anything">
            <div class="palette-panel">
                <form method="get" action="/search" role="search">
                    <Icon name="search" />
                    <label class="hidden" for="palette-q">"Find anything"</label>
                    <input
                        id="palette-q"
                        name="q"
                        type="text"
                        enterkeyhint="search"
                        autocomplete="off"
                        spellcheck="false"
                        maxlength="200"
                        placeholder="Pages, persons, events, projects, members, exports"
                    />
                    <button type="button" class="button button-quiet" data-closes="" aria-label="Close search">
                        <Icon name="close" />
                    </button>
                </form>
                <p class="hidden" role="status" data-palette-count=""></p>
                <div class="palette-found" data-palette-found=""></div>
            </div>
        </dialog>
    }
    .into_any()
}

#[component]
fn Keys() -> impl IntoView {
    let row = |keys: AnyView, what: String| {
        view! { <tr><th scope="row">{keys}</th><td>{what}</td></tr> }
    };
    let general = KEYS
        .into_iter()
        .map(|(key, what)| row(view! { <kbd>{key}</kbd> }.into_any(), what.to_owned()))
        .collect_view();
    let entries = links::all()
        .filter(|entry| !entry.letter.is_empty())
        .map(|entry| {
            let keys = view! { <kbd>"g"</kbd> " " <kbd>{entry.letter}</kbd> }.into_any();
            row(keys, format!("Go to {}", entry.name))
        })
        .collect_view();
    view! {
        <dialog class="key-list" id="keys" aria-labelledby="keys-title">
            <header>
                <h2 id="keys-title">"Keys"</h2>
                <button type="button" class="button button-quiet" data-closes="" aria-label="Close the list of keys">
                    <Icon name="close" />
                </button>
            </header>
            <table>
                <caption class="hidden">"Keyboard shortcuts"</caption>
                <tbody>{general} {entries}</tbody>
            </table>
            <p class="hint">
                "Single keys do nothing in fields. "
                <a href="/account/preferences">"Switch single keys off"</a>
            </p>
        </dialog>
    }
    .into_any()
}
