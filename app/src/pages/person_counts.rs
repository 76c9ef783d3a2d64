//! Event counts of a person, in cells and facts.

use leptos::prelude::*;

use crate::server_fns::persons::CountsView;
use crate::ui::number::grouped;
use crate::ui::table::cell;
use crate::ui::time::Ago;

/// In place of a number that is not known yet.
const COUNTING: &str = "Counting";

/// The number of events.
pub(super) fn number(counts: Option<&CountsView>) -> AnyView {
    let Some(CountsView { events, is_exact, .. }) = counts else { return cell(COUNTING) };
    let number = grouped(*events);
    cell(if *is_exact { number } else { format!("at least {number}") })
}

/// The times of the first and the last event.
pub(super) fn times(counts: Option<&CountsView>) -> [AnyView; 2] {
    let Some(CountsView { first, last, .. }) = counts else {
        return [cell(COUNTING), cell(COUNTING)];
    };
    [first, last].map(|time| match time.clone() {
        Some(iso) => cell(view! { <Ago iso=iso /> }),
        None => cell("-"),
    })
}
