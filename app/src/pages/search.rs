//! Search by name for pages and for objects that the user may see. Scripts show the same
//! in a dialog over any page (`behaviours::palette`).

use leptos::prelude::*;

use crate::server_fns::search::{Found, FoundGroup, search};
use crate::ui::number::counted;
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;

/// A field and the results.
#[component]
pub(crate) fn Search() -> impl IntoView {
    page("Search", || in_query("q"), search, draw)
}

fn draw(q: String, groups: Vec<FoundGroup>) -> AnyView {
    view! {
        <PageHead title="Search" />
        <form class="search-form" method="get" action="/search" role="search">
            <div class="field">
                <label for="q">"Name"</label>
                <input
                    id="q"
                    name="q"
                    type="search"
                    value=q.clone()
                    autocomplete="off"
                    spellcheck="false"
                    maxlength="200"
                    autofocus=q.is_empty()
                    aria-describedby="q-hint"
                />
                <p class="hint" id="q-hint">
                    "Names of pages, projects, organizations, members, exports and plugins, and in the current project names of events and persons. Every word must be in the name. Persons are also found by e-mail address and distinct id."
                </p>
            </div>
            <div class="submit">
                <button type="submit" class="button button-primary">"Search"</button>
            </div>
        </form>
        {results(groups, &q)}
    }
    .into_any()
}

/// The results. Scripts also insert this part into the dialog.
fn results(groups: Vec<FoundGroup>, q: &str) -> AnyView {
    let count = groups.iter().map(|group| group.found.len() as u64).sum();
    let message = counted(count, "result", "results");
    if groups.is_empty() {
        let none = format!("Nothing that you can see has a name with \u{201c}{q}\u{201d}.");
        return view! {
            <div data-found="" data-count=none>
                <p class="empty">
                    {none.clone()}
                    " Groups are not searched here: they have a search on their own page."
                </p>
            </div>
        }
        .into_any();
    }
    let shown = groups.into_iter().map(group).collect_view();
    view! {
        <div class="found" data-found="" data-count=message>
            <p class="faint">{message.clone()}</p>
            {shown}
        </div>
    }
    .into_any()
}

fn group(group: FoundGroup) -> AnyView {
    let FoundGroup { title, found } = group;
    let links = found.into_iter().map(link).collect_view();
    view! {
        <h2>{title.clone()}</h2>
        <ul class="plain" aria-label=title>{links}</ul>
    }
    .into_any()
}

fn link(found: Found) -> AnyView {
    let Found { name, within, href } = found;
    let within = (!within.is_empty()).then(|| {
        view! { <span class="faint">{within}</span> }
    });
    view! { <li><a class="found-link" href=href><span>{name}</span> " " {within}</a></li> }
        .into_any()
}
