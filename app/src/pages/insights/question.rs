//! A question of trends: its form, its answer, and saving it as an insight. The question is in
//! the address; without one, that of the saved insight is asked.

use futures::future::try_join3;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::answer;
use crate::error::UiError;
use crate::pages::dashboards::of_insight;
use crate::pages::{in_path, project_in_path};
use crate::server_fns::insights::{
    HideInsight, InsightView, NamesView, SaveInsight, TrendsView, answer_trends, get_insight,
    list_question_names,
};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::trends::{FIELDS, INTERVALS, MATHS, RANGES, TrendsForm};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::empty::{Empty, first_event};
use crate::ui::field::{Check, Choice, Field, Select};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::sections::Section;
use crate::ui::time::ProjectZone;

const NEW: &str = "New insight";
/// Longest name of an event or a property, in characters.
const NAME_MAX: usize = 400;
/// Ids of the lists of names.
const EVENTS: &str = "event-names";
const PROPERTIES: &str = "property-names";

/// The question in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    /// Short id of the saved insight. Empty: a new one.
    insight: String,
    /// `None`: the address has no question.
    asked: Option<TrendsForm>,
}

/// What a page shows.
type Loaded = (ProjectView, NamesView, Option<InsightView>, Option<Asked>);

/// A question, and its answer if there are events.
type Asked = (TrendsForm, Option<Result<TrendsView, UiError>>);

#[component]
pub(crate) fn NewInsight() -> impl IntoView {
    page(NEW, read, load, draw)
}

#[component]
pub(crate) fn Insight() -> impl IntoView {
    page("Insight", read, load, draw)
}

fn read() -> Inputs {
    // The form sends all of its fields.
    let is_asked = FIELDS.iter().any(|name| !in_query(name).is_empty());
    Inputs {
        project: project_in_path(),
        insight: in_path("insight"),
        asked: is_asked.then(|| TrendsForm::read(in_query)),
    }
}

async fn load(inputs: Inputs) -> Result<Loaded, UiError> {
    let Inputs { project, insight, asked } = inputs;
    let saved = async move {
        match insight.is_empty() {
            true => Ok(None),
            false => get_insight(project, insight).await.map(Some),
        }
    };
    let (of, names, saved) =
        try_join3(get_project(project), list_question_names(project), saved).await?;
    let of_saved = match &saved {
        Some(saved) => saved.form.clone(),
        None => Some(TrendsForm::read(|_| String::new())),
    };
    let Some(form) = asked.or(of_saved) else { return Ok((of, names, saved, None)) };
    let answer = match of.has_events {
        true => Some(ask(project, form.clone()).await),
        false => None,
    };
    Ok((of, names, saved, Some((form, answer))))
}

async fn ask(project: i64, form: TrendsForm) -> Result<TrendsView, UiError> {
    let compare = if form.compare { "on".to_owned() } else { String::new() };
    let TrendsForm { event, math, property, interval, range, breakdown, .. } = form;
    answer_trends(project, event, math, property, interval, range, breakdown, compare).await
}

fn draw(inputs: Inputs, (of, names, saved, asked): Loaded) -> AnyView {
    let project = inputs.project;
    let title = saved.as_ref().map_or_else(|| NEW.to_owned(), |saved| saved.name.clone());
    let head = view! {
        <PageHead title=title within=of.name />
        <ProjectZone zone=of.timezone.clone() />
    };
    let content = match asked {
        None => unshown(project, saved.as_ref()),
        Some((_, None)) => view! {
            <Empty title="No event yet">
                <p>"Questions are about stored events, so send one first."</p>
                {first_event(project)}
            </Empty>
        }
        .into_any(),
        Some((form, Some(answer))) => {
            let path = match &saved {
                Some(saved) => format!("/projects/{project}/insights/{}", saved.short_id),
                None => format!("/projects/{project}/insights/new"),
            };
            let failure = answer.as_ref().err().cloned();
            let below = answer.ok().map(|found| {
                view! {
                    {answer::answer(&form, found, &of.timezone)}
                    {save(project, saved.as_ref(), &form)}
                }
            });
            view! {
                {question(path, &form, names, failure)}
                {below}
                <ApiRequest call=query_call(project, form.query()) of="ask the question" />
            }
            .into_any()
        }
    };
    let dashboards = saved.as_ref().map(|saved| of_insight::link(project, &saved.short_id));
    let ending = saved.map(|saved| ending(project, &saved));
    view! {
        {head}
        {content}
        {dashboards}
        {ending}
    }
    .into_any()
}

fn query_call(project: i64, query: Value) -> ApiCall {
    let path = format!("/api/projects/{project}/query/");
    ApiCall::new("POST", path, "query:read").with(json!({ "query": query }))
}

