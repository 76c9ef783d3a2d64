//! Subscriptions of a saved insight or of a dashboard: the list, and the subscription in the
//! address or a new one.

use futures::future::try_join;
use leptos::prelude::*;
use weir_model::subscriptions::TITLE_MAX;

use super::dashboards::settings::tabs;
use super::{in_path, project_in_path};
use crate::error::UiError;
use crate::server_fns::projects::{ProjectView, get_project};
use crate::server_fns::subscriptions::{
    DeleteSubscription, LeaveSubscription, SaveSubscription, SubscriptionForm, SubscriptionView,
    SubscriptionsView, TestSubscription, list_subscriptions, root,
};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::Confirm;
use crate::ui::field::{Choice, Field, MomentField, Select, ticked};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::sections::Section;
use crate::ui::table::{Column, Table, TableRow, cell, truncated_link};
use crate::ui::time::{ProjectZone, Time};

const TITLE: &str = "Subscriptions";
/// The units of the interval, and their labels.
const FREQUENCIES: [(&str, &str); 3] =
    [("daily", "Every day"), ("weekly", "Every week"), ("monthly", "Every month")];
/// The days of the week, and their labels.
const WEEKDAYS: [(&str, &str); 7] = [
    ("monday", "Monday"),
    ("tuesday", "Tuesday"),
    ("wednesday", "Wednesday"),
    ("thursday", "Thursday"),
    ("friday", "Friday"),
    ("saturday", "Saturday"),
    ("sunday", "Sunday"),
];
/// Which of these days of a month, and the labels.
const PLACES: [(&str, &str); 6] = [
    ("", "All of them"),
    ("1", "The first one of the month"),
    ("2", "The second one of the month"),
    ("3", "The third one of the month"),
    ("4", "The fourth one of the month"),
    ("-1", "The last one of the month"),
];
/// Characters of a number of days, weeks or months.
const INTERVAL_DIGITS: usize = 3;

/// What the page is about, and the subscription in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    /// The insight. Empty: the page is about a dashboard.
    insight: String,
    dashboard: String,
    /// Number of the subscription. Empty: the form of a new one is shown.
    subscription: String,
}

/// The link from an insight to this page.
pub(in crate::pages) fn link(project: i64, insight: &str) -> AnyView {
    let href = root(project, insight, "");
    view! { <p><a class="button" href=href>{TITLE}</a></p> }.into_any()
}

#[component]
pub(crate) fn InsightSubscriptions() -> impl IntoView {
    page(TITLE, || read("insight"), load, draw)
}

#[component]
pub(crate) fn DashboardSubscriptions() -> impl IntoView {
    page(TITLE, || read("dashboard"), load, draw)
}

/// `about` is the name of the part of the address.
fn read(about: &str) -> Inputs {
    let (insight, dashboard) = match about {
        "insight" => (in_path(about), String::new()),
        _ => (String::new(), in_path(about)),
    };
    let (project, subscription) = (project_in_path(), in_query("subscription"));
    Inputs { project, insight, dashboard, subscription }
}

async fn load(inputs: Inputs) -> Result<(ProjectView, SubscriptionsView), UiError> {
    let Inputs { project, insight, dashboard, .. } = inputs;
    try_join(get_project(project), list_subscriptions(project, insight, dashboard)).await
}

fn draw(inputs: Inputs, (of, found): (ProjectView, SubscriptionsView)) -> AnyView {
    let about = if inputs.insight.is_empty() { "dashboard" } else { "insight" };
    let path = format!("/api/projects/{}/subscriptions/?{about}={}", inputs.project, found.about);
    let call = ApiCall::new("GET", path, "subscription:read");
    let list = (!found.subscriptions.is_empty()).then(|| list(&inputs, &found.subscriptions));
    let chosen = found.subscriptions.iter().find(|one| one.id.to_string() == inputs.subscription);
    let content = match chosen {
        Some(subscription) => one(&inputs, &found, subscription),
        None => new(&inputs, &found),
    };
    let navigation = match inputs.insight.is_empty() {
        true => tabs(inputs.project, &inputs.dashboard),
        false => {
            let back = format!("/projects/{}/insights/{}", inputs.project, inputs.insight);
            view! { <p><a class="button" href=back>"Back to the insight"</a></p> }.into_any()
        }
    };
    let no_mail = (!found.sends_mail).then(|| {
        view! {
            <Alert kind="warning">
                <p>"This instance sends no mail: its operator has set up no mail server. Subscriptions wait until there is one."</p>
            </Alert>
        }
    });
    view! {
        <PageHead title=TITLE within=of.name />
        <ProjectZone zone=of.timezone />
        {navigation}
        <p class="lead">
            {format!("A subscription sends the numbers of {} by mail, with charts.", found.name)}
        </p>
        {no_mail}
        {list}
        {content}
        <ApiRequest call=call />
    }
    .into_any()
}

