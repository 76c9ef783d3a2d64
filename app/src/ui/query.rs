//! State of pages in their address: filters, order, position in a list.

use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_query_map};
use weir_model::errors::FieldError;

use super::icon::Icon;
use super::table::{Direction, Sort};
use crate::error::UiError;
use crate::form_names::{ERROR, FAILED};
use crate::local_path;

/// The value of a query parameter. Empty if it is missing.
pub(crate) fn in_query(name: &str) -> String {
    use_query_map().with(|query| query.get(name)).unwrap_or_default()
}

/// The fault in the address of a question that was refused elsewhere, such as that of a file. The
/// page shows it instead of asking again. `function` is the path of its server function.
pub(crate) fn fault_in_query(function: &str) -> Option<FieldError> {
    match UiError::from_query(&in_query(ERROR)) {
        UiError::Field(fault) if in_query(FAILED) == function => Some(fault),
        _ => None,
    }
}

/// The current path and query with these values set or removed. If a value other than
/// `offset` changes, `offset` is removed, so that the list starts at its first page.
pub(crate) fn with_query(changes: &[(&str, Option<&str>)]) -> String {
    let location = use_location();
    changed(&location.pathname.get_untracked(), &location.search.get_untracked(), changes)
}

fn changed(path: &str, query: &str, changes: &[(&str, Option<&str>)]) -> String {
    let restarts = changes.iter().any(|(name, _)| *name != "offset");
    let is_kept = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        let of_outcome = name.starts_with("__");
        let replaced = changes.iter().any(|(changed, _)| *changed == name);
        !(name.is_empty() || of_outcome || replaced || (restarts && name == "offset"))
    };
    let kept = query.split('&').filter(is_kept).map(str::to_owned);
    let set = changes.iter().filter_map(|(name, value)| {
        value.map(|value| format!("{name}={}", local_path::encode(value)))
    });
    let pairs: Vec<String> = kept.chain(set).collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// Sorting by a column. The order is in the query parameter `order`: the word of the column,
/// with `-` before it for the largest first.
pub(crate) fn sort_by(
    word: &str,
    // The order in the address. Can be empty.
    order: &str,
    // The order without a value in the address.
    usual: &str,
    // The direction of the first click. Further ones change it.
    first: Direction,
) -> Sort {
    let (current, next) = sorting(word, if order.is_empty() { usual } else { order }, first);
    let value = Some(next.as_str()).filter(|next| *next != usual);
    Sort { href: with_query(&[("order", value), ("after", None)]), current }
}

/// The direction in which a list of this order is sorted by a column, and its order after a
/// click.
fn sorting(word: &str, order: &str, first: Direction) -> (Option<Direction>, String) {
    let current = match order.strip_prefix('-') {
        Some(name) if name == word => Some(Direction::Descending),
        None if order == word => Some(Direction::Ascending),
        _ => None,
    };
    let next = match current {
        Some(Direction::Descending) => Direction::Ascending,
        Some(Direction::Ascending) => Direction::Descending,
        None => first,
    };
    let next = match next {
        Direction::Ascending => word.to_owned(),
        Direction::Descending => format!("-{word}"),
    };
    (current, next)
}

/// A filter form. With scripts, a choice submits it (`behaviours::autosubmit`).
#[component]
pub(crate) fn FilterForm(
    /// The label of the form.
    #[prop(into)]
    label: String,
    /// Its fields, including hidden ones for query values that stay.
    children: Children,
) -> impl IntoView {
    let path = use_location().pathname.get_untracked();
    view! {
        <form class="filter" role="search" aria-label=label method="get" action=path data-autosubmit="">
            {children()}
            <button type="submit" class="button">
                <Icon name="filter" />
                "Filter"
            </button>
        </form>
    }
    .into_any()
}

/// The text field `q` of such a form.
#[component]
pub(crate) fn SearchField(
    /// The label of the field.
    #[prop(into)]
    label: String,
    /// The current search text.
    value: String,
) -> impl IntoView {
    view! {
        <div class="field">
            <label for="q">{label}</label>
            <input
                id="q"
                name="q"
                type="search"
                value=value
                maxlength="200"
                autocomplete="off"
                spellcheck="false"
            />
        </div>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::{changed, sorting};
    use crate::ui::table::Direction;

    #[test]
    fn a_click_sorts_by_a_column_and_then_in_the_other_direction() {
        let (up, down) = (Direction::Ascending, Direction::Descending);
        for (order, first, current, next) in [
            ("", down, None, "-events"),
            ("name", up, None, "events"),
            ("-name", down, None, "-events"),
            ("-events", down, Some(down), "events"),
            ("events", down, Some(up), "-events"),
        ] {
            let expected = (current, next.to_owned());
            assert_eq!(sorting("events", order, first), expected, "{order}");
        }
    }

    #[test]
    fn values_are_set_replaced_and_removed() {
        let list = "/a";
        assert_eq!(changed(list, "", &[]), "/a");
        assert_eq!(changed(list, "q=x%20y", &[("sort", Some("name"))]), "/a?q=x%20y&sort=name");
        assert_eq!(
            changed(list, "q=x&sort=name", &[("q", Some("ä b"))]),
            "/a?sort=name&q=%C3%A4%20b"
        );
        assert_eq!(changed(list, "q=x", &[("q", None)]), "/a");
        assert_eq!(changed(list, "qq=1", &[("q", None)]), "/a?qq=1", "whole names only");
    }

    #[test]
    fn a_list_starts_at_its_beginning_unless_only_the_page_changes() {
        assert_eq!(changed("/a", "q=x&offset=50", &[("q", Some("y"))]), "/a?q=y");
        assert_eq!(changed("/a", "q=x&offset=50", &[("offset", Some("100"))]), "/a?q=x&offset=100");
        assert_eq!(changed("/a", "offset=50&limit=9", &[("offset", None)]), "/a?limit=9");
        assert_eq!(changed("/a", "offset=50", &[]), "/a?offset=50");
    }

    #[test]
    fn the_outcome_of_a_form_is_removed() {
        assert_eq!(changed("/a", "__done=/_fn/f&q=x&__err=e", &[]), "/a?q=x");
    }
}
