//! The form of an export, for creating and for editing.

use leptos::prelude::*;
use weir_model::exports::destinations::DestinationType;
use weir_model::exports::{BatchExport, ExportModel, Interval, LAST_HOUR, NAME_MAX, QUERY_MAX};

use super::calls::{saving, testing};
use super::fields::{Begin, Fields, fields, labels};
use super::{causes, words};
use crate::destination_test::{StepOutcome, TriedStep};
use crate::pages::project_settings::Zones;
use crate::server_fns::exports::OrganizationView;
use crate::server_fns::exports::config::form_settings;
use crate::server_fns::exports::form::{CONNECTION, form_values, tried};
use crate::ui::alert::Alert;
use crate::ui::api_request::ApiRequest;
use crate::ui::field::{Check, Choice, Field, MomentField, Select, TextArea, TextLine};
use crate::ui::form::{Advanced, FormResult, ReturnAddress, ShownValues, Summary};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};

pub(in crate::pages) const WEEKS: &str = "Weeks begin on";
pub(in crate::pages) const DAYS: &str = "Days begin at";
pub(in crate::pages) const ZONE: &str = "Time zone";
/// The advanced fields that do not depend on the destination.
const ADVANCED: [&str; 6] =
    ["hogql_query", "offset_day", "offset_hour", "timezone", "start_at", "end_at"];

/// What the form edits, and its initial values.
pub(super) struct Shape {
    /// The organization and its projects.
    pub(super) organization: OrganizationView,
    pub(super) kind: &'static DestinationType,
    /// The edited export. `None`: the form creates one.
    pub(super) export: Option<BatchExport>,
    /// The initial values of the destination's fields.
    pub(super) begin: Begin,
    /// Path of the server function that saves.
    pub(super) saves: &'static str,
    /// Path of the server function that tests the destination.
    pub(super) tries: &'static str,
}

impl Shape {
    /// Whether a query can select the columns. Otherwise whole events are exported.
    pub(super) fn takes_query(&self) -> bool {
        self.kind.name != "HTTP"
    }
}

/// The form. `saved` and `tested` are the results of its two buttons.
pub(super) fn form(shape: Shape, saved: FormResult, tested: FormResult) -> AnyView {
    let result = if tested.shows_typed_values() { tested } else { saved };
    let outcome = tested.field_error(CONNECTION);
    let summary = outcome.is_none().then(|| {
        view! { <Summary result=result fields=all_labels(shape.kind) /> }
    });
    let (save, test) = (saving(&shape), testing(&shape));
    let Fields { connection: destination, advanced, advanced_names } =
        fields(shape.kind, &shape.begin, result);
    let names = advanced_names.into_iter().chain(ADVANCED.map(str::to_owned)).collect();
    let hidden = hidden(&shape, result);
    let label = shape.kind.label;
    let keeps =
        shape.export.is_some() && form_settings(shape.kind).iter().any(|one| one.field.is_secret);
    let (verb, busy) = match shape.export {
        None => ("Create export", "Creating export..."),
        Some(_) => ("Save settings", "Saving settings..."),
    };
    let (saves, tries) = (shape.saves, shape.tries);
    let general = general(&shape, result);
    let (query, offsets) = (query(&shape, result), offsets(shape.export.as_ref(), result));
    let period = period(shape.export.as_ref(), result);
    let pausing = shape.export.is_none().then(|| {
        view! {
            <Check result=result name="paused" label="Create it paused"
                hint="Its schedule starts no runs until it is unpaused." />
        }
    });
    view! {
        <form method="post" action=saves class="export-form" data-dirty-guard="">
            {summary}
            {hidden}
            <ReturnAddress />
            {general}
            <Section id="destination" title=label hint=words::destination(shape.kind.name)>
                {destination}
            </Section>
            <Advanced result=result fields=names>
                {advanced}
                {query}
                {offsets}
                {period}
                {pausing}
            </Advanced>
            {outcome.map(|outcome| connection(&tried(&outcome)))}
            <div class="submit">
                <button type="submit" class="button button-primary" data-busy=busy>{verb}</button>
                // Missing values of other fields do not matter for the test.
                <button
                    type="submit"
                    class="button"
                    formaction=tries
                    formnovalidate=true
                    data-busy="Testing connection..."
                >
                    "Test connection"
                </button>
            </div>
            {keeps.then(|| view! {
                <p class="hint">"Secrets that you change here are not in the request: they are never printed."</p>
            })}
            <ApiRequest call=save />
            <ApiRequest call=test of="test connection" />
        </form>
    }
    .into_any()
}

