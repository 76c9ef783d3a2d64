//! Structure of pages: cards with a heading, and links between related pages.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

/// A card with a heading.
#[component]
pub(crate) fn Section(
    /// Id of the card, for links to it.
    id: &'static str,
    #[prop(into)] title: String,
    /// A description.
    #[prop(into, optional)]
    hint: String,
    /// Whether its actions lose data.
    #[prop(optional)]
    danger: bool,
    children: Children,
) -> impl IntoView {
    let heading = format!("{id}-title");
    let class = if danger { "card card-danger section" } else { "card section" };
    view! {
        <section class=class id=id aria-labelledby=heading>
            <h2 id=heading.clone()>{title}</h2>
            {(!hint.is_empty()).then(|| view! { <p class="section-hint">{hint}</p> })}
            {children()}
        </section>
    }
    .into_any()
}

/// A page in a group of related pages.
pub(crate) struct Tab {
    /// The address of the page.
    href: String,
    label: String,
}

impl Tab {
    pub(crate) fn new(href: impl Into<String>, label: impl Into<String>) -> Self {
        Self { href: href.into(), label: label.into() }
    }
}

/// Links between related pages.
#[component]
pub(crate) fn SubNav(
    #[prop(into)] label: String,
    /// The pages.
    tabs: Vec<Tab>,
) -> impl IntoView {
    let location = use_location();
    let (path, query) = (location.pathname.get_untracked(), location.search.get_untracked());
    let hrefs: Vec<&str> = tabs.iter().map(|tab| tab.href.as_str()).collect();
    let here = current(&hrefs, &path, &query);
    let links = tabs
        .into_iter()
        .enumerate()
        .map(|(at, Tab { href, label })| {
            let is_page = href.split('?').next() == Some(path.as_str());
            let current = (here == Some(at)).then_some(if is_page { "page" } else { "true" });
            view! {
                <a href=href aria-current=current>{label}</a>
            }
        })
        .collect_view();
    view! { <nav class="subnav" aria-label=label>{links}</nav> }.into_any()
}

/// Index of the current page: the nearest address at or above the path.
fn current(hrefs: &[&str], path: &str, query: &str) -> Option<usize> {
    let fits = |href: &str| {
        let (of_tab, wanted) = href.split_once('?').unwrap_or((href, ""));
        let below = path.strip_prefix(of_tab).is_some_and(|rest| rest.starts_with('/'));
        let is_requested =
            |pair: &str| pair.is_empty() || query.split('&').any(|given| given == pair);
        (path == of_tab || below) && wanted.split('&').all(is_requested)
    };
    let fitting = hrefs.iter().enumerate().filter(|(_, href)| fits(href));
    fitting.max_by_key(|(_, href)| href.len()).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::current;

    #[test]
    fn the_longest_address_that_fits_is_current() {
        let tabs = ["/o/1", "/o/1/members", "/o/1/members?level=owner"];
        for (path, query, expected) in [
            ("/o/1", "", Some(0)),
            ("/o/1/members", "", Some(1)),
            ("/o/1/members/7", "", Some(1)),
            ("/o/1/membersx", "", Some(0)),
            ("/o/1/members", "q=x&level=owner", Some(2)),
            ("/o/1/domains", "", Some(0)),
            ("/o/2", "", None),
        ] {
            assert_eq!(current(&tabs, path, query), expected, "{path}?{query}");
        }
    }
}