fn address(inputs: &Inputs, subscription: i64) -> String {
    let Inputs { project, insight, dashboard, .. } = inputs;
    format!("{}?subscription={subscription}", root(*project, insight, dashboard))
}

/// The title, or when mails are sent.
fn name(one: &SubscriptionView) -> String {
    if one.form.title.is_empty() { one.summary.clone() } else { one.form.title.clone() }
}

fn list(inputs: &Inputs, subscriptions: &[SubscriptionView]) -> AnyView {
    let columns = vec![
        Column::text("Subscription"),
        Column::text("Times"),
        Column::number("Recipients"),
        Column::text("Last mail"),
        Column::text("Next mail"),
    ];
    let row = |one: &SubscriptionView| {
        let recipients = one.form.recipients.split(',').filter(|address| !address.is_empty());
        TableRow::new(vec![
            truncated_link(address(inputs, one.id), name(one)),
            cell(one.summary.clone()),
            cell(recipients.count().to_string()),
            time(&one.last_at, "Not yet"),
            time(&one.next_at, "Never"),
        ])
    };
    let rows = subscriptions.iter().map(row).collect();
    view! { <Table caption=TITLE columns=columns rows=rows /> }.into_any()
}

/// A time, or what is shown without one.
fn time(iso: &str, otherwise: &'static str) -> AnyView {
    match iso.is_empty() {
        true => otherwise.into_any(),
        false => view! { <Time iso=iso.to_owned() /> }.into_any(),
    }
}

/// One subscription, with its settings.
fn one(inputs: &Inputs, found: &SubscriptionsView, one: &SubscriptionView) -> AnyView {
    let error = (!one.error.is_empty()).then(|| {
        let text = format!("The last time was not complete: {}", one.error);
        view! { <Alert kind="warning"><p>{text}</p></Alert> }
    });
    let settings = form(inputs, found, &one.form, one.id.to_string());
    let new = root(inputs.project, &inputs.insight, &inputs.dashboard);
    let next = time(&one.next_at, "never");
    let test = test(inputs, one.id, found.sends_mail);
    let leave = leave(inputs, found, one);
    view! {
        <Section id="state" title=name(one)>
            <p>"Next mail: " {next} "."</p>
            {error}
            {test}
            {leave}
        </Section>
        <Section id="settings" title="Settings">
            <div data-dirty-guard="">{settings}</div>
        </Section>
        {deletion(inputs, one)}
        <p><a class="button" href=new>"New subscription"</a></p>
    }
    .into_any()
}

fn new(inputs: &Inputs, found: &SubscriptionsView) -> AnyView {
    let form = form(inputs, found, &found.new, String::new());
    view! { <Section id="new" title="New subscription">{form}</Section> }.into_any()
}

/// The form of a subscription. `subscription` is empty for a new one.
fn form(
    inputs: &Inputs,
    found: &SubscriptionsView,
    form: &SubscriptionForm,
    subscription: String,
) -> AnyView {
    const FIELDS: &[&str] = &["title", "frequency", "interval", "place", "start", "until"];
    let action = form_action::<SaveSubscription>();
    let result = form_result(action);
    let form = form.clone();
    let shows = [
        ("title", form.title.clone()),
        ("frequency", form.frequency.clone()),
        ("interval", form.interval.clone()),
        ("weekdays", form.weekdays.clone()),
        ("place", form.place.clone()),
        ("start", form.start.clone()),
        ("until", form.until.clone()),
        ("recipients", form.recipients.clone()),
    ];
    let shows = shows.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let (project, insight) = (inputs.project.to_string(), inputs.insight.clone());
    let dashboard = inputs.dashboard.clone();
    let label = if subscription.is_empty() { "Create subscription" } else { "Save subscription" };
    let weekdays = WEEKDAYS.map(|(word, label)| (word.to_owned(), label.to_owned()));
    let weekdays = boxes(result, "weekdays", "Days of the week", &weekdays, &form.weekdays);
    let recipients = boxes(result, "recipients", "Mail to", &found.members, &form.recipients);
    view! {
        <ActionForm action=action>
            <FormFailure result=result fields=FIELDS />
            <input type="hidden" name="project" value=project />
            <input type="hidden" name="insight" value=insight />
            <input type="hidden" name="dashboard" value=dashboard />
            <input type="hidden" name="subscription" value=subscription />
            <ShownValues result=result values=shows />
            <ReturnAddress />
            <Field result=result name="title" label="Title" max=TITLE_MAX required=false value=form.title hint="The subject of the mails. Empty: the name of what is sent." />
            <Select result=result name="frequency" label="Send" choices=choices(&FREQUENCIES) value=form.frequency />
            <Field result=result name="interval" label="Interval" max=INTERVAL_DIGITS inputmode="numeric" value=form.interval hint="2 sends every second day, week or month." />
            {weekdays}
            <Select result=result name="place" label="Which of these days" choices=choices(&PLACES) value=form.place hint="For a monthly subscription with days of the week. Without days, the day of the first mail counts." />
            <MomentField result=result name="start" label="First mail" value=form.start required=true hint="Later mails have the same time of the day in the time zone of the project." />
            <MomentField result=result name="until" label="End" value=form.until hint="Empty: it does not end." />
            {recipients}
            <Submit result=result label=label busy="Saving subscription..." />
        </ActionForm>
    }
    .into_any()
}

