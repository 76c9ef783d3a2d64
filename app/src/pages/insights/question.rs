//! A question: its form, its answer, and saving it as an insight. The question is in the
//! address; without one, that of the saved insight is asked.
//!
//! What does not belong here: the fields and the answer of a kind of questions (`trends`,
//! `funnel`, and so on).

use futures::future::try_join3;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::links::PersonLinks;
use super::{funnel, lifecycle, paths, retention, stickiness, trends};
use crate::error::UiError;
use crate::pages::dashboards::of_insight;
use crate::pages::{alerts, in_path, project_in_path, subscriptions};
use crate::questions::{KIND, KINDS, QuestionFields, QuestionForm};
use crate::server_fns::insights::answers::{AnswerView, ResultsView};
use crate::server_fns::insights::{
    HideInsight, InsightView, NamesView, SaveInsight, answer_question, get_insight,
    list_question_names,
};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::empty::no_event;
use crate::ui::field::{Field, suggestions};
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::sections::{Section, SubNav, Tab};
use crate::ui::time::{ProjectZone, Time};

const NEW: &str = "New insight";
/// Longest name of an event or a property, in characters.
pub(super) const NAME_MAX: usize = 400;
/// Ids of the lists of names.
pub(super) const EVENTS: &str = "event-names";
pub(super) const PROPERTIES: &str = "property-names";

/// The question in the address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inputs {
    project: i64,
    /// Short id of the saved insight. Empty: a new one.
    insight: String,
    /// The form with the fields in the address.
    form: QuestionForm,
    /// Whether the address has fields of the form.
    is_asked: bool,
    /// How many steps the form of a funnel shows, because one was added. 0: none was.
    steps: usize,
}

/// What a page shows.
type Loaded = (ProjectView, NamesView, Option<InsightView>, Option<Asked>);

/// A question, and its answer if there are events and the question is complete.
type Asked = (QuestionFields, Option<Result<AnswerView, UiError>>);

#[component]
pub(crate) fn NewInsight() -> impl IntoView {
    page(NEW, read, load, draw)
}

#[component]
pub(crate) fn Insight() -> impl IntoView {
    page("Insight", read, load, draw)
}

fn read() -> Inputs {
    let form = QuestionForm::read(&in_query);
    Inputs {
        project: project_in_path(),
        insight: in_path("insight"),
        // The form sends all of its fields.
        is_asked: form.fields().iter().any(|name| !in_query(name).is_empty()),
        form,
        steps: in_query(funnel::SHOWN).parse().unwrap_or(0),
    }
}

async fn load(inputs: Inputs) -> Result<Loaded, UiError> {
    let Inputs { project, insight, form, is_asked, steps } = inputs;
    let saved = async move {
        match insight.is_empty() {
            true => Ok(None),
            false => get_insight(project, insight).await.map(Some),
        }
    };
    let (of, names, saved) =
        try_join3(get_project(project), list_question_names(project), saved).await?;
    let form = match &saved {
        Some(saved) if !is_asked => saved.form.as_ref().map(QuestionFields::form),
        _ => Some(form),
    };
    let Some(form) = form else { return Ok((of, names, saved, None)) };
    let is_sent = is_asked && steps == 0;
    let fields = QuestionFields::from(&form);
    let answer = match of.has_events && (is_sent || is_complete(&form)) {
        true => Some(answer_question(project, fields.clone()).await),
        false => None,
    };
    Ok((of, names, saved, Some((fields, answer))))
}

/// Whether a question can be asked. Its form can still be empty.
fn is_complete(form: &QuestionForm) -> bool {
    match form {
        QuestionForm::Funnel(form) => form.is_complete(),
        QuestionForm::Trends(_)
        | QuestionForm::Retention(_)
        | QuestionForm::Stickiness(_)
        | QuestionForm::Lifecycle(_)
        | QuestionForm::Paths(_) => true,
    }
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
        Some(_) if !of.has_events => no_event(project, super::NO_EVENT),
        Some((fields, answer)) => {
            let form = fields.form();
            let path = match &saved {
                Some(saved) => format!("/projects/{project}/insights/{}", saved.short_id),
                None => format!("/projects/{project}/insights/new"),
            };
            let kinds = saved.is_none().then(|| kinds(&path));
            let call = answer.as_ref().map(|_| {
                let call = ApiCall::question(project, form.query());
                view! { <ApiRequest call=call of="ask the question" /> }
            });
            let (found, failure) = match answer {
                Some(Ok(found)) => (Some(found), None),
                Some(Err(failure)) => (None, Some(failure)),
                None => (None, None),
            };
            let below = found.map(|found| {
                view! {
                    <h2 class="hidden">"Answer"</h2>
                    {answered(project, &form, found, &of.timezone)}
                    {save(project, saved.as_ref(), &form)}
                }
            });
            view! {
                {kinds}
                {question(path, &form, inputs.steps, names, failure)}
                {below}
                {call}
            }
            .into_any()
        }
    };
    let dashboards = saved.as_ref().map(|saved| of_insight::link(project, &saved.short_id));
    let alerts = saved.as_ref().map(|saved| alerts::link(project, &saved.short_id));
    let subscriptions = saved.as_ref().map(|saved| subscriptions::link(project, &saved.short_id));
    let ending = saved.map(|saved| ending(project, &saved));
    view! {
        {head}
        {content}
        {dashboards}
        {alerts}
        {subscriptions}
        {ending}
    }
    .into_any()
}

