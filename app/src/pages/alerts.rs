//! Alerts of a saved insight: the list, and the alert in the address or a new one.

use futures::future::try_join;
use leptos::prelude::*;
use weir_model::alerts::{AlertState, NAME_MAX, WEBHOOK_MAX};

use super::{in_path, project_in_path};
use crate::edits::TICKED;
use crate::error::UiError;
use crate::server_fns::alerts::{
    AlertForm, AlertView, AlertsView, CheckView, DeleteAlert, PERCENT, SaveAlert, SnoozeAlert,
    list_alerts,
};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::Confirm;
use crate::ui::empty::Empty;
use crate::ui::field::{Choice, Field, Select, choices, ticked};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::amount;
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell, truncated, truncated_link};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Alerts";
/// Which number is compared, and its label.
const CONDITIONS: [(&str, &str); 5] = [
    ("value", "The number of an interval"),
    ("increase", "The increase from the interval before"),
    ("increase_percent", "The increase in percent"),
    ("decrease", "The decrease from the interval before"),
    ("decrease_percent", "The decrease in percent"),
];
/// Which interval is checked, and its label.
const INTERVALS: [(&str, &str); 2] =
    [("", "The last complete interval"), ("current", "The current interval, for an upper bound")];
/// How often an alert is checked, and its label.
const EVERY: [(&str, &str); 4] = [
    ("hourly", "Every hour"),
    ("daily", "Every day"),
    ("weekly", "Every week"),
    ("monthly", "Every month"),
];
/// For how many hours an alert is snoozed, and their label.
const HOURS: [(&str, &str); 4] =
    [("4", "4 hours"), ("24", "1 day"), ("168", "1 week"), ("672", "4 weeks")];

/// The insight and the alert in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    insight: String,
    /// Number of the alert. Empty: the form of a new one is shown.
    alert: String,
}

/// The link from an insight to this page.
pub(in crate::pages) fn link(project: i64, insight: &str) -> AnyView {
    let href = format!("/projects/{project}/insights/{insight}/alerts");
    view! { <p><a class="button" href=href>{TITLE}</a></p> }.into_any()
}

#[component]
pub(crate) fn Alerts() -> impl IntoView {
    page(TITLE, read, load, draw)
}

fn read() -> Inputs {
    Inputs { project: project_in_path(), insight: in_path("insight"), alert: in_query("alert") }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, AlertsView), UiError> {
    let Inputs { project, insight, alert } = inputs;
    try_join(get_project(project), list_alerts(project, insight, alert)).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, AlertsView)) -> AnyView {
    let path = format!("/api/projects/{}/alerts/?insight={}", inputs.project, found.insight);
    let call = ApiCall::new("GET", path, "alert:read");
    let back = format!("/projects/{}/insights/{}", inputs.project, inputs.insight);
    let list = (!found.alerts.is_empty()).then(|| list(&inputs, &found.alerts));
    let content = match found.alerts.iter().find(|one| one.id.to_string() == inputs.alert) {
        Some(alert) => one(&inputs, &found, alert),
        None if found.series.is_empty() => view! {
            <Empty title="No number to check">
                <p>
                    "Alerts check numbers of trends that are not added up. This insight has none."
                </p>
            </Empty>
        }
        .into_any(),
        None => new(&inputs, &found),
    };
    view! {
        <PageHead title=TITLE within=of.name />
        <ProjectZone zone=of.timezone />
        <p class="lead">
            {format!("An alert compares a number of {} with bounds at intervals. When the number is beyond a bound, members get a mail, and a webhook gets a request.", found.name)}
        </p>
        {list}
        {content}
        <p><a class="button" href=back>"Back to the insight"</a></p>
        <ApiRequest call=call />
    }
    .into_any()
}

fn address(inputs: &Inputs, alert: i64) -> String {
    format!("/projects/{}/insights/{}/alerts?alert={alert}", inputs.project, inputs.insight)
}

fn list(inputs: &Inputs, alerts: &[AlertView]) -> AnyView {
    let columns = vec![
        Column::text("Alert"),
        Column::text("State"),
        Column::number("Number"),
        Column::text("Checked"),
        Column::text("Next check"),
    ];
    let row = |alert: &AlertView| {
        TableRow::new(vec![
            truncated_link(address(inputs, alert.id), alert.form.name.clone()),
            status(alert),
            cell(number(&alert.form, alert.value)),
            time(&alert.checked_at, "Not yet"),
            time(&alert.next_check_at, "Never"),
        ])
    };
    let rows = alerts.iter().map(row).collect();
    view! { <Table caption=TITLE columns=columns rows=rows /> }.into_any()
}

/// A time, or what is shown without one.
fn time(iso: &str, otherwise: &'static str) -> AnyView {
    match iso.is_empty() {
        true => otherwise.into_any(),
        false => view! { <Time iso=iso.to_owned() /> }.into_any(),
    }
}

/// A number that was compared.
fn number(form: &AlertForm, value: Option<f64>) -> String {
    match value {
        Some(value) if form.condition.ends_with(PERCENT) => format!("{} %", amount(value * 100.0)),
        Some(value) => amount(value),
        None => String::new(),
    }
}