fn hidden(shape: &Shape, result: FormResult) -> AnyView {
    let export = shape.export.as_ref().map(|export| {
        view! { <input type="hidden" name="export" value=export.id.to_string() /> }
    });
    let project = (shape.export.is_none() && shape.organization.projects.len() == 1)
        .then(|| shape.organization.projects.first().map(|(id, _)| id.to_string()))
        .flatten()
        .map(|id| view! { <input type="hidden" name="team_id" value=id /> });
    let shows = shape.export.as_ref().map(|export| {
        view! { <ShownValues result=result values=form_values(shape.kind, export) /> }
    });
    view! {
        <input type="hidden" name="organization" value=shape.organization.id.clone() />
        <input type="hidden" name="destination" value=shape.kind.name />
        {export}
        {shows}
        {project}
    }
    .into_any()
}

/// Names and labels of all fields of the form.
pub(crate) fn all_labels(kind: &'static DestinationType) -> Vec<(String, String)> {
    let own = [
        ("name", "Name"),
        ("team_id", "Project"),
        ("interval", "Interval"),
        ("offset_day", WEEKS),
        ("offset_hour", DAYS),
        ("timezone", ZONE),
        ("start_at", "Not before"),
        ("end_at", "Not after"),
        ("model", "Exported data"),
        ("hogql_query", "Query"),
    ];
    let own = own.into_iter().map(|(name, label)| (name.to_owned(), label.to_owned()));
    own.chain(labels(kind)).collect()
}

/// Name, project, interval and model.
fn general(shape: &Shape, result: FormResult) -> AnyView {
    let export = shape.export.as_ref();
    let name = export.map(|export| export.name.clone()).unwrap_or_default();
    let interval = export.map_or(Interval::Hour, |export| export.interval);
    let intervals: Vec<Choice> = Interval::ALL
        .into_iter()
        .map(|interval| Choice::new(interval.text(), words::interval(interval)))
        .collect();
    let project = (export.is_none() && shape.organization.projects.len() > 1).then(|| {
        let projects: Vec<Choice> = shape
            .organization
            .projects
            .iter()
            .map(|(id, name)| Choice::new(id.to_string(), name.clone()))
            .collect();
        view! {
            <Select result=result name="team_id" label="Project" choices=projects
                hint="Whose events or persons are exported. This cannot be changed later." />
        }
    });
    let model = model(shape, result);
    view! {
        <Section id="general" title="Export">
            <TextLine result=result name="name" label="Name" value=name max=NAME_MAX required=true />
            {project}
            {model}
            <Select result=result name="interval" label="Interval" choices=intervals
                value=interval.text()
                hint="At the end of each interval, a run exports what was received in it. Under Advanced you set when days and weeks start." />
        </Section>
    }
    .into_any()
}

/// The time in which the schedule starts runs.
fn period(export: Option<&BatchExport>, result: FormResult) -> AnyView {
    let time = |time: Option<weir_model::Timestamp>| time.map(|time| time.to_string());
    let start = export.and_then(|export| time(export.start_at)).unwrap_or_default();
    let end = export.and_then(|export| time(export.end_at)).unwrap_or_default();
    view! {
        <MomentField result=result name="start_at" label="Not before" value=start
            hint="No run is started before this time. Empty: from now on." />
        <MomentField result=result name="end_at" label="Not after" value=end
            hint="No run is started after this time. Empty: without an end." />
    }
    .into_any()
}