fn choices(all: &[(&'static str, &'static str)]) -> Vec<Choice> {
    all.iter().map(|(word, label)| Choice::new(*word, *label)).collect()
}

/// Boxes of which several can be ticked. `chosen` are the values of the ticked ones, with commas.
fn boxes(
    result: FormResult,
    name: &'static str,
    legend: &'static str,
    offered: &[(String, String)],
    chosen: &str,
) -> AnyView {
    let choices = offered.iter().enumerate().map(|(at, (value, label))| {
        // The names differ, so that a refused form shows each box as it was.
        let field = format!("{name}[{at}]");
        let is_ticked = ticked(result, &field, chosen.split(',').any(|one| one == value));
        view! {
            <label class="choice">
                <input type="checkbox" name=field value=value.clone() checked=is_ticked />
                <span>{label.clone()}</span>
            </label>
        }
    });
    let choices = choices.collect_view();
    view! {
        <fieldset class="choices">
            <legend>{legend}</legend>
            {choices}
        </fieldset>
    }
    .into_any()
}

/// The button that sends a mail to the user.
fn test(inputs: &Inputs, subscription: i64, sends_mail: bool) -> Option<AnyView> {
    let action = form_action::<TestSubscription>();
    let result = form_result(action);
    let path =
        format!("/api/projects/{}/subscriptions/{subscription}/test-delivery/", inputs.project);
    let call = ApiCall::new("POST", path, "subscription:write");
    let project = inputs.project.to_string();
    sends_mail.then(|| {
        view! {
            <FormFailure result=result />
            <ActionForm action=action>
                <input type="hidden" name="project" value=project />
                <input type="hidden" name="subscription" value=subscription.to_string() />
                <ReturnAddress />
                <button type="submit" class="button" data-busy="Sending the mail...">
                    "Send me this mail now"
                </button>
                <ApiRequest call=call of="test" />
            </ActionForm>
        }
        .into_any()
    })
}

/// The button that ends the mails to the user, who is a recipient.
fn leave(inputs: &Inputs, found: &SubscriptionsView, one: &SubscriptionView) -> Option<AnyView> {
    let action = form_action::<LeaveSubscription>();
    let result = form_result(action);
    let is_recipient = one.form.recipients.split(',').any(|address| address == found.own_address);
    let (project, subscription) = (inputs.project.to_string(), one.id.to_string());
    is_recipient.then(|| {
        view! {
            <FormFailure result=result />
            <ActionForm action=action>
                <input type="hidden" name="project" value=project />
                <input type="hidden" name="subscription" value=subscription />
                <ReturnAddress />
                <button type="submit" class="button" data-busy="Unsubscribing...">
                    "Unsubscribe"
                </button>
            </ActionForm>
        }
        .into_any()
    })
}

fn deletion(inputs: &Inputs, one: &SubscriptionView) -> AnyView {
    let action = form_action::<DeleteSubscription>();
    let result = form_result(action);
    let path = format!("/api/projects/{}/subscriptions/{}/", inputs.project, one.id);
    let call = ApiCall::new("DELETE", path, "subscription:write");
    let (project, insight) = (inputs.project.to_string(), inputs.insight.clone());
    let (dashboard, subscription) = (inputs.dashboard.clone(), one.id.to_string());
    let name = name(one);
    view! {
        <Section id="delete" title="Delete subscription">
            <FormFailure result=result />
            <Confirm button="Delete" of=name danger=true>
                <p>"No recipient gets its mails any more. This cannot be undone."</p>
                <ActionForm action=action>
                    <input type="hidden" name="project" value=project />
                    <input type="hidden" name="insight" value=insight />
                    <input type="hidden" name="dashboard" value=dashboard />
                    <input type="hidden" name="subscription" value=subscription />
                    <ReturnAddress />
                    <button type="submit" class="button button-danger" data-busy="Deleting subscription...">
                        "Delete subscription"
                    </button>
                </ActionForm>
                <ApiRequest call=call of="delete" />
            </Confirm>
        </Section>
    }
    .into_any()
}
