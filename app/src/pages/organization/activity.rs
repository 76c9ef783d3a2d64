//! The activity log of an organization: actor, change, time, and API key. The filter is
//! in the address; the same filter applies to the CSV file.

use futures::future::try_join;
use leptos::prelude::*;
use weir_model::activity::{ActivityFilter, AuditAction, BY_SERVICE, Subject};
use weir_model::plugin_configs::SECRET;

use super::Tabs;
use super::activity_words::{Shown, action, kind, shown};
use crate::local_path::encode;
use crate::pages::id_in_path;
use crate::server_fns::activity::{ActivityView, ChangeView, EntryView, list_activity};
use crate::server_fns::organizations::{OrganizationView, get_organization};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, NoMatch};
use crate::ui::number::grouped;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::table::{Column, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::{Ago, Time};

const TITLE: &str = "Activity";
/// Entries on one page.
const PAGE_SIZE: u32 = 50;
/// Longer values are collapsed, in characters.
const VALUE_MAX: usize = 120;
/// Further changed fields of an entry are collapsed.
const FIELDS_MAX: usize = 5;

#[component]
pub(crate) fn Activity() -> impl IntoView {
    page(
        TITLE,
        || (id_in_path(), filter_in_query(), page_in_query(PAGE_SIZE)),
        |(id, filter, ListPage { limit, offset })| {
            try_join(get_organization(id.clone()), list_activity(id, filter, limit, offset))
        },
        draw,
    )
}

fn draw(
    (id, filter, list_page): (String, ActivityFilter, ListPage),
    (organization, found): (OrganizationView, ActivityView),
) -> AnyView {
    let here = format!("/organizations/{id}/activity");
    let is_filtered = !filter.query().is_all();
    let list = match (found.entries.is_empty(), is_filtered) {
        (true, true) => {
            let words = words(&filter, &found.actors);
            view! { <NoMatch filter=words clear=here.clone() /> }.into_any()
        }
        (true, false) => view! {
            <Empty title="Changes appear here">
                <p>"Every change that users and API keys make in this organization is listed, with the values before and after."</p>
            </Empty>
        }
        .into_any(),
        (false, _) => {
            let rows = found.entries.into_iter().map(|entry| row(&here, entry));
            let rows: Vec<TableRow> = rows.collect();
            view! { <Table caption="Activity" columns=columns() rows=rows /> }.into_any()
        }
    };
    let call = call(&id, &filter);
    view! {
        <PageHead title=TITLE within=organization.name>
            <DownloadCsv />
        </PageHead>
        <Tabs id=id />
        <Filter filter=filter actors=found.actors />
        {is_filtered.then(|| view! {
            <p class="hint activity-filtered">
                "A filter searches the newest 10,000 changes. " <a href=here>"Clear filters"</a>
            </p>
        })}
        {list}
        <Pager page=list_page total=found.total what="changes" />
        <ApiRequest call=call />
    }
    .into_any()
}

fn filter_in_query() -> ActivityFilter {
    ActivityFilter {
        actor: in_query("actor"),
        kind: in_query("kind"),
        action: in_query("action"),
        item: in_query("item"),
        from: in_query("from"),
        to: in_query("to"),
        entry: in_query("entry"),
    }
}

/// The filters that are set: names as in the address, and values.
fn set(filter: &ActivityFilter) -> Vec<(&'static str, &str)> {
    let all = [
        ("actor", filter.actor.as_str()),
        ("kind", filter.kind.as_str()),
        ("action", filter.action.as_str()),
        ("item", filter.item.as_str()),
        ("from", filter.from.as_str()),
        ("to", filter.to.as_str()),
        ("entry", filter.entry.as_str()),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The API request for the same list, as far as the API has the filters.
fn call(id: &str, filter: &ActivityFilter) -> ApiCall {
    let known = set(filter).into_iter().filter_map(|(name, value)| match name {
        "kind" => Some(format!("scope={}", encode(value))),
        "item" => Some(format!("item_id={}", encode(value))),
        "actor" if value != BY_SERVICE => Some(format!("user={}", encode(value))),
        _ => None,
    });
    let query = known.collect::<Vec<_>>().join("&");
    let sign = if query.is_empty() { "" } else { "?" };
    ApiCall {
        method: "GET",
        path: format!("/api/organizations/{id}/activity_log/{sign}{query}"),
        scope: "activity_log:read",
        body: None,
    }
}

/// The filter in words.
fn words(filter: &ActivityFilter, actors: &[(String, String)]) -> String {
    let word = |(name, value): (&str, &str)| match name {
        "actor" => {
            let known = actors.iter().find(|(id, _)| id == value).map(|(_, name)| name.as_str());
            format!("by {}", known.unwrap_or(if value == BY_SERVICE { "Weir" } else { value }))
        }
        "kind" => Subject::ALL
            .iter()
            .find(|one| one.text() == value)
            .map_or_else(|| value.to_owned(), |one| kind(*one).to_owned()),
        "action" => AuditAction::ALL
            .iter()
            .find(|one| one.text() == value)
            .map_or_else(|| value.to_owned(), |one| action(*one).to_owned()),
        "entry" => "one change".to_owned(),
        other => format!("{other} {value}"),
    };
    set(filter).into_iter().map(word).collect::<Vec<_>>().join(", ")
}

#[component]
fn Filter(filter: ActivityFilter, actors: Vec<(String, String)>) -> impl IntoView {
    let mut people = vec![(BY_SERVICE.to_owned(), "Weir itself".to_owned())];
    people.extend(actors);
    // Keep the selected actor, even if they are no longer a member.
    if !filter.actor.is_empty() && !people.iter().any(|(id, _)| *id == filter.actor) {
        people.push((filter.actor.clone(), "Another user".to_owned()));
    }
    let owned = |(value, label): (&str, &str)| (value.to_owned(), label.to_owned());
    let kinds: Vec<_> = Subject::ALL.iter().map(|one| owned((one.text(), kind(*one)))).collect();
    let actions: Vec<_> =
        AuditAction::ALL.iter().map(|one| owned((one.text(), action(*one)))).collect();
    let item = (!filter.item.is_empty())
        .then(|| view! { <input type="hidden" name="item" value=filter.item.clone() /> });
    view! {
        <FilterForm label="Activity">
            {choice("actor", "Who", people, filter.actor)}
            {choice("kind", "Kind", kinds, filter.kind)}
            {choice("action", "Action", actions, filter.action)}
            {day("from", "From (UTC)", filter.from)}
            {day("to", "To (UTC)", filter.to)}
            {item}
        </FilterForm>
    }
}

fn choice(
    name: &'static str,
    label: &'static str,
    choices: Vec<(String, String)>,
    chosen: String,
) -> AnyView {
    let options = choices
        .into_iter()
        .map(|(value, label)| {
            let selected = value == chosen;
            view! { <option value=value selected=selected>{label}</option> }
        })
        .collect_view();
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <select id=name name=name>
                <option value="">"All"</option>
                {options}
            </select>
        </div>
    }
    .into_any()
}

fn day(name: &'static str, label: &'static str, value: String) -> AnyView {
    view! {
        <div class="field">
            <label for=name>{label}</label>
            <input id=name name=name type="date" value=value />
        </div>
    }
    .into_any()
}

fn columns() -> Vec<Column> {
    ["When", "Who", "Action", "Object", "Before and after", "Via"].map(Column::text).into()
}

fn row(here: &str, entry: EntryView) -> TableRow {
    let EntryView {
        id,
        who,
        by_service,
        key,
        identity_provider,
        action: done,
        subject,
        item,
        name,
        changes,
        at,
    } = entry;
    let link = format!("{here}?entry={id}#{id}");
    let when = view! { <a href=link title="Link to this change"><Ago iso=at /></a> };
    let export = export_path(here, subject, &item);
    let of_item = with_query(&[("item", Some(item.as_str())), ("kind", Some(subject.text()))]);
    let name = name.unwrap_or(item);
    let object = view! {
        <span class="faint">{kind(subject)} " "</span>
        {truncated_link(of_item, name)}
    };
    let through = match (key, by_service || identity_provider.is_some()) {
        (Some(label), _) => view! { "API key " {truncated(label)} }.into_any(),
        (None, true) => "-".into_any(),
        (None, false) => "Web app".into_any(),
    };
    TableRow::new(vec![
        cell(when),
        actor(who, by_service, identity_provider),
        cell(action(done)),
        cell(object),
        difference(changes, &export),
        through,
    ])
    .id(id)
    .class("activity-line")
}

fn actor(
    who: Option<(String, String, String)>,
    by_service: bool,
    identity_provider: Option<String>,
) -> AnyView {
    if let Some(domain) = identity_provider {
        return view! { "Identity provider of " {domain} }.into_any();
    }
    match who {
        Some((id, name, email)) => {
            let href = with_query(&[("actor", Some(id.as_str()))]);
            view! { <a href=href title=email>{name}</a> }.into_any()
        }
        None if by_service => "Weir".into_any(),
        None => "A deleted user".into_any(),
    }
}

/// The address of the changed export. Empty for other objects.
fn export_path(here: &str, subject: Subject, item: &str) -> String {
    let organization = here.strip_suffix("/activity").filter(|_| subject == Subject::BatchExport);
    organization.map(|path| format!("{path}/exports/{item}")).unwrap_or_default()
}

/// Each field before and after the change.
fn difference(mut changes: Vec<ChangeView>, export: &str) -> AnyView {
    if changes.is_empty() {
        return "-".into_any();
    }
    let more = changes.split_off(shown_of(changes.len()));
    let more = (!more.is_empty()).then(|| {
        let count = format!("{} more", grouped(more.len() as u64));
        view! { <details><summary>{count}</summary>{fields(more, export)}</details> }
    });
    view! { {fields(changes, export)} {more} }.into_any()
}

/// How many of the changed fields are always shown.
fn shown_of(count: usize) -> usize {
    // A single further field takes no more room than the button that shows it.
    if count > FIELDS_MAX + 1 { FIELDS_MAX } else { count }
}

fn fields(changes: Vec<ChangeView>, export: &str) -> AnyView {
    let lines = changes.into_iter().map(|ChangeView { field, label, before, after }| {
        let name = name(label, &field);
        let is_secret = before == SECRET && after == SECRET;
        let values = match (before.is_empty(), after.is_empty()) {
            // A changed secret is recorded as `SECRET` before and after.
            _ if is_secret => " replaced".into_any(),
            (true, true) => ().into_any(),
            (true, false) => view! { ": " <ins>{value(shown(&field, after, export))}</ins> }.into_any(),
            (false, _) => view! {
                ": " <del>{value(shown(&field, before, export))}</del> <span aria-hidden="true">" → "</span>
                <ins>{value(shown(&field, after, export))}</ins>
            }
            .into_any(),
        };
        view! { <li>{name}{values}</li> }
    });
    view! { <ul class="activity-changes">{lines.collect_view()}</ul> }.into_any()
}

/// The label of a field. Its name, which files and the API have, is in the title.
fn name(label: Option<(String, String)>, field: &str) -> AnyView {
    let Some((label, part)) = label else {
        return view! { <code>{field.to_owned()}</code> }.into_any();
    };
    let part = (!part.is_empty()).then(|| view! { " " <code>{part}</code> });
    view! { <span title=field.to_owned()>{label} {part}</span> }.into_any()
}

/// A value. Long texts are collapsed to their beginning.
fn value(value: Shown) -> AnyView {
    let text = match value {
        Shown::Time(iso) => return view! { <Time iso=iso /> }.into_any(),
        Shown::Page(href, words) => return view! { <a href=href>{words}</a> }.into_any(),
        Shown::Words(text) => text,
    };
    match beginning(&text) {
        Some(beginning) => {
            view! { <details><summary>{beginning}</summary>{text}</details> }.into_any()
        }
        None if text.is_empty() => "nothing".into_any(),
        None => text.into_any(),
    }
}

/// The beginning of a long text. `None` for a short one.
fn beginning(text: &str) -> Option<String> {
    let (end, _) = text.char_indices().nth(VALUE_MAX)?;
    Some(format!("{}...", &text[..end]))
}

#[cfg(test)]
mod tests {
    use weir_model::activity::{ActivityFilter, BY_SERVICE, Subject};

    use super::{beginning, export_path, shown_of, words};

    fn filter() -> ActivityFilter {
        ActivityFilter {
            actor: BY_SERVICE.to_owned(),
            kind: "Team".to_owned(),
            from: "2026-08-21".to_owned(),
            ..ActivityFilter::default()
        }
    }

    #[test]
    fn filters_in_words() {
        assert_eq!(words(&filter(), &[]), "by Weir, Project, from 2026-08-21");
        let one = ActivityFilter { actor: "7".to_owned(), ..ActivityFilter::default() };
        assert_eq!(words(&one, &[("7".to_owned(), "Ada".to_owned())]), "by Ada");
    }

    #[test]
    fn values_of_exports_lead_to_the_export() {
        let path = |subject| export_path("/organizations/o/activity", subject, "e");
        assert_eq!(path(Subject::BatchExport), "/organizations/o/exports/e");
        assert_eq!(path(Subject::Project), "");
    }

    #[test]
    fn many_changed_fields_are_collapsed_after_five() {
        assert_eq!([1, 6, 7, 40].map(shown_of), [1, 6, 5, 5]);
    }

    #[test]
    fn long_values_open_from_their_beginning() {
        for short in ["", "a", "ä".repeat(120).as_str()] {
            assert_eq!(beginning(short), None);
        }
        assert_eq!(beginning(&"ä".repeat(121)), Some(format!("{}...", "ä".repeat(120))));
    }
}