/// A saved question that the form cannot show.
fn unshown(project: i64, saved: Option<&InsightView>) -> AnyView {
    let query = saved.and_then(|saved| serde_json::from_str::<Value>(&saved.query).ok());
    let call = query.map(|query| {
        view! { <ApiRequest call=query_call(project, query) of="ask the question" /> }
    });
    view! {
        <Alert kind="note">
            <p>"This insight was saved through the API. Its question has parts that this page cannot show, so it is not answered here."</p>
        </Alert>
        {call}
    }
    .into_any()
}

/// The form of a question, with the fault of the question at its field.
fn question(
    path: String,
    form: &TrendsForm,
    names: NamesView,
    failure: Option<UiError>,
) -> AnyView {
    let (result, unchecked) = (FormResult::sample(failure), FormResult::sample(None));
    let choices = |all: &[(&'static str, &'static str)]| -> Vec<Choice> {
        all.iter().map(|(word, label)| Choice::new(*word, *label)).collect()
    };
    let maths: Vec<Choice> = MATHS.iter().map(|math| Choice::new(math.word, math.label)).collect();
    let TrendsForm { event, math, property, interval, range, breakdown, compare } = form.clone();
    view! {
        <FormFailure result=result fields=FIELDS />
        <form class="filter" role="search" aria-label="Question" method="get" action=path>
            <Field result=result name="event" label="Event" value=event max=NAME_MAX required=false list=EVENTS />
            <Select result=result name="math" label="Compute" choices=maths value=math />
            <Field result=result name="property" label="Of property" value=property max=NAME_MAX required=false list=PROPERTIES />
            <Select result=result name="range" label="Range" choices=choices(&RANGES) value=range />
            <Select result=result name="interval" label="Interval" choices=choices(&INTERVALS) value=interval />
            <Field result=result name="breakdown" label="Break down by" value=breakdown max=NAME_MAX required=false list=PROPERTIES />
            <Check result=unchecked name="compare" label="Compare with the period before" checked=compare />
            <button type="submit" class="button button-primary">"Answer question"</button>
        </form>
        <p class="hint">
            "Without an event, all events count. Sums, averages, percentiles and the smallest and largest values need a property."
        </p>
        {suggestions(EVENTS, names.events)}
        {suggestions(PROPERTIES, names.properties)}
    }
    .into_any()
}

fn suggestions(id: &'static str, names: Vec<String>) -> AnyView {
    let names = names.into_iter().map(|name| view! { <option value=name></option> }).collect_view();
    view! { <datalist id=id>{names}</datalist> }.into_any()
}

/// Saves the question that was answered.
fn save(project: i64, saved: Option<&InsightView>, form: &TrendsForm) -> AnyView {
    let action = form_action::<SaveInsight>();
    let result = form_result(action);
    let (title, label, busy) = match saved {
        None => ("Save", "Save insight", "Saving insight..."),
        Some(_) => ("Change", "Save changes", "Saving changes..."),
    };
    let hint = match saved {
        None => "All members of the organization can open and change it.",
        Some(_) => "Saves the question as it is answered above, and the name.",
    };
    let root = format!("/api/projects/{project}/insights/");
    let (method, path) = match saved {
        None => ("POST", root),
        Some(saved) => ("PATCH", format!("{root}{}/", saved.short_id)),
    };
    let body = json!({ "name": "{name}", "query": form.query() });
    let call = ApiCall::new(method, path, "insight:write").with(body);
    let short_id = saved.map(|saved| saved.short_id.clone()).unwrap_or_default();
    let name = saved.map_or_else(|| form.title(), |saved| saved.name.clone());
    let name: String = name.chars().take(NAME_MAX).collect();
    let fields = form.pairs().into_iter().filter(|(_, value)| !value.is_empty());
    let fields = fields
        .map(|(name, value)| view! { <input type="hidden" name=name value=value /> })
        .collect_view();
    view! {
        <Section id="save" title=title>
            <ActionForm action=action>
                <FormFailure result=result fields=&["name"] />
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="insight" value=short_id />
                {fields}
                <ReturnAddress />
                <Field result=result name="name" label="Name" value=name max=NAME_MAX hint=hint />
                <Submit result=result label=label busy=busy />
                <ApiRequest call=call of="save" />
            </ActionForm>
        </Section>
    }
    .into_any()
}

/// Deletes the insight. The notice can take that back.
fn ending(project: i64, saved: &InsightView) -> AnyView {
    let action = form_action::<HideInsight>();
    let result = form_result(action);
    let short_id = saved.short_id.clone();
    let path = format!("/api/projects/{project}/insights/{short_id}/");
    let call = ApiCall::new("PATCH", path, "insight:write").with(json!({ "deleted": true }));
    view! {
        <Section id="ending" title="Delete insight" hint="It is removed from the list. Events stay as they are.">
            <FormFailure result=result />
            <ActionForm action=action>
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="insight" value=short_id />
                <ReturnAddress />
                <button type="submit" class="button" data-busy="Deleting insight...">
                    "Delete insight"
                </button>
                <ApiRequest call=call of="delete" />
            </ActionForm>
        </Section>
    }
    .into_any()
}
