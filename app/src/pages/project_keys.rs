//! The keys of a project: use of each key, rotation, and the secret key.

use leptos::prelude::*;

use super::key::overlaps;
use super::project_in_path;
use super::project_settings::tabs;
use crate::server_fns::project_keys::{
    DeleteSecretBackup, EndOldProjectKey, ProjectKeysView, RotateProjectKey, RotateSecretKey,
    TrafficView, get_project_keys,
};
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::chart::{Bars, Series};
use crate::ui::confirm::Confirm;
use crate::ui::copy::CopyValue;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::ReadOnly;
use crate::ui::field::Select;
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::number::{counted, grouped};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::{Ago, Time};

const TITLE: &str = "Project keys";
const MAY_NOT: &str = "Administrators and owners of the organization can replace keys.";

#[component]
pub(crate) fn ProjectKeys() -> impl IntoView {
    page(TITLE, project_in_path, get_project_keys, draw)
}

fn draw(id: i64, keys: ProjectKeysView) -> AnyView {
    let may_rotate = keys.may_rotate;
    let has_old = keys.old.is_some();
    let (secret, backup) = (keys.secret.clone(), keys.has_secret_backup);
    let rotation = match may_rotate {
        true => view! { <RotateForm project=id has_old=has_old /> }.into_any(),
        false => view! { <ReadOnly why=MAY_NOT /> }.into_any(),
    };
    let hidden = match may_rotate {
        true => view! { <Secret project=id secret=secret backup=backup /> }.into_any(),
        false => view! { <ReadOnly why=MAY_NOT /> }.into_any(),
    };
    view! {
        <PageHead title=TITLE within=keys.name.clone()><DownloadCsv /></PageHead>
        {tabs(id)}
        <Section id="working" title="Active keys"
            hint="Safe to put into client code: a project key can send events and nothing else.">
            <Working project=id keys=keys />
        </Section>
        <Section id="rotate" title="Rotate the project key"
            hint="The project gets a new key. The old key can stay valid until every client has the new one.">
            {rotation}
        </Section>
        <Section id="secret" title="Secret project key"
            hint="For servers that act for the project. Keep it out of client code.">
            {hidden}
        </Section>
    }
    .into_any()
}

/// Events received with each key.
#[component]
fn Working(project: i64, keys: ProjectKeysView) -> impl IntoView {
    let end = form_action::<EndOldProjectKey>();
    let ended = form_result(end);
    let ProjectKeysView { present, old, times, may_rotate, .. } = keys;
    let mut series = vec![Series::new("Current key", Tone::Good, values(&present))];
    let mut rows = vec![row("Current key", &present)];
    let came = |traffic: &TrafficView| counted(traffic.week, "event", "events");
    let summary = match &old {
        Some((old, _)) => {
            format!("{} with the current key, {} with the old key.", came(&present), came(old))
        }
        None => format!("{} with the key.", came(&present)),
    };
    if let Some((traffic, _)) = &old {
        series.push(Series::new("Old key", Tone::Warn, values(traffic)));
        rows.push(row("Old key", traffic));
    }
    let columns = vec![
        Column::text("Key"),
        Column::text("Value"),
        Column::number("Events in 24 hours"),
        Column::number("Events in 7 days"),
        Column::text("Last event"),
    ];
    let ending = old.map(|(_, until)| {
        let form = may_rotate.then(|| {
            view! {
                <Confirm button="End the old key now" danger=true>
                    <ActionForm action=end>
                        <p>"Events that are sent with the old key are refused immediately, and are lost."</p>
                        <input type="hidden" name="id" value=project.to_string() />
                        <ReturnAddress />
                        <button type="submit" class="button button-danger" data-busy="Ending the old key...">
                            "End the old key"
                        </button>
                    </ActionForm>
                </Confirm>
            }
        });
        view! {
            <div class="key-previous">
                <p>
                    <Status tone=Tone::Busy label="Old key works" />
                    " until " <Time iso=until /> ". End it when no client uses it any more."
                </p>
                {form}
            </div>
        }
    });
    view! {
        <FormFailure result=ended />
        <Table caption="Events by project key" columns=columns rows=rows />
        {ending}
        <Bars id="traffic" title="Events by key, last 7 days" summary=summary times=times
            series=series unit="events" />
    }
    .into_any()
}

