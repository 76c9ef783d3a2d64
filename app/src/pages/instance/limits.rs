//! The limits of one organization of the instance, for staff.

use leptos::prelude::*;
use serde_json::{Map, Value};
use weir_model::limits::{
    DEFAULT_WORD, LimitAction, LimitName, LimitState, NONE_WORD, OrganizationLimits, action_field,
    number_field,
};

use crate::pages::in_path;
use crate::pages::limits::{action_label, amount, beyond, chosen, number_label, used};
use crate::server_fns::limits::{InstanceOrganizationView, SaveLimits, get_instance_organization};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::field::{Choice, Select, TextLine};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;

/// The fields that show their own errors.
const FIELDS: &[&str] = &[
    "events_per_month_action",
    "events_per_month_limit",
    "events_per_second_action",
    "events_per_second_limit",
    "disk_bytes_action",
    "disk_bytes_limit",
    "members_action",
    "members_limit",
    "exports_action",
    "exports_limit",
];

#[component]
pub(crate) fn InstanceOrganization() -> impl IntoView {
    page("Limits of an organization", || in_path("organization"), get_instance_organization, draw)
}

fn draw(id: String, found: InstanceOrganizationView) -> AnyView {
    let InstanceOrganizationView { organization, limits } = found;
    view! {
        <PageHead title=format!("Limits of {}", organization.name) />
        <p class="lead">
            "How much the organization may use. Its members see the limits in its settings, and every change is in its activity log. "
            <a href="/help/limits">"How limits work"</a>
        </p>
        <LimitsForm id=id limits=limits />
    }
    .into_any()
}

#[component]
fn LimitsForm(id: String, limits: OrganizationLimits) -> impl IntoView {
    let save = form_action::<SaveLimits>();
    let result = form_result(save);
    let (mut values, mut body) = (Vec::new(), Map::new());
    for name in LimitName::ALL {
        let (action, number) = chosen(limits.get(name));
        let (of_action, of_number) = (action_field(name), number_field(name));
        body.insert(of_action.clone(), Value::from(format!("{{{of_action}}}")));
        body.insert(of_number.clone(), Value::from(format!("{{{of_number}:optional}}")));
        values.push((of_action, action.to_owned()));
        values.push((of_number, number));
    }
    let path = format!("/api/instance/organizations/{id}/limits/");
    let call = ApiCall::new("PATCH", path, "*").with(Value::Object(body));
    let parts = LimitName::ALL.into_iter().map(|name| {
        let state = limits.get(name).clone();
        let (action, number) = chosen(&state);
        let usage = used(name, &state);
        let present = present(name, &state);
        view! {
            <Section id=name.code() title=name.label()>
                <p>{present} " Used: " {usage}</p>
                <Select result=result name=action_field(name) label=action_label(name)
                    choices=choices(name) value=action />
                <TextLine result=result name=number_field(name) label=number_label(name)
                    kind="number" value=number hint=hint(name) />
            </Section>
        }
        .into_any()
    });
    let parts = parts.collect_view();
    view! {
        <ActionForm action=save>
            <FormFailure result=result fields=FIELDS />
            <ShownValues result=result values=values />
            <input type="hidden" name="id" value=id />
            <ReturnAddress />
            {parts}
            <Submit result=result label="Save limits" busy="Saving limits..." />
            <ApiRequest call=call />
        </ActionForm>
    }
    .into_any()
}

/// The limit that applies now, in words.
fn present(name: LimitName, state: &LimitState) -> String {
    match (state.limit, state.is_default) {
        (Some(limit), true) => {
            format!("The settings of this instance limit it to {}.", amount(name, limit))
        }
        (Some(limit), false) => format!("Limited to {}.", amount(name, limit)),
        (None, _) => "Not limited.".to_owned(),
    }
}

fn choices(name: LimitName) -> Vec<Choice> {
    let fixed = [
        Choice::new(DEFAULT_WORD, "As in the settings of this instance"),
        Choice::new(NONE_WORD, "No limit"),
    ];
    let actions = name
        .actions()
        .iter()
        .map(|action: &LimitAction| Choice::new(action.word(), beyond(name, *action)));
    fixed.into_iter().chain(actions).collect()
}

fn hint(name: LimitName) -> &'static str {
    match name {
        LimitName::EventsPerMonth => "Accepted events in a calendar month, in UTC.",
        LimitName::EventsPerSecond => {
            "Accepted events in a second. A burst may have ten times as many."
        }
        LimitName::DiskBytes => "1 GiB is 1073741824 bytes. Measured every hour.",
        LimitName::Members => "Existing members stay.",
        LimitName::Exports => "Existing exports stay.",
    }
}
