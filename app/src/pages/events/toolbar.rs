//! The filter form of the events page, its ranges, and the choice of columns: links and `GET`
//! forms.

use leptos::prelude::*;
use weir_model::live::{OutcomeLabel, PROPERTY_COLUMN};

use super::{ALL, RANGES, Selection};
use crate::live::{COLUMNS, address_of};
use crate::pages::columns_menu::{ColumnsMenu, PARAMETER};
use crate::ui::icon::Icon;
use crate::ui::menu::Menu;

/// Values that forms of the page keep although they have no field for them. The name is in
/// the address of the form otherwise.
fn kept(selection: &Selection, fields: &[&str]) -> AnyView {
    let pairs = selection.pairs().into_iter().filter(|(name, _)| {
        // Another filter or another choice begins with the latest events.
        *name != "before" && !fields.contains(name)
    });
    let hidden = pairs
        .map(|(name, value)| view! { <input type="hidden" name=name value=value.to_owned() /> });
    hidden.collect_view().into_any()
}

/// The filter. It is also the form that dragging over the chart fills and sends.
pub(super) fn filter_form(selection: &Selection) -> AnyView {
    let filter = &selection.filter;
    let more = [&filter.property, &filter.value, &filter.from, &filter.to];
    let has_more = more.into_iter().any(|value| !value.is_empty());
    let fields = ["event", "outcome", "person", "property", "value", "from", "to"];
    let is_filtered = !selection.is_whole() || has_more;
    let clear = is_filtered.then(|| {
        let mut without = fields.to_vec();
        without.push("before");
        let href = selection.address(&without, None);
        view! { <a class="button button-quiet" href=href>"Clear filters"</a> }
    });
    view! {
        <form
            class="filter events-filter"
            role="search"
            aria-label="Events"
            method="get"
            action=address_of(selection.project, &[])
            data-autosubmit=""
            data-brush-form=""
        >
            {kept(selection, &fields)}
            {line("event", "Event name", "search", "Part of the name", &filter.event)}
            {outcome(&filter.outcome)}
            {line("person", "Distinct id", "search", "Whole distinct id", &filter.person)}
            <details class="more-filters" id="more-filters" open=has_more>
                <summary>"More filters"</summary>
                <div class="more-filters-fields">
                    {line("property", "Property", "text", "plan", &filter.property)}
                    {line("value", "Value of the property", "text", "pro", &filter.value)}
                    {moment("from", "Received from (UTC)", &filter.from)}
                    {moment("to", "Received before (UTC)", &filter.to)}
                </div>
            </details>
            <div class="filter-actions">
                <button type="submit" class="button">
                    <Icon name="filter" />
                    "Filter"
                </button>
                {clear}
            </div>
        </form>
    }
    .into_any()
}

fn line(
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    example: &'static str,
    value: &str,
) -> AnyView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input
                id=name
                name=name
                type=kind
                value=value.to_owned()
                placeholder=example
                maxlength="400"
                autocomplete="off"
                spellcheck="false"
            />
        </div>
    }
    .into_any()
}

/// A field for a time. The value is that of the address, to the minute: reading times would
/// bring a calendar into the code of the page.
fn moment(name: &'static str, label: &'static str, value: &str) -> AnyView {
    let value = value.get(..16).unwrap_or_default().replace(' ', "T");
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input id=name name=name type="datetime-local" value=value autocomplete="off" />
        </div>
    }
    .into_any()
}

fn outcome(chosen: &str) -> AnyView {
    let options = OutcomeLabel::ALL
        .into_iter()
        .map(|label| {
            let word = label.word();
            view! { <option value=word selected=word == chosen>{label.text()}</option> }
        })
        .collect_view();
    view! {
        <div class="field">
            <label for="outcome">"Outcome"</label>
            <select id="outcome" name="outcome">
                <option value="">"All outcomes"</option>
                {options}
            </select>
        </div>
    }
    .into_any()
}

/// The ranges that end now, and the choice of columns. `frequent` are the properties that are
/// offered as columns.
pub(super) fn ranges_and_columns(selection: &Selection, frequent: Vec<String>) -> AnyView {
    let filter = &selection.filter;
    let has_times = !filter.from.is_empty() || !filter.to.is_empty();
    let chosen = if filter.range.is_empty() { ALL } else { filter.range.as_str() };
    let links = RANGES
        .into_iter()
        .chain([(ALL, "All time")])
        .map(|(name, words)| {
            let href = selection.address(&["from", "to", "before"], Some(name));
            let current = (name == chosen && !has_times).then_some("true");
            view! { <a class="button" href=href aria-current=current>{words}</a> }
        })
        .collect_view();
    view! {
        <div class="events-view">
            <nav class="ranges" aria-label="Range">{links}</nav>
            {properties(selection, frequent)}
            {columns(selection)}
        </div>
    }
    .into_any()
}

fn columns(selection: &Selection) -> AnyView {
    let choices =
        COLUMNS.into_iter().map(|(name, label, _)| (name, label, selection.columns.has(name)));
    let kept = kept(selection, &[PARAMETER]);
    let action = address_of(selection.project, &[]);
    view! { <ColumnsMenu action=action kept=kept columns=choices.collect() /> }.into_any()
}

/// The choice of properties that have a column: the chosen ones, and frequent others.
fn properties(selection: &Selection, frequent: Vec<String>) -> Option<AnyView> {
    let chosen = &selection.properties;
    let others = frequent.into_iter().filter(|name| !chosen.contains(name));
    let boxes: Vec<AnyView> = chosen
        .iter()
        .map(|name| (name.clone(), true))
        .chain(others.map(|name| (name, false)))
        .map(|(name, is_shown)| {
            view! {
                <label class="check">
                    <input type="checkbox" name=PROPERTY_COLUMN value=name.clone() checked=is_shown />
                    {name}
                </label>
            }
            .into_any()
        })
        .collect();
    if boxes.is_empty() {
        return None;
    }
    let kept = kept(selection, &[PROPERTY_COLUMN]);
    let action = address_of(selection.project, &[]);
    let menu = view! {
        <Menu class="properties-menu" label="Properties".into_any()>
            <form method="get" action=action aria-label="Properties">
                {kept}
                <p class="hint">"Up to five properties of these events as columns."</p>
                <fieldset>
                    <legend class="hidden">"Properties"</legend>
                    {boxes}
                </fieldset>
                <button type="submit" class="button">"Show properties"</button>
            </form>
        </Menu>
    };
    Some(menu.into_any())
}

/// What users should know about the list.
pub(super) fn hints(selection: &Selection) -> AnyView {
    let pause = selection.is_live().then(|| {
        let (href, label) = if selection.is_paused {
            (selection.address(&["paused"], None), "Resume updates")
        } else {
            let mut pairs = selection.pairs();
            pairs.push(("paused", "1"));
            (address_of(selection.project, &pairs), "Pause updates")
        };
        view! { <p class="hint needs-no-scripts"><a href=href>{label}</a></p> }
    });
    view! {
        {pause}
        <p class="hint">
            "The list is ordered by time of receipt. A CSV file has up to 10,000 rows."
        </p>
        <p class="hint keys needs-scripts">
            <kbd>"Space"</kbd> " pauses, " <kbd>"/"</kbd> " filters, " <kbd>"u"</kbd>
            " switches between UTC and your time zone."
        </p>
    }
    .into_any()
}
