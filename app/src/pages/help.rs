//! The user guide.

use leptos::prelude::*;

use super::in_path;
use crate::server_fns::help::{GuideSection, get_help_page, list_help_pages};
use crate::ui::page::{PageHead, page};

/// All pages of the guide.
#[component]
pub(crate) fn HelpIndex() -> impl IntoView {
    page("Help", || (), |()| list_help_pages(), |(), sections| index(sections))
}

fn index(sections: Vec<GuideSection>) -> AnyView {
    let sections = sections.into_iter().map(section).collect_view();
    view! {
        <PageHead title="Help" />
        <p class="lead">
            "A page for each task. The API is described at "
            // Not a page of the app.
            <a href="/api/docs/" rel="external">"/api/docs/"</a> "."
        </p>
        <div class="guide-groups">{sections}</div>
    }
    .into_any()
}

fn section(section: GuideSection) -> AnyView {
    let GuideSection { title, pages } = section;
    let links = pages
        .into_iter()
        .map(|(name, title)| view! { <li><a href=format!("/help/{name}")>{title}</a></li> })
        .collect_view();
    view! {
        <section class="guide-group">
            <h2>{title}</h2>
            <ul class="links guide-index">{links}</ul>
        </section>
    }
    .into_any()
}

/// One page of the guide.
#[component]
pub(crate) fn HelpPage() -> impl IntoView {
    page(
        "Help",
        || in_path("page"),
        get_help_page,
        |_, found| {
            view! {
                <PageHead title=found.title within="Help" />
                <article class="guide" inner_html=found.html></article>
                <p><a href="/help">"All pages of the guide"</a></p>
            }
            .into_any()
        },
    )
}