fn status(alert: &AlertView) -> AnyView {
    let (tone, label) = match alert.state {
        _ if !alert.form.enabled => (Tone::Quiet, "Off"),
        AlertState::NotFiring if alert.checked_at.is_empty() => (Tone::Busy, "Not checked yet"),
        state => word(state),
    };
    view! { <Status tone=tone label=label /> }.into_any()
}

const fn word(state: AlertState) -> (Tone, &'static str) {
    match state {
        AlertState::NotFiring => (Tone::Good, "Not firing"),
        AlertState::Firing => (Tone::Bad, "Firing"),
        AlertState::Errored => (Tone::Warn, "Check failed"),
        AlertState::Snoozed => (Tone::Quiet, "Snoozed"),
    }
}

/// One alert, with its settings.
fn one(inputs: &Inputs, found: &AlertsView, alert: &AlertView) -> AnyView {
    let (status, checks) = (status(alert), checks(alert));
    let error = fault("The last check failed", &alert.error);
    let webhook = fault("The last request to the webhook failed", &alert.webhook_error);
    let until = alert.snoozed_until.clone();
    let snoozed = (!until.is_empty())
        .then(|| view! { <p>"It is not checked until " <Time iso=until /> "."</p> });
    let settings = form(inputs, found, &alert.form, alert.id.to_string());
    let root = format!("/projects/{}/insights/{}/alerts", inputs.project, inputs.insight);
    view! {
        <Section id="state" title=alert.form.name.clone()>
            <p>{status}</p>
            {snoozed}
            {error}
            {webhook}
            {checks}
        </Section>
        <Section id="settings" title="Settings">
            <div data-dirty-guard="">{settings}</div>
        </Section>
        {snooze(inputs, alert)}
        {deletion(inputs, alert)}
        <p><a class="button" href=root>"New alert"</a></p>
    }
    .into_any()
}

/// Why something failed, if it did.
fn fault(what: &'static str, why: &str) -> Option<AnyView> {
    let text = format!("{what}: {why}");
    (!why.is_empty()).then(|| view! { <Alert kind="warning"><p>{text}</p></Alert> }.into_any())
}

fn checks(alert: &AlertView) -> AnyView {
    if alert.checks.is_empty() {
        return view! { <p>"It is checked within a few seconds. Load the page again then."</p> }
            .into_any();
    }
    let columns = vec![
        Column::text("Time"),
        Column::text("State"),
        Column::number("Number"),
        Column::text("Notified"),
        Column::text("Reason"),
    ];
    let row = |check: &CheckView| {
        let (tone, label) = word(check.state);
        TableRow::new(vec![
            time(&check.at, ""),
            view! { <Status tone=tone label=label /> }.into_any(),
            cell(number(&alert.form, check.value)),
            cell(if check.is_notified { "Yes" } else { "No" }),
            truncated(check.error.clone()),
        ])
    };
    let rows = alert.checks.iter().map(row).collect();
    view! { <Table caption="Last checks" columns=columns rows=rows /> }.into_any()
}

fn new(inputs: &Inputs, found: &AlertsView) -> AnyView {
    let form = form(inputs, found, &found.new, String::new());
    view! { <Section id="new" title="New alert">{form}</Section> }.into_any()
}

/// The form of an alert. `alert` is empty for a new one.
fn form(inputs: &Inputs, found: &AlertsView, form: &AlertForm, alert: String) -> AnyView {
    const FIELDS: &[&str] =
        &["name", "series", "condition", "lower", "upper", "interval", "every", "webhook"];
    let action = form_action::<SaveAlert>();
    let result = form_result(action);
    let is_new = alert.is_empty();
    let form = form.clone();
    let word = |flag: bool| if flag { TICKED.to_owned() } else { String::new() };
    let shows = [
        ("name", form.name.clone()),
        ("series", form.series.clone()),
        ("condition", form.condition.clone()),
        ("lower", form.lower.clone()),
        ("upper", form.upper.clone()),
        ("interval", form.interval.clone()),
        ("every", form.every.clone()),
        ("webhook", form.webhook.clone()),
        ("skip_weekend", word(form.skip_weekend)),
        ("enabled", word(form.enabled)),
        ("subscribers", form.subscribers.clone()),
    ];
    let shows = shows.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let series = found.series.iter().enumerate();
    let mut series: Vec<Choice> =
        series.map(|(at, name)| Choice::new(at.to_string(), name.clone())).collect();
    if !series.iter().any(|choice| choice.value == form.series) {
        // The insight was changed since.
        series.push(Choice::new(form.series.clone(), "A series that does not exist any more"));
    }
    let (project, insight) = (inputs.project.to_string(), inputs.insight.clone());
    let weekends = tick(result, "skip_weekend", "Skip weekends", form.skip_weekend);
    let enabled = tick(result, "enabled", "Check this alert", form.enabled);
    let mails = mails(result, found, &form.subscribers);
    let hint = "In the unit of the number. Enter 20 for 20 % where percent is compared. Empty: there is no such bound.";
    let label = if is_new { "Create alert" } else { "Save alert" };
    view! {
        <ActionForm action=action>
            <FormFailure result=result fields=FIELDS />
            <input type="hidden" name="project" value=project />
            <input type="hidden" name="insight" value=insight />
            <input type="hidden" name="alert" value=alert />
            <ShownValues result=result values=shows />
            <ReturnAddress />
            <Field result=result name="name" label="Name" max=NAME_MAX value=form.name />
            <Select result=result name="series" label="Series" choices=series value=form.series />
            <Select result=result name="condition" label="Compare" choices=choices(&CONDITIONS) value=form.condition />
            <Field result=result name="lower" label="Lower bound" max=30 required=false inputmode="decimal" value=form.lower hint=hint />
            <Field result=result name="upper" label="Upper bound" max=30 required=false inputmode="decimal" value=form.upper />
            <Select result=result name="interval" label="Interval" choices=choices(&INTERVALS) value=form.interval hint="Hours, days, weeks or months, as the insight shows them." />
            <Select result=result name="every" label="Check" choices=choices(&EVERY) value=form.every hint="Some minutes after the hour, day, week or month ends, in the time zone of the project." />
            {weekends}
            {mails}
            <Field result=result name="webhook" label="Webhook" max=WEBHOOK_MAX required=false value=form.webhook hint="An address that gets a JSON object when the alert begins to fire, such as an incoming webhook of a chat. All members see it." />
            {enabled}
            <Submit result=result label=label busy="Saving alert..." />
        </ActionForm>
    }
    .into_any()
}

