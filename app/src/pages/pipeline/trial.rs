//! Trial of transformations with an event: of one config, or of all enabled ones.

use futures::future::join;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_model::plugin_configs::DryOutcome;

use super::calls;
use super::diff::{Pair, compare};
use crate::error::UiError;
use crate::pages::project_in_path;
use crate::server_fns::plugin_configs::trial::{
    ENTERED, NEWEST, RecentEvent, StepView, TriedView, TryPluginConfig, recent_events, see_trial,
};
use crate::server_fns::projects::get_project;
use crate::ui::alert::Alert;
use crate::ui::api_request::ApiRequest;
use crate::ui::empty::panel;
use crate::ui::field::TextArea;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::brief;
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::time::to_the_minute;

const TITLE: &str = "Try transformations";

/// Runs all enabled transformations of a project with one event.
#[component]
pub(crate) fn TryAll() -> impl IntoView {
    page(
        TITLE,
        || (project_in_path(), sample_in_query()),
        |(project, sample)| async move {
            let (found, trial) =
                join(get_project(project), load_trial(project, None, sample)).await;
            Ok((found?, trial))
        },
        |(project, sample), (found, loaded)| {
            view! {
                <PageHead title=TITLE within=found.name />
                <p class="lead">"One event goes through all transformations that are switched on. Nothing is stored."</p>
                {trial(project, None, &sample, loaded)}
                <p><a href=format!("/projects/{project}/transformations")>"Back to transformations"</a></p>
            }
            .into_any()
        },
    )
}

/// The data of the section that tries.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Trial {
    /// Stored events to choose from.
    recent: Vec<RecentEvent>,
    /// The result. `None`: no event was chosen, or it does not exist any more.
    tried: Option<TriedView>,
}

/// The event to try that the address names. Empty: none.
pub(super) fn sample_in_query() -> String {
    in_query("sample")
}

/// Tries one config, or all enabled ones, with the event that the address names.
pub(super) async fn load_trial(
    project: i64,
    config: Option<String>,
    sample: String,
) -> Result<Trial, UiError> {
    let recent = recent_events(project).await?;
    let tried = match sample.is_empty() {
        true => None,
        false => see_trial(project, config, sample).await?,
    };
    Ok(Trial { recent, tried })
}

/// The section that tries one config, or all enabled ones.
pub(super) fn trial(
    project: i64,
    config: Option<String>,
    sample: &str,
    loaded: Result<Trial, UiError>,
) -> AnyView {
    let action = form_action::<TryPluginConfig>();
    let result = form_result(action);
    // The page that tries all of them says so itself.
    let hint = match &config {
        Some(_) => "Runs it with one event, even while it is switched off. Nothing is stored.",
        None => "",
    };
    let drawn = panel(loaded, |Trial { recent, tried }| {
        let begins = match &tried {
            Some(tried) => crate::ui::json::pretty(&tried.before),
            None => "{\n  \"event\": \"$pageview\",\n  \"distinct_id\": \"ada\",\n  \"properties\": {}\n}".to_owned(),
        };
        let rest = match &config {
            Some(config) => format!("{config}/test/"),
            None => "test/".to_owned(),
        };
        let event: Value = crate::json::read(&begins).unwrap_or_default();
        let call = calls::call("POST", project, &rest).with(json!({"event": event}));
        let outcome = (!sample.is_empty()).then(|| match tried {
            Some(tried) => trial_outcome(tried),
            None => view! {
                <Alert kind="note">
                    <p>"There is no event to try any more. Choose one, or enter it again."</p>
                </Alert>
            }
            .into_any(),
        });
        view! {
            {choice(recent, sample)}
            <ActionForm action=action>
                <FormFailure result=result fields=&["sample"] />
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="config" value=config.unwrap_or_default() />
                <ReturnAddress />
                <TextArea result=result name="sample" label="Event" value=begins rows=8 max=16_384 code=true
                    hint="JSON with event, distinct_id and properties. Omitted fields get sample values." />
                <Submit result=result label="Try this event" busy="Trying event..." />
            </ActionForm>
            <ApiRequest call=call of="try" />
            {outcome}
        }
        .into_any()
    });
    view! {
        <Section id="try" title="Try it" hint=hint>{drawn}</Section>
    }
    .into_any()
}

