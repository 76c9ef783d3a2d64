//! Historical migrations: instructions, progress, and suspicious data.

mod script;
mod sources;

use futures::future::try_join;
use leptos::prelude::*;

use self::sources::{sources, suspects};
use super::{columns_menu, project_in_path};
use crate::server_fns::imports::{FinishImport, ImportsView, PlanView, StartImport, get_imports};
use crate::server_fns::projects::{ProjectView, get_project};
use crate::ui::confirm::Confirm;
use crate::ui::download::DownloadCsv;
use crate::ui::empty::Empty;
use crate::ui::field::{TextArea, TextLine};
use crate::ui::form::{FormFailure, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::number::duration;
use crate::ui::page::{PageHead, page};
use crate::ui::query::in_query;
use crate::ui::sections::Section;
use crate::ui::status::{Progress, Status, Tone};
use crate::ui::tabs::CodeTabs;
use crate::ui::time::Time;

const TITLE: &str = "Migrations";

#[component]
pub(crate) fn Migrations() -> impl IntoView {
    page(
        TITLE,
        || (project_in_path(), in_query("plan"), columns_menu::in_address()),
        |(id, ..)| try_join(get_project(id), get_imports(id)),
        |(_, open, columns), (project, found)| draw(&project, &open, &columns, found),
    )
}

fn draw(project: &ProjectView, open: &str, columns: &[String], found: ImportsView) -> AnyView {
    let finish = form_action::<FinishImport>();
    let finished = form_result(finish);
    let (id, name) = (project.id, project.name.clone());
    let is_empty = found.plans.is_empty() && found.sources.is_empty();
    let plans = found.plans.into_iter().map(|one| plan(project, one, open, finish)).collect_view();
    let warned = suspects(&found.sources);
    let report = (!found.sources.is_empty()).then(|| view! { <DownloadCsv /> });
    let how = how(project);
    let guidance = if is_empty {
        view! { <Empty title="No events imported yet">{how}</Empty> }.into_any()
    } else {
        view! {
            <details class="help">
                <summary>"How to migrate"</summary>
                {how}
            </details>
        }
        .into_any()
    };
    let received = sources(id, open, columns, found.sources);
    view! {
        <PageHead title=TITLE within=name>{report}</PageHead>
        <FormFailure result=finished />
        {warned}
        {guidance}
        {plans}
        {received}
        <div data-dirty-guard=""><StartForm project=id /></div>
    }
    .into_any()
}

/// Instructions and warnings.
fn how(project: &ProjectView) -> AnyView {
    let organization = format!("/organizations/{}", project.organization);
    view! {
        <p>
            "Send historical events like all others, marked with "
            <code>"historical_migration"</code> ". Their order is kept, and they trigger no alerts."
        </p>
        <ul>
            <li>"Try it on a new project first: " <a href=organization>"create one in the organization"</a> "."</li>
            <li>"Use the names that your product sends now, such as " <code>"$pageview"</code> " for page views."</li>
            <li>"Give every event a " <code>"timestamp"</code> " in ISO 8601 and a " <code>"distinct_id"</code> "."</li>
            <li>"Send " <code>"historical_migration"</code> " as true with every batch. The scripts on this page do so."</li>
            <li>"Keep the exported events in files, so that you can repeat the import."</li>
            <li>"Sending an event a second time with its uuid changes nothing."</li>
            <li>"You can send live events during the import. They are processed first."</li>
        </ul>
    }
    .into_any()
}

fn plan(
    project: &ProjectView,
    plan: PlanView,
    open: &str,
    finish: FormAction<FinishImport>,
) -> AnyView {
    let PlanView { id, source, file, note, total, sent, seconds_left, created_at, finished_at } =
        plan;
    let scripts = vec![
        ("weir import", script::command(&project.host, &project.key, &file)),
        ("bash and curl", script::loop_of_curl(&project.host, &project.key, &file)),
    ];
    let is_open = id == open;
    let left = seconds_left.map(|seconds| {
        let time = duration(seconds.saturating_mul(1_000));
        view! { <p>{format!("About {time} left at the current rate.")}</p> }
    });
    let is_finished = finished_at.is_some();
    let state = match finished_at {
        Some(at) => {
            view! { <Status tone=Tone::Good label="Finished" /> " " <Time iso=at /> }.into_any()
        }
        None => view! { <Status tone=Tone::Busy label="In progress" /> }.into_any(),
    };
    let hidden = source.clone();
    let same = source.clone();
    let tabs = is_open.then(|| {
        // Only one plan is open at a time, so the name of the radio group is unique.
        view! { <CodeTabs name="script" legend="Kind of script" tabs=scripts /> }
    });
    let href = format!("/projects/{}/migrations?plan={id}", project.id);
    let show = (!is_open && !is_finished).then(|| {
        view! { <a class="button" href=href>"Show script"<span class="hidden">" of " {same}</span></a> }
    });
    let pace = (!is_finished).then(|| {
        view! {
            <p class="hint">
                "To pause, stop the script with Ctrl-C. To resume, run it again. Nothing is counted twice."
            </p>
        }
    });
    let number = project.id;
    let ending = (!is_finished).then(|| {
        view! {
            <Confirm button="Mark finished" of=hidden>
                <ActionForm action=finish>
                    <p>"The count stays as it is now. Later events are still stored."</p>
                    <input type="hidden" name="project" value=number.to_string() />
                    <input type="hidden" name="plan" value=id />
                    <ReturnAddress />
                    <button type="submit" class="button button-primary" data-busy="Marking finished...">
                        "Mark finished"
                    </button>
                </ActionForm>
            </Confirm>
        }
    });
    view! {
        <section class="card">
            <h2 class="wrap">{source}</h2>
            <p>{state}</p>
            <p class="hint">"Started "<Time iso=created_at /></p>
            {(!note.is_empty()).then(|| view! { <p class="wrap">{note}</p> })}
            <Progress done=sent total=total label="Events sent" />
            {left}
            {tabs}
            {pace}
            <div class="pages">{show} {ending}</div>
        </section>
    }
    .into_any()
}

#[component]
fn StartForm(project: i64) -> impl IntoView {
    let start = form_action::<StartImport>();
    let result = form_result(start);
    view! {
        <Section id="start" title="Start a migration" hint="You get a script that you can stop and resume. Its progress is shown here.">
            <ActionForm action=start>
                <FormFailure result=result fields=&["source", "total", "file", "note"] />
                <input type="hidden" name="project" value=project.to_string() />
                <ReturnAddress />
                <TextLine result=result name="source" label="Source" required=true max=200
                    hint="Where the events come from, such as the name of the other tool." />
                <TextLine result=result name="file" label="File" max=200
                    hint="One event as JSON on each line. Leave it empty to enter the name later." />
                <TextLine result=result name="total" label="Number of events" max=30
                    hint="Optional. It allows an estimate of the remaining time." />
                <TextArea result=result name="note" label="Note" rows=3 max=2_000 />
                <Submit result=result label="Start migration" busy="Starting migration..." />
            </ActionForm>
        </Section>
    }
    .into_any()
}
