//! A part of a page that waits for data and draws exactly one of: the shape of
//! what comes, the content, or what failed.

use leptos::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::alert::ErrorAlert;
use super::form::follow_failure;
use crate::error::UiError;

/// Draws what a resource brings. What is there stays while it is fetched anew.
#[component]
pub(crate) fn Panel<T, F>(
    /// The data.
    data: Resource<Result<T, UiError>>,
    /// Rough height of the content, in lines.
    #[prop(default = 6)]
    lines: usize,
    /// Draws the content.
    view: F,
) -> impl IntoView
where
    T: Clone + Serialize + DeserializeOwned + Send + Sync + 'static,
    F: Fn(T) -> AnyView + Clone + Send + Sync + 'static,
{
    let content = move || {
        let view = view.clone();
        Suspend::new(async move {
            match data.await {
                Ok(value) => view(value),
                Err(error) => failed(error, Callback::new(move |()| data.refetch())),
            }
        })
    };
    view! { <Transition fallback=move || skeleton(lines)>{content}</Transition> }
}

/// Bars where text will be. Shown after a moment only, so that a quick answer
/// does not flicker.
fn skeleton(lines: usize) -> AnyView {
    let bars = (0..lines).map(|_| view! { <span class="bar"></span> }).collect_view();
    view! { <div class="skeleton" role="status"><span class="hidden">"Loading"</span>{bars}</div> }
        .into_any()
}

fn failed(error: UiError, retry: Callback<()>) -> AnyView {
    follow_failure(Signal::stored(Some(error.clone())));
    match error {
        UiError::NotFound => view! {
            <div class="empty">
                <p>"There is nothing at this address, or it is not for you."</p>
                <p><a href="/">"Go to the start"</a></p>
            </div>
        }
        .into_any(),
        UiError::Forbidden(why) => view! { <div class="empty"><p>{why}</p></div> }.into_any(),
        error => view! {
            <div class="failed">
                <ErrorAlert error=error />
                <button type="button" class="button needs-scripts" on:click=move |_| retry.run(())>
                    "Retry"
                </button>
            </div>
        }
        .into_any(),
    }
}
