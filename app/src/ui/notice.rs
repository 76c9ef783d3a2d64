//! Shows a notice once. With scripts it disappears after some time (`behaviours::toast`).

use leptos::prelude::*;

use super::form::ReturnAddress;
use super::icon::Icon;
use crate::notice::{self, Undo};
use crate::page_facts::page_facts;

/// Seconds until the notice disappears.
const STAYS: u32 = 6;
/// Seconds until a notice with an undo button disappears.
const STAYS_WITH_UNDO: u32 = 10;

/// The notice of the page, if there is one.
#[component]
pub(crate) fn Notice() -> impl IntoView {
    let first = page_facts().notice.and_then(|text| notice::Notice::from_text(&text, |_| true));
    #[cfg(feature = "ssr")]
    if first.is_some() {
        crate::context::forget_notice();
    }
    let shown = RwSignal::new(first);
    #[cfg(not(feature = "ssr"))]
    {
        SHOWN.set(Some(shown));
        Effect::new(move |_| {
            if shown.with(Option::is_some) {
                crate::behaviours::toast::shown();
            }
        });
    }
    move || shown.get().map(toast)
}

#[cfg(not(feature = "ssr"))]
thread_local! {
    static SHOWN: std::cell::Cell<Option<RwSignal<Option<notice::Notice>>>> =
        const { std::cell::Cell::new(None) };
}

/// Shows the notice of the answer that was received last, if it has one.
#[cfg(not(feature = "ssr"))]
pub(crate) fn show_next() {
    if let (Some(shown), Some(text)) = (SHOWN.get(), crate::client::cookie::take_notice()) {
        // New elements, because the time of the previous notice hides its own.
        let _ = shown.try_set(None);
        let next = notice::Notice::from_text(&text, |_| true);
        set_timeout(
            move || {
                let _ = shown.try_set(next);
            },
            std::time::Duration::ZERO,
        );
    }
}

/// Renders a notice.
pub(crate) fn toast(notice: notice::Notice) -> AnyView {
    let notice::Notice { text, undo } = notice;
    let seconds = if undo.is_some() { STAYS_WITH_UNDO } else { STAYS };
    view! {
        <div class="toast" data-toast=seconds.to_string()>
            <Icon name="check" />
            <p role="status" data-toast-text="">{text}</p>
            {undo.map(undo_form)}
            <button type="button" class="button button-quiet needs-scripts" data-toast-close="">
                <Icon name="close" />
                <span class="hidden">"Close this message"</span>
            </button>
        </div>
    }
    .into_any()
}

fn undo_form(undo: Undo) -> AnyView {
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
