//! The limits of an organization, for its members.

use leptos::prelude::*;
use weir_model::limits::{LimitName, LimitState, OrganizationLimits};

use crate::pages::limits::{amount, beyond, used};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::sections::Section;
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Time;

#[component]
pub(super) fn Limits(limits: OrganizationLimits) -> impl IntoView {
    let columns = vec![
        Column::text("Resource"),
        Column::text("Used"),
        Column::text("Limit"),
        Column::text("Beyond the limit"),
    ];
    // The average of a minute says little without a limit.
    let is_shown = |name: &LimitName| {
        *name != LimitName::EventsPerSecond || limits.events_per_second.limit.is_some()
    };
    let names = LimitName::ALL.into_iter().filter(is_shown);
    let rows: Vec<TableRow> = names.map(|name| row(name, limits.get(name))).collect();
    let path = format!("/api/organizations/{}/limits/", limits.organization_id);
    let call = ApiCall::new("GET", path, "organization:read");
    let resets_at = limits.resets_at.to_string();
    view! {
        <Section id="limits" title="Limits"
            hint="The operator of this instance chooses the limits. Owners get an e-mail at 80% and at 100%.">
            <Table caption="Limits" columns=columns rows=rows />
            <p>
                "A new month begins at " <Time iso=resets_at /> ". "
                <a href="/help/limits">"How limits work"</a>
            </p>
            <ApiRequest call=call of="read the limits" />
        </Section>
    }
}

fn row(name: LimitName, state: &LimitState) -> TableRow {
    let limit = match state.limit {
        Some(limit) => amount(name, limit),
        None => "No limit".to_owned(),
    };
    let beyond = state.action.map(|action| beyond(name, action)).unwrap_or("-");
    TableRow::new(vec![cell(name.label()), used(name, state), cell(limit), cell(beyond)])
}
