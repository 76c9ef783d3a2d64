//! Automatic refresh of pages. Without scripts the whole page is reloaded; with scripts
//! only its `Fresh` parts are replaced (`behaviours::refresh`). Users can stop both.

use leptos::prelude::*;

use super::query::{in_query, with_query};

/// Query parameter that stops the refresh.
const PAUSED: &str = "paused";

/// Refreshes the page, and shows that it does.
#[component]
pub(crate) fn Refresh(
    /// The interval, in seconds.
    seconds: u32,
) -> impl IntoView {
    if in_query(PAUSED) == "1" {
        let href = with_query(&[(PAUSED, None)]);
        return view! {
            <p class="refresh hint">"Updates are paused. " <a href=href>"Resume updates"</a></p>
        }
        .into_any();
    }
    let href = with_query(&[(PAUSED, Some("1"))]);
    let every = seconds.to_string();
    view! {
        <noscript><meta http-equiv="refresh" content=every.clone() /></noscript>
        <div id="refresh" class="refresh hint" data-refresh=every>
            <p>{format!("Updated every {seconds} s. ")} <a href=href>"Pause updates"</a></p>
            <p class="stale" role="status" data-stale=""></p>
        </div>
    }
    .into_any()
}

/// A part of a page that is refreshed.
#[component]
pub(crate) fn Fresh(
    /// Id of the part.
    id: &'static str,
    /// The content. It must not contain islands.
    children: Children,
) -> impl IntoView {
    view! { <div id=id data-fresh="">{children()}</div> }.into_any()
}
