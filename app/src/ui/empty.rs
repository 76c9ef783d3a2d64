//! What a part of a page shows in place of its content: nothing yet, nothing
//! that fits, not allowed, failed.

use leptos::prelude::*;

use super::alert::ErrorAlert;
use super::icon::Icon;
use crate::error::UiError;

/// Nothing is there yet: what is missing, why it helps, and one thing to do.
#[component]
pub(crate) fn Empty(
    /// What is missing.
    #[prop(into)]
    title: String,
    /// Why it helps, and the way to it.
    children: Children,
) -> impl IntoView {
    view! {
        <div class="empty">
            <h2>{title}</h2>
            {children()}
        </div>
    }
    .into_any()
}

/// Something is there, but nothing that fits.
#[component]
pub(crate) fn NoMatch(
    /// What was asked for, in words.
    #[prop(into)]
    filter: String,
    /// The same page without a filter.
    #[prop(into)]
    clear: String,
) -> impl IntoView {
    view! {
        <div class="empty">
            <p>"Nothing fits the filter: " <strong>{filter}</strong></p>
            <p><a class="button" href=clear>"Clear filters"</a></p>
        </div>
    }
    .into_any()
}

/// What is shown can be looked at only.
#[component]
pub(crate) fn ReadOnly(
    /// Who can change it, or who can allow it.
    #[prop(into)]
    why: String,
) -> impl IntoView {
    view! {
        <p class="read-only">
            <Icon name="lock" />
            <span>{why}</span>
        </p>
    }
    .into_any()
}

/// A part of a page that waits for its own data: as `drawn`, or with what failed
/// in its place. The rest of the page stays usable.
pub(crate) fn panel<F>(drawn: F) -> AnyView
where
    F: Future<Output = Result<AnyView, UiError>> + Send + 'static,
{
    Suspend::new(async move {
        match drawn.await {
            Ok(view) => view,
            Err(UiError::Forbidden(why)) => view! { <ReadOnly why=why /> }.into_any(),
            Err(error) => view! {
                <div class="failed">
                    <ErrorAlert error=error />
                    <p><a class="button" href="">"Try again"</a></p>
                </div>
            }
            .into_any(),
        }
    })
    .into_any()
}
