//! The outcome of an event: word, shape and colour.

use leptos::prelude::*;
use weir_model::live::Outcome;

use super::row::Row;
use crate::ui::icon::Icon;

/// The outcome of a row.
pub(super) fn badge(row: &Row) -> AnyView {
    let (class, icon) = match (row.outcome, row.reasons.is_empty()) {
        (Outcome::Dropped, _) => ("badge badge-dropped", "drop"),
        (Outcome::Accepted, true) => ("badge badge-accepted", "check"),
        (Outcome::Accepted, false) => ("badge badge-altered", "alter"),
    };
    view! {
        <span class=class>
            <Icon name=icon />
            {row.word()}
        </span>
    }
    .into_any()
}