/// Links to the forms of a new insight.
fn kinds(path: &str) -> AnyView {
    let tab = |(word, label): (&str, &str)| {
        let query = if word.is_empty() { String::new() } else { format!("?{KIND}={word}") };
        Tab::new(format!("{path}{query}"), label)
    };
    let tabs = KINDS.into_iter().map(tab).collect();
    view! { <SubNav label="Kinds of questions" tabs=tabs /> }.into_any()
}

/// The answer to the question of a form, in a project of this zone.
fn answered(project: i64, form: &QuestionForm, found: AnswerView, zone: &str) -> AnyView {
    let links = &PersonLinks::new(project, form);
    let AnswerView { results, computed_at } = found;
    match (form, results) {
        (QuestionForm::Trends(form), ResultsView::Trends(found)) => {
            trends::answer(form, found, zone, links, computed_at)
        }
        (QuestionForm::Funnel(form), ResultsView::Funnel(found)) => {
            funnel::answer(form, found, links, computed_at)
        }
        (QuestionForm::Retention(form), ResultsView::Retention(found)) => {
            retention::answer(form, found, zone, links, computed_at)
        }
        (QuestionForm::Stickiness(form), ResultsView::Stickiness(found)) => {
            stickiness::answer(form, found, links, computed_at)
        }
        (QuestionForm::Lifecycle(form), ResultsView::Lifecycle(found)) => {
            lifecycle::answer(form, found, zone, links, computed_at)
        }
        (QuestionForm::Paths(form), ResultsView::Paths(found)) => {
            paths::answer(form, found, links, computed_at)
        }
        // The server answers each kind with its own results.
        _ => ().into_any(),
    }
}

/// When an answer was computed.
pub(super) fn computed(at: String) -> AnyView {
    view! { <p class="hint">"Computed at " <Time iso=at /></p> }.into_any()
}

/// Remarks below a table.
pub(super) fn notes<const N: usize>(notes: [Option<String>; N]) -> AnyView {
    let notes = notes.into_iter().flatten();
    notes.map(|note| view! { <p class="hint">{note}</p> }).collect_view().into_any()
}

/// A saved question that the form cannot show.
fn unshown(project: i64, saved: Option<&InsightView>) -> AnyView {
    let query = saved.and_then(|saved| crate::json::read::<Value>(&saved.query).ok());
    let is_sql = query.as_ref().is_some_and(|query| query["kind"] == "HogQLQuery");
    if let Some(saved) = saved.filter(|_| is_sql) {
        let href = format!("/projects/{project}/sql?insight={}", saved.short_id);
        return view! {
            <p class="lead">"This insight is a question in SQL."</p>
            <p><a class="button button-primary" href=href>"Open in SQL"</a></p>
        }
        .into_any();
    }
    let call = query.map(|query| {
        view! { <ApiRequest call=ApiCall::question(project, query) of="ask the question" /> }
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
    form: &QuestionForm,
    steps: usize,
    names: NamesView,
    failure: Option<UiError>,
) -> AnyView {
    let result = FormResult::sample(failure);
    let (fields, more, hint) = match form {
        QuestionForm::Trends(form) => (trends::fields(form, result), None, trends::HINT.to_owned()),
        QuestionForm::Funnel(form) => {
            let shown = funnel::shown(form, steps);
            let hint = funnel::HINT.to_owned();
            (funnel::fields(form, shown, result), funnel::add_step(shown), hint)
        }
        QuestionForm::Retention(form) => (retention::fields(form, result), None, retention::hint()),
        QuestionForm::Stickiness(form) => {
            (stickiness::fields(form, result), None, stickiness::HINT.to_owned())
        }
        QuestionForm::Lifecycle(form) => {
            (lifecycle::fields(form, result), None, lifecycle::HINT.to_owned())
        }
        QuestionForm::Paths(form) => (paths::fields(form, result), None, paths::HINT.to_owned()),
    };
    let kind = Some(form.kind()).filter(|kind| !kind.is_empty());
    let kind = kind.map(|kind| view! { <input type="hidden" name=KIND value=kind /> });
    view! {
        <FormFailure result=result fields=form.fields() />
        <form class="filter" role="search" aria-label="Question" method="get" action=path>
            {kind}
            {fields}
            <button type="submit" class="button button-primary">"Answer question"</button>
            {more}
        </form>
        <p class="hint">{hint}</p>
        {suggestions(EVENTS, names.events)}
        {suggestions(PROPERTIES, names.properties)}
    }
    .into_any()
}

/// Saves the question that was answered.
fn save(project: i64, saved: Option<&InsightView>, form: &QuestionForm) -> AnyView {
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
        .map(|(name, value)| {
            view! { <input type="hidden" name=format!("question[{name}]") value=value /> }
        })
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