/// The start of daily and weekly intervals. The style sheet shows them for these intervals.
fn offsets(export: Option<&BatchExport>, result: FormResult) -> AnyView {
    let text = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
    let day = text(export.and_then(|export| export.offset_day));
    let hour = text(export.and_then(|export| export.offset_hour));
    // An export may have no value here: that is the first choice, and it is kept.
    let choice = |chosen: &str, number: i64, label: String| {
        let is_unsaid = number == 0 && chosen != "0";
        Choice::new(text((!is_unsaid).then_some(number)), label)
    };
    let days = (0..).zip(words::DAYS);
    let days: Vec<Choice> = days.map(|(at, name)| choice(&day, at, name.to_owned())).collect();
    let hours = 0..=LAST_HOUR;
    let hours: Vec<Choice> = hours.map(|at| choice(&hour, at, format!("{at:02}:00"))).collect();
    let zone = export.map_or_else(|| "UTC".to_owned(), |export| export.timezone.clone());
    view! {
        <div class="export-weekly">
            <Select result=result name="offset_day" label=WEEKS choices=days value=day />
        </div>
        <div class="export-daily">
            <Select result=result name="offset_hour" label=DAYS choices=hours value=hour />
        </div>
        <div class="export-daily">
            <Field result=result name="timezone" label=ZONE max=64 value=zone list="zones" required=false
                hint="That of the hour: an IANA name, such as UTC or Europe/Berlin." />
        </div>
        <Zones />
    }
    .into_any()
}

/// Events or persons.
fn model(shape: &Shape, result: FormResult) -> AnyView {
    if let Some(export) = &shape.export {
        return view! {
            <p>"Exported data: " {words::model(export.model)} ". This cannot be changed; create another export instead."</p>
            <input type="hidden" name="model" value=export.model.text() />
        }
        .into_any();
    }
    let persons = Choice::new(ExportModel::Persons.text(), "Persons");
    let persons = match shape.takes_query() {
        true => persons,
        false => persons.disabled("this destination takes events only"),
    };
    let models = vec![Choice::new(ExportModel::Events.text(), "Events"), persons];
    view! {
        <Select result=result name="model" label="Exported data" choices=models
            hint="Persons: a row for each distinct id, sent again whenever the person has new events. This cannot be changed later." />
    }
    .into_any()
}

fn query(shape: &Shape, result: FormResult) -> AnyView {
    if !shape.takes_query() {
        return view! { <p class="hint">"This destination takes whole events, so there is no query."</p> }
            .into_any();
    }
    let query = shape.export.as_ref().and_then(|export| export.hogql_query.clone());
    view! {
        <TextArea result=result name="hogql_query" label="Query" value=query.unwrap_or_default()
            max=QUERY_MAX code=true rows=4
            hint="Chooses columns and events, as in SELECT event, timestamp, properties.amount AS amount FROM events WHERE event = 'paid'. Empty: the usual columns of all events. Not for persons." />
    }
    .into_any()
}

/// The result of the connection test.
fn connection(steps: &[TriedStep]) -> AnyView {
    if steps.is_empty() {
        return view! {
            <Alert kind="note" autofocus=true>
                <p>"This destination has nothing to test."</p>
            </Alert>
        }
        .into_any();
    }
    let failed = steps.iter().any(|step| step.outcome != StepOutcome::Passed);
    let (kind, title) = match failed {
        true => ("error", "The connection does not work yet."),
        false => ("note", "The connection works. Nothing remains at the destination."),
    };
    let items = steps.iter().map(step).collect_view();
    view! {
        <Alert kind=kind autofocus=true>
            <p><strong>{title}</strong></p>
            <ol class="export-steps" aria-label="Steps of the connection test">{items}</ol>
        </Alert>
    }
    .into_any()
}

fn step(step: &TriedStep) -> AnyView {
    let (tone, label) = match &step.outcome {
        StepOutcome::Passed => (Tone::Good, "Passed"),
        StepOutcome::Failed(_) => (Tone::Bad, "Failed"),
        StepOutcome::Skipped => (Tone::Quiet, "Not tried"),
    };
    let why = match &step.outcome {
        StepOutcome::Failed(why) => Some(view! {
            <p class="export-error">{why.clone()}</p>
            {causes::advice(why)}
        }),
        StepOutcome::Passed | StepOutcome::Skipped => None,
    };
    view! { <li>{step.name.clone()} " " <Status tone=tone label=label /> {why}</li> }.into_any()
}
