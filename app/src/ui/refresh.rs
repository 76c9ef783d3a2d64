//! Automatic refresh of pages. Without scripts the whole page is loaded again; with scripts
//! only its data. Users can stop both.

use leptos::prelude::*;

use super::form_action::FormActions;
use super::query::{in_query, with_query};

/// Query parameter that stops the refresh.
const PAUSED: &str = "paused";
/// Longest wait before the next attempt, in seconds.
const LONGEST_WAIT: u32 = 120;

/// Refreshes the page, and shows that it does.
#[component]
pub(crate) fn Refresh(
    /// The interval, in seconds.
    seconds: u32,
) -> impl IntoView {
    let failed = use_context::<FormActions>().map_or(0, |actions| actions.failed_updates());
    let every = (seconds << failed.min(7)).min(LONGEST_WAIT.max(seconds));
    load_after(every);
    let stale = (failed > 0).then(|| {
        format!("This may be out of date: the last update failed. Next try in {every} s.")
    });
    let shown = move || {
        if is_paused() {
            let href = with_query(&[(PAUSED, None)]);
            return view! {
                <p class="refresh hint">
                    "Updates are paused. " <a href=href data-noscroll="">"Resume updates"</a>
                </p>
            }
            .into_any();
        }
        let href = with_query(&[(PAUSED, Some("1"))]);
        let reload = format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">");
        view! {
            // Browsers with scripts read the content of the element as text.
            <noscript inner_html=reload></noscript>
            <div id="refresh" class="refresh hint">
                <p>
                    {format!("Updated every {seconds} s. ")}
                    <a href=href data-noscroll="">"Pause updates"</a>
                </p>
                <p class="stale" role="status">{stale.clone()}</p>
            </div>
        }
        .into_any()
    };
    shown.into_any()
}

fn is_paused() -> bool {
    in_query(PAUSED) == "1"
}

/// Loads the data of the page again after some seconds, in the browser.
fn load_after(seconds: u32) {
    #[cfg(not(feature = "ssr"))]
    {
        use std::time::Duration;

        let Some(actions) = use_context::<FormActions>() else { return };
        Effect::new(move |_| {
            if is_paused() {
                return;
            }
            let actions = actions.clone();
            let load = move || {
                if !crate::client::redraw::is_in_use() {
                    actions.load_again();
                }
            };
            let timer = set_interval_with_handle(load, Duration::from_secs(seconds.into()));
            on_cleanup(move || {
                if let Ok(timer) = timer {
                    timer.clear();
                }
            });
        });
    }
    #[cfg(feature = "ssr")]
    let _ = seconds;
}
