//! Pagination of lists by `limit` and `offset` in the address, as in the API.

use leptos::prelude::*;
use weir_model::pagination::MAX_LIMIT;

use super::alert::Alert;
use super::number::grouped;
use super::query::{in_query, with_query};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListPage {
    /// Maximum number of entries.
    pub(crate) limit: u32,
    /// Number of entries before the page.
    pub(crate) offset: u32,
}

/// The page in the address. Invalid values are ignored.
pub(crate) fn page_in_query(default_limit: u32) -> ListPage {
    page_from(&in_query("limit"), &in_query("offset"), default_limit)
}

fn page_from(limit: &str, offset: &str, default_limit: u32) -> ListPage {
    let most = u32::try_from(MAX_LIMIT).unwrap_or(u32::MAX);
    let limit = limit.parse::<u32>().ok().filter(|limit| *limit > 0);
    ListPage {
        limit: limit.unwrap_or(default_limit).min(most),
        offset: offset.parse().unwrap_or_default(),
    }
}

/// The position in a list, and links to other pages. Empty if all entries are shown.
#[component]
pub(crate) fn Pager(
    page: ListPage,
    /// Total number of entries.
    total: u64,
    /// Name of the entries, such as `members`.
    #[prop(into)]
    what: String,
) -> impl IntoView {
    let (previous, next) = neighbours(page, total);
    let shown = total.saturating_sub(page.offset.into()).min(page.limit.into());
    let position = position_text(page, shown, Some(total), &what);
    (previous.is_some() || next.is_some()).then(|| page_links(position, &what, previous, next))
}

/// The same for a list with an unknown total.
#[component]
pub(crate) fn PagerWithoutTotal(
    page: ListPage,
    /// Whether more entries exist.
    has_next: bool,
    /// Number of shown entries.
    shown: usize,
    /// Name of the entries, such as `events`.
    #[prop(into)]
    what: String,
) -> impl IntoView {
    let shown = u64::try_from(shown).unwrap_or(u64::MAX);
    let previous = (page.offset > 0).then(|| page.offset.saturating_sub(page.limit));
    let next = has_next.then(|| page.offset.saturating_add(page.limit));
    let position = position_text(page, shown, None, &what);
    (previous.is_some() || next.is_some()).then(|| page_links(position, &what, previous, next))
}

/// A link that continues a search, after many entries were read and few matched.
#[component]
pub(crate) fn ContinueSearch(
    /// Name of the entries, such as `persons`.
    what: &'static str,
    cursor: String,
) -> impl IntoView {
    let href = with_query(&[("after", Some(cursor.as_str()))]);
    view! {
        <Alert kind="note">
            <p>{format!("Many {what} were searched, and there are more.")}</p>
            <p><a class="button" href=href>"Search further"</a></p>
        </Alert>
    }
}

fn page_links(position: String, what: &str, previous: Option<u32>, next: Option<u32>) -> AnyView {
    view! {
        <nav class="pager" aria-label=format!("Pages of {what}")>
            <p>{position}</p>
            <div class="pager-ways">
                {previous.map(|offset| page_link(offset, "prev", "Previous"))}
                {next.map(|offset| page_link(offset, "next", "Next"))}
            </div>
        </nav>
    }
    .into_any()
}

fn page_link(offset: u32, rel: &'static str, label: &'static str) -> AnyView {
    let text = offset.to_string();
    let href = with_query(&[("offset", (offset > 0).then_some(text.as_str()))]);
    view! { <a class="button" rel=rel href=href>{label}</a> }.into_any()
}

/// Offsets of the previous and next pages. From beyond the end of the list, the previous
/// page is the last one.
fn neighbours(page: ListPage, total: u64) -> (Option<u32>, Option<u32>) {
    let ListPage { limit, offset } = page;
    let last = total.saturating_sub(1) / u64::from(limit) * u64::from(limit);
    let last = u32::try_from(last).unwrap_or(u32::MAX);
    let previous = (offset > 0).then(|| offset.saturating_sub(limit).min(last));
    let after = offset.saturating_add(limit);
    (previous, (u64::from(after) < total).then_some(after))
}

fn position_text(page: ListPage, shown: u64, total: Option<u64>, what: &str) -> String {
    if shown == 0 {
        return format!("No more {what}");
    }
    let before = u64::from(page.offset);
    let range = format!("{} to {}", grouped(before + 1), grouped(before + shown));
    match total {
        Some(total) => format!("{range} of {} {what}", grouped(total)),
        None => format!("Showing {what} {range}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ListPage, neighbours, page_from, position_text};

    const fn page(limit: u32, offset: u32) -> ListPage {
        ListPage { limit, offset }
    }

    #[test]
    fn bad_values_fall_back() {
        assert_eq!(page_from("", "", 50), page(50, 0));
        assert_eq!(page_from("10", "20", 50), page(10, 20));
        assert_eq!(page_from("0", "-1", 50), page(50, 0));
        assert_eq!(page_from("x", "x", 50), page(50, 0));
        assert_eq!(page_from("5000", "99999999999", 50), page(1000, 0));
    }

    #[test]
    fn neighbours_of_a_page() {
        assert_eq!(neighbours(page(50, 0), 0), (None, None));
        assert_eq!(neighbours(page(50, 0), 50), (None, None));
        assert_eq!(neighbours(page(50, 0), 51), (None, Some(50)));
        assert_eq!(neighbours(page(50, 50), 120), (Some(0), Some(100)));
        assert_eq!(neighbours(page(50, 100), 120), (Some(50), None));
        assert_eq!(neighbours(page(50, 20), 60), (Some(0), None));
        assert_eq!(neighbours(page(50, 900), 120), (Some(100), None), "beyond the end");
        assert_eq!(neighbours(page(50, 900), 0), (Some(0), None), "beyond the end of nothing");
        assert_eq!(neighbours(page(1000, u32::MAX), u64::MAX).1, Some(u32::MAX));
    }

    #[test]
    fn positions_in_words() {
        let members = |page, shown, total| position_text(page, shown, total, "members");
        assert_eq!(members(page(50, 0), 50, Some(1_204)), "1 to 50 of 1,204 members");
        assert_eq!(members(page(50, 1_200), 4, Some(1_204)), "1,201 to 1,204 of 1,204 members");
        assert_eq!(members(page(50, 50), 50, None), "Showing members 51 to 100");
        assert_eq!(members(page(50, 2_000), 0, Some(1_204)), "No more members");
    }
}