fn tick(result: FormResult, name: &'static str, label: &'static str, is_ticked: bool) -> AnyView {
    let is_ticked = ticked(result, name, is_ticked);
    view! {
        <label class="choice">
            <input type="checkbox" name=name value="true" checked=is_ticked />
            <span>{label}</span>
        </label>
    }
    .into_any()
}

/// The boxes of the members who get mails.
fn mails(result: FormResult, found: &AlertsView, subscribers: &str) -> AnyView {
    let members = found.members.iter().enumerate().map(|(at, (id, name))| {
        // The names differ, so that a refused form shows each box as it was.
        let field = format!("subscribers[{at}]");
        let is_ticked = ticked(result, &field, subscribers.split(',').any(|one| one == id));
        view! {
            <label class="choice">
                <input type="checkbox" name=field value=id.clone() checked=is_ticked />
                <span>{name.clone()}</span>
            </label>
        }
    });
    let members = members.collect_view();
    let note = (!found.sends_mail).then(|| {
        view! { <p class="hint">"This instance sends no mail: its operator has set up no mail server."</p> }
    });
    view! {
        <fieldset class="choices">
            <legend>"Mail to"</legend>
            {note}
            {members}
        </fieldset>
    }
    .into_any()
}

fn snooze(inputs: &Inputs, alert: &AlertView) -> AnyView {
    let action = form_action::<SnoozeAlert>();
    let result = form_result(action);
    let fields = view! {
        <input type="hidden" name="project" value=inputs.project.to_string() />
        <input type="hidden" name="alert" value=alert.id.to_string() />
        <ReturnAddress />
    }
    .into_any();
    let content = match alert.snoozed_until.is_empty() {
        true => view! {
            <Select result=result name="hours" label="For" choices=choices(&HOURS) value="24" />
            <Submit result=result label="Snooze alert" busy="Snoozing alert..." />
        }
        .into_any(),
        false => view! {
            <input type="hidden" name="hours" value="0" />
            <Submit result=result label="Check again" busy="Checking again..." />
        }
        .into_any(),
    };
    view! {
        <Section id="snooze" title="Snooze" hint="A snoozed alert is not checked. Afterwards it notifies again if the number is still beyond a bound.">
            <FormFailure result=result />
            <ActionForm action=action>{fields} {content}</ActionForm>
        </Section>
    }
    .into_any()
}

fn deletion(inputs: &Inputs, alert: &AlertView) -> AnyView {
    let action = form_action::<DeleteAlert>();
    let result = form_result(action);
    let path = format!("/api/projects/{}/alerts/{}/", inputs.project, alert.id);
    let call = ApiCall::new("DELETE", path, "alert:write");
    let (project, insight) = (inputs.project.to_string(), inputs.insight.clone());
    let (id, name) = (alert.id.to_string(), alert.form.name.clone());
    view! {
        <Section id="delete" title="Delete alert">
            <FormFailure result=result />
            <Confirm button="Delete" of=name danger=true>
                <p>"The alert and its checks are deleted. This cannot be undone."</p>
                <ActionForm action=action>
                    <input type="hidden" name="project" value=project />
                    <input type="hidden" name="insight" value=insight />
                    <input type="hidden" name="alert" value=id />
                    <ReturnAddress />
                    <button type="submit" class="button button-danger" data-busy="Deleting alert...">
                        "Delete alert"
                    </button>
                </ActionForm>
                <ApiRequest call=call of="delete" />
            </Confirm>
        </Section>
    }
    .into_any()
}
