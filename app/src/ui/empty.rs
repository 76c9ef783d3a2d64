//! Replacements for the content of a panel: no data yet, no match, an empty page, no
//! permission, an error.

use leptos::prelude::*;

use super::alert::ErrorAlert;
use super::icon::Icon;
use super::query::with_query;
use crate::error::UiError;

/// There is no data yet: what is missing, why it is useful, and the next step.
#[component]
pub(crate) fn Empty(
    /// What is missing.
    #[prop(into)]
    title: String,
    /// Why it is useful, and the next step.
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

/// The button that leads to the page for sending the first event of a project.
pub(crate) fn first_event(project: i64) -> AnyView {
    view! {
        <p>
            <a class="button button-primary" href=format!("/projects/{project}/start")>
                "Send the first event"
            </a>
        </p>
    }
    .into_any()
}

/// A page that needs events, in a project without one. The text says what for.
pub(crate) fn no_event(project: i64, why: &'static str) -> AnyView {
    view! {
        <Empty title="No event yet">
            <p>{why}</p>
            {first_event(project)}
        </Empty>
    }
    .into_any()
}

/// There is data, but none matches the filter.
#[component]
pub(crate) fn NoMatch(
    /// The filter in words.
    #[prop(into)]
    filter: String,
    /// The address of the page without the filter.
    #[prop(into)]
    clear: String,
) -> impl IntoView {
    view! {
        <div class="empty">
            <p>"Nothing matches the filter: " <strong>{filter}</strong></p>
            <p><a class="button" href=clear>"Clear filters"</a></p>
        </div>
    }
    .into_any()
}

/// The address names a page beyond the end of the list.
#[component]
pub(crate) fn EmptyPage(
    /// Name of the entries, such as `persons`.
    what: &'static str,
) -> impl IntoView {
    let first = with_query(&[("after", None), ("offset", None)]);
    view! {
        <div class="empty">
            <p>{format!("There are no {what} on this page.")}</p>
            <p><a class="button" href=first>"Go back to the first page"</a></p>
        </div>
    }
    .into_any()
}

/// The user can read the data but not change it.
#[component]
pub(crate) fn ReadOnly(
    /// Which users can change it, or can give the permission.
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

/// A part of a page whose data can fail alone: shows the error in its place. The rest of
/// the page stays usable. The page loads the data with its own.
pub(crate) fn panel<D>(data: Result<D, UiError>, draw: impl FnOnce(D) -> AnyView) -> AnyView {
    match data {
        Ok(data) => draw(data),
        Err(UiError::Forbidden(why)) => view! { <ReadOnly why=why /> }.into_any(),
        Err(error) => view! {
            <div class="failed">
                <ErrorAlert error=error />
                <p><a class="button" href="">"Try again"</a></p>
            </div>
        }
        .into_any(),
    }
}
