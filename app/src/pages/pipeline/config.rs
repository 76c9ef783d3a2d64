//! One config: settings, files, metrics, log, jobs, trial.

use futures::future::join;
use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use weir_model::plugin_configs::{ATTACHMENT_MAX, DESCRIPTION_MAX, NAME_MAX};

use super::actions::{restoring, switching, word_id};
use super::calls;
use super::ending::ending;
use super::fields::{failure, names, setting_fields};
use super::results::{counts, last_failure};
use super::trial::{Trial, load_trial, sample_in_query, trial};
use crate::error::UiError;
use crate::pages::{in_path, project_in_path};
use crate::plugin_settings::{Kind, Setting, form_values, settings};
use crate::server_fns::plugin_configs::views::{ConfigDetail, LogLine, LogView};
use crate::server_fns::plugin_configs::{
    ON_FAILURE, RemovePluginAttachment, RestorePluginConfig, RunPluginJob, SavePluginConfig,
    SwitchPluginConfig, get_plugin_config, list_plugin_logs,
};
use crate::ui::api_request::{ApiRequest, ApiUpload};
use crate::ui::bytes;
use crate::ui::confirm::Confirm;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{ReadOnly, panel};
use crate::ui::field::{Choice, FieldFrame, Select, TextArea, TextLine, Ties};
use crate::ui::form::{FormFailure, KeptNote, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::{Ago, Time};

/// Log lines on one page.
const PAGE_SIZE: u32 = 50;
/// Longest payload of a job, in characters.
const PAYLOAD: usize = 65_536;

#[component]
pub(crate) fn ConfigPage() -> impl IntoView {
    page(
        "Plugin settings",
        || Inputs {
            project: project_in_path(),
            config: in_path("config"),
            sample: sample_in_query(),
            log_page: page_in_query(PAGE_SIZE),
        },
        load,
        draw,
    )
}

#[derive(Clone, PartialEq)]
struct Inputs {
    project: i64,
    config: String,
    /// The event to try.
    sample: String,
    log_page: ListPage,
}

/// The data of the page.
#[derive(Clone, Serialize, Deserialize)]
struct Loaded {
    found: ConfigDetail,
    /// `None`: the config cannot be tried.
    trial: Option<Result<Trial, UiError>>,
    log: Result<LogView, UiError>,
}

async fn load(inputs: Inputs) -> Result<Loaded, UiError> {
    let Inputs { project, config, sample, log_page } = inputs;
    let log = list_plugin_logs(project, config.clone(), log_page.limit, log_page.offset);
    let (found, log) = join(get_plugin_config(project, config.clone()), log).await;
    let found = found?;
    let trial = match found.read_only_reason.is_none() && found.line.transforms {
        true => Some(load_trial(project, Some(config), sample).await),
        false => None,
    };
    Ok(Loaded { found, trial, log })
}

fn draw(inputs: Inputs, loaded: Loaded) -> AnyView {
    let Inputs { project, config, sample, log_page } = inputs;
    let found = loaded.found;
    let switch = form_action::<SwitchPluginConfig>();
    let restore = form_action::<RestorePluginConfig>();
    let (switched, restored) = (form_result(switch), form_result(restore));
    let may_change = found.read_only_reason.is_none();
    let title = found.line.name.clone();
    let state = match (found.line.deleted, found.line.enabled) {
        (true, _) => (Tone::Warn, "Deleted"),
        (false, true) => (Tone::Good, "On"),
        (false, false) => (Tone::Quiet, "Off"),
    };
    let word = word_id(&found.line);
    let switching = may_change.then(|| match found.line.deleted {
        true => restoring(project, &found.line, restore),
        false => switching(project, &found.line, switch),
    });
    let trial = loaded.trial.map(|loaded| trial(project, Some(config), &sample, loaded));
    let jobs = (may_change && !found.jobs.is_empty()).then(|| jobs(project, &found));
    let ending = may_change.then(|| ending(project, &found));
    let file = format!("/projects/{project}/plugins/{}/log", found.line.id);
    view! {
        <PageHead title=title within=found.project_name.clone()>
            <Status tone=state.0 label=state.1 id=word />
            {switching}
        </PageHead>
        {found.read_only_reason.clone().map(|why| view! { <ReadOnly why=why /> })}
        <FormFailure result=switched />
        <FormFailure result=restored />
        {about(project, &found)}
        {changing(project, &found)}
        {files(project, &found)}
        {trial}
        {jobs}
        {log(file, log_page, loaded.log)}
        {ending}
    }
    .into_any()
}

fn about(project: i64, found: &ConfigDetail) -> AnyView {
    let line = &found.line;
    // The API request of the button next to the title.
    let request = found.read_only_reason.is_none().then(|| {
        let (of, fields) = match (line.deleted, line.enabled) {
            (true, _) => ("restore", json!({"deleted": false})),
            (false, true) => ("switch off", json!({"enabled": false})),
            (false, false) => ("switch on", json!({"enabled": true})),
        };
        let call = calls::change(project, &line.id, fields);
        view! { <ApiRequest call=call of=of /> }
    });
    let plugin = match &found.plugin_list {
        Some(plugin_list) => {
            let href = format!(
                "/organizations/{}/plugins/{plugin_list}/{}",
                found.organization, line.plugin
            );
            view! { <a href=href>{line.plugin_name.clone()}</a> }.into_any()
        }
        None => line.plugin_name.clone().into_any(),
    };
    let counts = counts(line);
    let fault = line.fault.clone().map(last_failure);
    let (created, updated) = (found.created_at.clone(), found.updated_at.clone());
    view! {
        <Section id="health" title="Status">
            {counts}
            {fault}
            <dl class="facts facts-row">
                <div><dt>"Plugin"</dt><dd>{plugin}</dd></div>
                <div><dt>"Created"</dt><dd><Ago iso=created /></dd></div>
                <div><dt>"Last changed"</dt><dd><Ago iso=updated /></dd></div>
            </dl>
            {request}
        </Section>
    }
    .into_any()
}

fn changing(project: i64, found: &ConfigDetail) -> AnyView {
    let save = form_action::<SavePluginConfig>();
    let result = form_result(save);
    let fields = setting_fields(result, &found.form, Some(&found.values));
    let mut shown = names(&found.form);
    shown.extend(["name", "description", "on_failure"].map(str::to_owned));
    let failed = failure(result, &shown);
    let (id, name) = (found.line.id.clone(), found.line.name.clone());
    let description = found.description.clone();
    let mut shows =
        vec![("name".to_owned(), name.clone()), ("description".to_owned(), description.clone())];
    shows.extend(form_values(&found.form, &found.values));
    let policy = found.on_failure.clone();
    if found.line.transforms {
        shows.push(("on_failure".to_owned(), policy.clone()));
    }
    let on_failure = found.line.transforms.then(|| {
        let choices = vec![
            Choice::new("store_unchanged", "Store the event without this step, with a warning"),
            Choice::new("hold_then_drop", "Wait shortly, then drop the event with a reason"),
        ];
        view! {
            <Select result=result name="on_failure" label=ON_FAILURE choices=choices value=policy
                hint="The result for an event if this step fails, has no time left or cannot be started. A step that removes sensitive values should drop the event." />
        }
    });
    let may_change = found.read_only_reason.is_none();
    let submit = may_change.then(|| {
        let call = calls::saving(project, found);
        view! {
            <Submit result=result label="Save settings" busy="Saving settings..." saved="Saved" />
            <ApiRequest call=call of="save" />
        }
    });
    view! {
        <Section id="settings" title="Settings">
            <div data-dirty-guard="">
                <ActionForm action=save>
                    {failed}
                    <KeptNote result=result />
                    <ShownValues result=result values=shows />
                    <input type="hidden" name="project" value=project.to_string() />
                    <input type="hidden" name="config" value=id />
                    <ReturnAddress />
                    <fieldset class="bare" disabled=!may_change>
                        <TextLine result=result name="name" label="Name" max=NAME_MAX value=name />
                        <TextArea result=result name="description" label="Description (optional)"
                            max=DESCRIPTION_MAX rows=2 value=description />
                        {fields}
                        {on_failure}
                        {submit}
                    </fieldset>
                </ActionForm>
            </div>
        </Section>
    }
    .into_any()
}

/// Settings that are files. Each has a separate form, because it uploads a file.
fn files(project: i64, found: &ConfigDetail) -> Option<AnyView> {
    let remove = form_action::<RemovePluginAttachment>();
    let removed = form_result(remove);
    // The upload reports its failures like the save form.
    let saved = form_result(form_action::<SavePluginConfig>());
    let may_change = found.read_only_reason.is_none();
    let file = |(at, setting): (usize, &Setting)| {
        let Setting { key, name, hint, .. } = setting.clone();
        let present = found.values.get(&key).filter(|value| value.is_object());
        let words = match present {
            None => "No file is attached.".to_owned(),
            Some(value) => {
                let text = |part: &str| value.get(part).and_then(|text| text.as_str());
                let size = value.get("size").and_then(serde_json::Value::as_u64);
                let size = size.map_or_else(|| "secret".to_owned(), bytes::text);
                format!("Attached: {} ({size}).", text("name").unwrap_or("a file"))
            }
        };
        // The upload names the invalid field like the save form.
        let field = format!("file-{at}");
        let ties = Ties::new(field.clone(), "", saved);
        let label = name.clone();
        let (id, same_id) = (found.line.id.clone(), found.line.id.clone());
        let (sent_key, same_key, same_name) = (key.clone(), key, name);
        let removal = (may_change && present.is_some()).then(|| {
            let mut fields = Map::new();
            fields.insert(format!("remove_attachment[{same_key}]"), Value::Bool(true));
            let call = calls::change(project, &same_id, Value::Object(fields));
            view! {
                <Confirm button="Remove file" of=same_name>
                    <ActionForm action=remove>
                        <p>"The plugin has no such file any more."</p>
                        <input type="hidden" name="project" value=project.to_string() />
                        <input type="hidden" name="config" value=same_id />
                        <input type="hidden" name="key" value=same_key />
                        <ReturnAddress />
                        <button type="submit" class="button button-danger" data-busy="Removing file...">
                            "Remove file"
                        </button>
                    </ActionForm>
                    <ApiRequest call=call />
                </Confirm>
            }
        });
        let attaching = may_change.then(|| {
            let call = calls::call("PATCH", project, &format!("{id}/"));
            let part = format!("add_attachment[{sent_key}]");
            view! {
                <form method="post" action="/_upload/attachment" enctype="multipart/form-data">
                    <ReturnAddress />
                    <input type="hidden" name="project" value=project.to_string() />
                    <input type="hidden" name="config" value=id />
                    <input type="hidden" name="key" value=sent_key />
                    <input type="hidden" name="field" value=field.clone() />
                    <FieldFrame ties=ties.clone() label=label>
                        <input id=field name="file" type="file" required
                            aria-describedby=ties.described_by() aria-invalid=ties.invalid() />
                    </FieldFrame>
                    <button type="submit" class="button" data-busy="Attaching file...">"Attach file"</button>
                    <ApiUpload call=call field=part file="file" of="attach file" />
                </form>
            }
        });
        view! {
            <div class="attachment">
                <p>{words} " " {hint}</p>
                {attaching}
                {removal}
            </div>
        }
        .into_any()
    };
    let of_files = settings(&found.form).filter(|setting| setting.kind == Kind::File);
    let drawn: Vec<AnyView> = of_files.enumerate().map(file).collect();
    if drawn.is_empty() {
        return None;
    }
    let most = bytes::text(u64::try_from(ATTACHMENT_MAX).unwrap_or(u64::MAX));
    Some(
        view! {
            <Section id="files" title="Files" hint=format!("At most {most} each. They are encrypted.")>
                <FormFailure result=removed />
                {drawn}
            </Section>
        }
        .into_any(),
    )
}

fn jobs(project: i64, found: &ConfigDetail) -> AnyView {
    let run = form_action::<RunPluginJob>();
    let result = form_result(run);
    let id = found.line.id.clone();
    let call = calls::call("POST", project, &format!("{id}/job/"));
    let call = call.with(json!({"job": {"type": "{job}", "payload": "{payload:object}"}}));
    let choices: Vec<Choice> =
        found.jobs.iter().map(|job| Choice::new(job.clone(), job.clone())).collect();
    view! {
        <Section id="jobs" title="Run a job" hint="A job runs once. It is tried three times.">
            <ActionForm action=run>
                <FormFailure result=result fields=&["job", "payload"] />
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="config" value=id />
                <ReturnAddress />
                <Select result=result name="job" label="Job" choices=choices />
                <TextArea result=result name="payload" label="Payload (optional)" max=PAYLOAD rows=3 code=true
                    hint="A JSON object that the job gets." />
                <Submit result=result label="Run job" busy="Starting job..." />
                <ApiRequest call=call of="run" />
            </ActionForm>
        </Section>
    }
    .into_any()
}

/// The log of the config, newest first. `file` is the address of its file.
fn log(file: String, list_page: ListPage, loaded: Result<LogView, UiError>) -> AnyView {
    let drawn = panel(loaded, |found| {
        if found.lines.is_empty() {
            return view! { <p>"The log is empty."</p> }.into_any();
        }
        let columns: Vec<Column> =
            ["When", "Level", "Who", "Text"].map(Column::text).into_iter().collect();
        let rows: Vec<TableRow> = found.lines.into_iter().map(log_row).collect();
        view! {
            <Table caption="Log lines" columns=columns rows=rows />
            <Pager page=list_page total=found.total what="lines" />
            <p><DownloadCsv page=file of="the log" /></p>
        }
        .into_any()
    });
    view! {
        <Section id="log" title="Log" hint="Console output of the plugin, and messages of Weir about it. The newest 1,000 lines are kept.">
            {drawn}
        </Section>
    }
    .into_any()
}

fn log_row(line: LogLine) -> TableRow {
    let LogLine { at, level, source, message } = line;
    let tone = match level.as_str() {
        "ERROR" => Tone::Bad,
        "WARN" => Tone::Warn,
        _ => Tone::Quiet,
    };
    let word = match level.as_str() {
        "ERROR" => "Error",
        "WARN" => "Warning",
        "DEBUG" => "Debug",
        _ => "Info",
    };
    TableRow::new(vec![
        cell(view! { <Time iso=at /> }),
        cell(view! { <Status tone=tone label=word /> }),
        cell(source),
        cell(view! { <code class="wrap">{message}</code> }),
    ])
}
