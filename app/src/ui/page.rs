//! Shared parts of all pages: title, heading, and the error if the data cannot be loaded.

use leptos::prelude::*;
use leptos_meta::Title;

use super::alert::ErrorAlert;
use crate::error::UiError;

/// The product's name in titles.
const PRODUCT: &str = "Weir";

/// A page that awaits its data, and shows an error in its place if that fails.
pub(crate) fn page<F>(title: impl Into<String>, drawn: F) -> AnyView
where
    F: Future<Output = Result<AnyView, UiError>> + Send + 'static,
{
    let title = title.into();
    Suspend::new(async move {
        match drawn.await {
            Ok(view) => view,
            Err(error) => view! {
                <PageHead title=title />
                {failed(error)}
            }
            .into_any(),
        }
    })
    .into_any()
}

fn failed(error: UiError) -> AnyView {
    match error {
        UiError::NotFound => view! {
            <div class="empty">
                <p>"There is nothing at this address, or you may not see it."</p>
                <p><a class="button" href="/">"Go to the start"</a></p>
            </div>
        }
        .into_any(),
        UiError::Forbidden(why) => view! { <div class="empty"><p>{why}</p></div> }.into_any(),
        error => view! {
            <div class="failed">
                <ErrorAlert error=error />
                <p><a class="button" href="">"Try again"</a></p>
            </div>
        }
        .into_any(),
    }
}

/// Heading and title of a page.
#[component]
pub(crate) fn PageHead(
    #[prop(into)] title: String,
    /// Name of the page's organization or project, for the title.
    #[prop(into, optional)]
    within: String,
    /// Content next to the heading.
    #[prop(optional)]
    children: Option<Children>,
) -> impl IntoView {
    let full = if within.is_empty() {
        format!("{title} - {PRODUCT}")
    } else {
        format!("{title} - {within} - {PRODUCT}")
    };
    // `leptos_meta` does not escape the text, and names come from users.
    let escaped = full.replace('&', "&amp;").replace('<', "&lt;");
    view! {
        <Title text=escaped />
        <header class="page-head">
            <h1>{title}</h1>
            {children.map(|children| view! { <div class="page-actions">{children()}</div> })}
        </header>
    }
}
