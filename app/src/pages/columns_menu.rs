//! The choice of the columns of a table, in the query of the address. And the height of its
//! rows, which is a preference.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::server_fns::preferences::SetTableRows;
use crate::ui::form::ReturnAddress;
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::menu::Menu;

/// The query parameter with the name of a column. It is repeated.
pub(super) const PARAMETER: &str = "columns";

/// The names of columns in the address.
pub(super) fn in_address() -> Vec<String> {
    use_query_map().with(|query| query.get_all(PARAMETER)).unwrap_or_default()
}

/// The menu with the columns of a table.
#[component]
pub(super) fn ColumnsMenu(
    /// The address of the page without its query.
    action: String,
    /// Hidden fields for the query values that stay.
    kept: AnyView,
    /// The columns: name in the address, label, and whether it is shown.
    columns: Vec<(&'static str, &'static str, bool)>,
) -> impl IntoView {
    let boxes = columns
        .into_iter()
        .map(|(name, label, is_shown)| {
            view! {
                <label class="check">
                    <input type="checkbox" name=PARAMETER value=name checked=is_shown />
                    {label}
                </label>
            }
        })
        .collect_view();
    view! {
        <Menu class="columns-menu" label="Columns".into_any()>
            <form method="get" action=action aria-label="Columns">
                {kept}
                <fieldset>
                    <legend class="hidden">"Columns"</legend>
                    {boxes}
                </fieldset>
                <button type="submit" class="button">"Show columns"</button>
            </form>
            {heights()}
        </Menu>
    }
    .into_any()
}

/// The other height of table rows: the style sheet shows one of the buttons.
fn heights() -> AnyView {
    let set = form_action::<SetTableRows>();
    let button = |word: &'static str, label: &'static str| {
        view! { <button type="submit" class="button" name="rows" value=word>{label}</button> }
    };
    view! {
        <ActionForm action=set>
            <ReturnAddress />
            {button("compact", "Compact rows")}
            {button("comfortable", "Comfortable rows")}
        </ActionForm>
    }
    .into_any()
}
