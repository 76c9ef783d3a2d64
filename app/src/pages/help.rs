//! The user guide.

use leptos::prelude::*;

use super::in_path;
use crate::context::set_not_found;
use crate::error::UiError;
use crate::help;
use crate::ui::page::{PageHead, page};

/// All pages of the guide.
#[component]
pub(crate) fn HelpIndex() -> impl IntoView {
    let sections = help::index().into_iter().map(|help::IndexSection { title, pages }| {
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
    });
    let sections = sections.collect_view();
    view! {
        <PageHead title="Help" />
        <p class="lead">"One page for each job. The API is described at " <a href="/api/docs/">"/api/docs/"</a> "."</p>
        {sections}
    }
    .into_any()
}

/// One page of the guide.
#[component]
pub(crate) fn HelpPage() -> impl IntoView {
    let name = in_path("page");
    page("Help", async move {
        let Some(found) = help::page(&name) else {
            set_not_found();
            return Err(UiError::NotFound);
        };
        Ok(view! {
            <PageHead title=found.title within="Help" />
            <article class="guide" inner_html=found.html></article>
            <p><a href="/help">"All pages of the guide"</a></p>
        }
        .into_any())
    })
}
