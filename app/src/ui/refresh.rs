//! Pages that keep themselves fresh. Without scripts the whole page is loaded
//! again, with them only its fresh parts are (`behaviours::refresh`). Whoever
//! reads in peace can stop both.

use leptos::prelude::*;

use super::query::{in_query, with_query};

/// In the query while nothing is to move.
const STILL: &str = "still";

/// Keeps the page fresh, and says so.
#[component]
pub(crate) fn Refresh(
    /// How often.
    seconds: u32,
) -> impl IntoView {
    if in_query(STILL) == "1" {
        let href = with_query(&[(STILL, None)]);
        return view! {
            <p class="refresh hint">"Updates are paused. " <a href=href>"Resume updates"</a></p>
        }
        .into_any();
    }
    let href = with_query(&[(STILL, Some("1"))]);
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

/// A part of a page that is kept fresh.
#[component]
pub(crate) fn Fresh(
    /// Its id.
    id: &'static str,
    /// What is in it; no islands.
    children: Children,
) -> impl IntoView {
    view! { <div id=id data-fresh="">{children()}</div> }.into_any()
}
