//! The words about limits of organizations, which several pages share.

use leptos::prelude::*;
use weir_model::limits::{DEFAULT_WORD, LimitAction, LimitName, LimitState, NONE_WORD, WARNED_AT};

use crate::ui::bytes;
use crate::ui::number::{grouped, percent};
use crate::ui::status::{Status, Tone};

/// The values of the two fields of a limit: what happens beyond it, and its number.
pub(crate) fn chosen(state: &LimitState) -> (&'static str, String) {
    match (state.is_default, state.limit, state.action) {
        (false, Some(limit), Some(action)) => (action.word(), limit.to_string()),
        (false, ..) => (NONE_WORD, String::new()),
        (true, ..) => (DEFAULT_WORD, String::new()),
    }
}

/// The label of the field with what happens beyond a limit.
pub(crate) fn action_label(name: LimitName) -> String {
    format!("{}: beyond the limit", name.label())
}

/// The label of the field with the number of a limit.
pub(crate) fn number_label(name: LimitName) -> String {
    match name {
        LimitName::DiskBytes => format!("{}: limit in bytes", name.label()),
        _ => format!("{}: limit", name.label()),
    }
}

/// An amount of what is limited, in words.
pub(crate) fn amount(name: LimitName, value: u64) -> String {
    match name {
        LimitName::DiskBytes => bytes::text(value),
        _ => grouped(value),
    }
}

/// What happens beyond a limit, in words.
pub(crate) const fn beyond(name: LimitName, action: LimitAction) -> &'static str {
    match (action, name) {
        (LimitAction::Warn, _) => "Owners get an e-mail",
        (LimitAction::Drop, _) => "Events are dropped, with a reason",
        (LimitAction::Reject, LimitName::Members) => "No more members join",
        (LimitAction::Reject, LimitName::Exports) => "No more exports are created",
        (LimitAction::Reject, _) => "Requests with events are refused with status 429",
    }
}

/// How much of a limit is used, with a warning when it is most of it.
pub(crate) fn used(name: LimitName, state: &LimitState) -> AnyView {
    if name == LimitName::DiskBytes && state.measured_at.is_none() {
        return "Not measured yet".into_any();
    }
    let usage = amount(name, state.usage);
    let Some(limit) = state.limit else { return usage.into_any() };
    let share = u128::from(state.usage).saturating_mul(100) / u128::from(limit.max(1));
    let reached = WARNED_AT.into_iter().find(|percent| share >= u128::from(*percent));
    let warning = reached.map(|percent| match percent >= 100 {
        true => (Tone::Bad, "limit reached"),
        false => (Tone::Warn, "near the limit"),
    });
    let share = percent(state.usage, limit);
    let share = match warning {
        Some((tone, word)) => {
            let label = format!("{share}, {word}");
            view! { <Status tone=tone label=label /> }.into_any()
        }
        None => format!("({share})").into_any(),
    };
    view! { {usage} " " {share} }.into_any()
}
