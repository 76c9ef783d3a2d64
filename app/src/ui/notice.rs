//! Shows a notice once. With scripts it disappears after some time (`behaviours::toast`).

use leptos::prelude::*;

use super::form::ReturnAddress;
use super::icon::Icon;
use crate::context::{forget_notice, visit};
use crate::notice::{self, Undo};

/// Seconds until the notice disappears.
const STAYS: u32 = 6;
/// Seconds until a notice with an undo button disappears.
const STAYS_WITH_UNDO: u32 = 10;

/// The notice of the page, if there is one.
#[component]
pub(crate) fn Notice() -> impl IntoView {
    let notice = visit().and_then(|visit| visit.notice);
    notice.map(|notice| {
        forget_notice();
        toast(notice)
    })
}

/// Renders a notice.
pub(crate) fn toast(notice: notice::Notice) -> AnyView {
    let notice::Notice { text, undo } = notice;
    let seconds = if undo.is_some() { STAYS_WITH_UNDO } else { STAYS };
    view! {
        <div class="toast" data-toast=seconds.to_string()>
            <Icon name="check" />
            <p role="status" data-toast-text="">{text}</p>
            {undo.map(way_back)}
            <button type="button" class="button button-quiet needs-scripts" data-toast-close="">
                <Icon name="close" />
                <span class="hidden">"Close this message"</span>
            </button>
        </div>
    }
    .into_any()
}

fn way_back(undo: Undo) -> AnyView {
    let fields = undo
        .fields
        .into_iter()
        .map(|(name, value)| view! { <input type="hidden" name=name value=value /> })
        .collect_view();
    view! {
        <form method="post" action=undo.function>
            {fields}
            <ReturnAddress />
            <button type="submit" class="button" data-busy="Undoing...">"Undo"</button>
        </form>
    }
    .into_any()
}