fn values(traffic: &TrafficView) -> Vec<Option<u64>> {
    traffic.steps.iter().copied().map(Some).collect()
}

fn row(name: &'static str, traffic: &TrafficView) -> TableRow {
    let last = match traffic.last_at.clone() {
        Some(iso) => view! { <Ago iso=iso /> }.into_any(),
        None => "None".into_any(),
    };
    let key = traffic.key.clone();
    TableRow::new(vec![
        cell(name),
        view! { <CopyValue text=key what="project key" /> }.into_any(),
        cell(grouped(traffic.day)),
        cell(grouped(traffic.week)),
        last,
    ])
}

/// A request about the keys.
fn call(project: i64, verb: &str) -> ApiCall {
    ApiCall::new("PATCH", format!("/api/projects/{project}/{verb}/"), "project:write")
}

#[component]
fn RotateForm(project: i64, has_old: bool) -> impl IntoView {
    let rotate = form_action::<RotateProjectKey>();
    let result = form_result(rotate);
    let ends = has_old.then(|| {
        view! {
            <p class="hint">"The previous old key ends then: only one old key works at a time."</p>
        }
    });
    let request = call(project, "reset_token");
    view! {
        <ActionForm action=rotate>
            <FormFailure result=result fields=&["overlap"] />
            <input type="hidden" name="id" value=project.to_string() />
            <ReturnAddress />
            <Select result=result name="overlap" label="The old key works" choices=overlaps() value="day" />
            {ends}
            <Submit result=result label="Rotate project key" busy="Rotating project key..." />
        </ActionForm>
        <p class="hint">"Through the API the old key ends immediately."</p>
        <ApiRequest call=request />
    }
    .into_any()
}

/// The secret key. Only users who may replace it can see it.
#[component]
fn Secret(project: i64, secret: Option<String>, backup: bool) -> impl IntoView {
    let rotate = form_action::<RotateSecretKey>();
    let forget = form_action::<DeleteSecretBackup>();
    let (rotated, forgotten) = (form_result(rotate), form_result(forget));
    let has_one = secret.is_some();
    let (label, busy) = match has_one {
        true => ("Rotate secret key", "Rotating secret key..."),
        false => ("Create secret key", "Creating secret key..."),
    };
    let consequence = match (has_one, backup) {
        (false, _) => "The project gets a secret key.",
        (true, false) => {
            "The project gets a new secret key. The current one stays valid until you end it."
        }
        (true, true) => {
            "The project gets a new secret key. The current one stays valid. The one before it ends now."
        }
    };
    let shown = match secret {
        Some(secret) => view! {
            <details>
                <summary>"Show the secret key"</summary>
                <p><CopyValue text=secret what="secret key" /></p>
            </details>
        }
        .into_any(),
        None => view! { <p>"The project has no secret key."</p> }.into_any(),
    };
    let rotation = call(project, "rotate_secret_token");
    let old = backup.then(|| {
        let call = call(project, "delete_secret_token_backup");
        view! {
            <Confirm button="End the old secret key" danger=true>
                <ActionForm action=forget>
                    <p>"Requests of servers that use it are refused immediately."</p>
                    <input type="hidden" name="id" value=project.to_string() />
                    <ReturnAddress />
                    <button type="submit" class="button button-danger" data-busy="Ending the old secret key...">
                        "End the old secret key"
                    </button>
                </ActionForm>
                <ApiRequest call=call />
            </Confirm>
        }
    });
    view! {
        <FormFailure result=rotated />
        <FormFailure result=forgotten />
        {shown}
        {backup.then(|| view! { <p class="hint">"The previous secret key works too."</p> })}
        <div class="key-actions">
            <Confirm button=label>
                <ActionForm action=rotate>
                    <p>{consequence}</p>
                    <p class="hint">"If you signed in more than 15 minutes ago, you confirm your password first."</p>
                    <input type="hidden" name="id" value=project.to_string() />
                    <ReturnAddress />
                    <button type="submit" class="button button-primary" data-busy=busy>{label}</button>
                </ActionForm>
                <ApiRequest call=rotation />
            </Confirm>
            {old}
        </div>
    }
    .into_any()
}
