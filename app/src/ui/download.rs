//! The link to the list of a page as a CSV file.

use leptos::prelude::*;

use super::icon::Icon;
use super::query::with_query;

/// The list of the page as a CSV file, with the filter in the address. The server has a file
/// for each list at `/_csv` and the address of its page, with the name of the list behind it if
/// the page has several.
#[component]
pub(crate) fn DownloadCsv(
    /// The address of the page with another filter than that in the address.
    #[prop(optional, into)]
    page: String,
    /// The name of the list, if the page has several.
    #[prop(optional)]
    of: &'static str,
) -> impl IntoView {
    let page = if page.is_empty() { with_query(&[]) } else { page };
    let of = (!of.is_empty()).then(|| view! { <span class="hidden">" of " {of}</span> });
    view! {
        <a class="button" href=format!("/_csv{page}") download="">
            <Icon name="download" />
            "Download CSV" {of}
        </a>
    }
    .into_any()
}