/// Stored events to choose from.
fn choice(recent: Vec<RecentEvent>, chosen: &str) -> AnyView {
    if recent.is_empty() {
        return view! { <p class="hint">"The project has no event yet: enter one."</p> }.into_any();
    }
    let offered = recent
        .into_iter()
        .map(|event| {
            let RecentEvent { uuid, event, distinct_id, at } = event;
            let selected = uuid == chosen;
            let text = format!("{event}, {distinct_id}, {}", to_the_minute(&at, false));
            view! { <option value=uuid selected=selected>{text}</option> }
        })
        .collect_view();
    let newest = chosen == NEWEST || chosen == ENTERED || chosen.is_empty();
    view! {
        <form method="get" action="#try">
            <div class="field">
                <label for="stored">"A stored event"</label>
                <select id="stored" name="sample">
                    <option value=NEWEST selected=newest>"The newest one"</option>
                    {offered}
                </select>
            </div>
            <div class="submit">
                <button type="submit" class="button" data-busy="Trying event...">"Try stored event"</button>
            </div>
        </form>
    }
    .into_any()
}

/// The result of the trial.
fn trial_outcome(tried: TriedView) -> AnyView {
    let TriedView { before, after, steps } = tried;
    let none = steps.is_empty().then(|| {
        view! { <p>"No transformation is switched on: events are stored unchanged."</p> }
    });
    let steps = steps.into_iter().map(step).collect_view();
    let comparison = match &after {
        None => view! {
            <Alert kind="warning"><p>"The event is dropped: it would not be stored."</p></Alert>
        }
        .into_any(),
        Some(after) => comparison(compare(&before, after)),
    };
    view! {
        <div class="trial-result" role="region" aria-label="Result">
            {none}
            <ol class="plain trial-steps">{steps}</ol>
            {comparison}
        </div>
    }
    .into_any()
}

fn step(step: StepView) -> AnyView {
    let StepView { name, outcome, error, took, logs } = step;
    let (tone, word) = match outcome {
        DryOutcome::Changed => (Tone::Good, "Changed"),
        DryOutcome::Unchanged => (Tone::Quiet, "Unchanged"),
        DryOutcome::Dropped => (Tone::Warn, "Dropped"),
        DryOutcome::Failed => (Tone::Bad, "Failed"),
    };
    let logs = (!logs.is_empty()).then(|| {
        view! { <pre class="trial-log" tabindex="0" aria-label="Its log"><code>{logs.join("\n")}</code></pre> }
    });
    view! {
        <li>
            <strong>{name}</strong> " "
            <Status tone=tone label=word /> " "
            <span class="faint">{brief(took)}</span>
            {error.map(|error| view! { <p class="fault wrap">{error}</p> })}
            {logs}
        </li>
    }
    .into_any()
}

/// The event before and after, side by side, with changed lines marked.
fn comparison(pairs: Vec<Pair>) -> AnyView {
    if pairs.iter().all(|pair| pair.same) {
        return view! { <p>"The event stays as it is."</p> }.into_any();
    }
    let rows = pairs
        .into_iter()
        .map(|Pair { left, right, same }| {
            let (out, came) = if same { ("", "") } else { ("diff-out", "diff-in") };
            view! {
                <tr>
                    {side(left, out, "removed: ", "−")}
                    {side(right, came, "added: ", "+")}
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="diff">
            <caption>"The event before and after"</caption>
            <thead><tr><th scope="col">"Before"</th><th scope="col">"After"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn side(
    line: Option<String>,
    class: &'static str,
    words: &'static str,
    sign: &'static str,
) -> AnyView {
    match line {
        None => view! { <td></td> }.into_any(),
        Some(line) if class.is_empty() => view! { <td><code>{line}</code></td> }.into_any(),
        Some(line) => view! {
            <td class=class>
                <span aria-hidden="true" class="diff-sign">{sign}</span>
                <span class="hidden">{words}</span>
                <code>{line}</code>
            </td>
        }
        .into_any(),
    }
}
