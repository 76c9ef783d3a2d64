//! The instance page for staff: process, data, backups, work in progress, totals.

mod backups;
pub(crate) mod limits;
pub(crate) mod organizations;
mod providers;

use leptos::prelude::*;

use crate::process_facts::{DamageFacts, DiskFacts, ProcessFacts};
use crate::server_fns::instance::{BucketView, FilesView, InstanceView, get_instance};
use crate::ui::bytes;
use crate::ui::number::{Count, counted, duration};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;
use crate::ui::status::{Status, Tone};

/// Days before the end of a certificate from which on it needs attention. By then it should
/// have been renewed.
const CERTIFICATE_WARNING_DAYS: i64 = 7;

#[component]
pub(crate) fn Instance() -> impl IntoView {
    page("Instance", || (), |()| get_instance(), |(), found| draw(found))
}

fn draw(found: InstanceView) -> AnyView {
    let InstanceView {
        facts,
        files,
        sends_mail,
        users,
        organizations,
        projects,
        events,
        providers,
        refused_sign_ins,
        callback_url,
    } = found;
    view! {
        <PageHead title="Instance" />
        <p class="lead">"The state when this page was loaded. Only staff can see this page."</p>
        <Process facts=facts.clone() sends_mail=sends_mail />
        <Data disk=facts.disk.clone() files=files />
        {facts.backups.clone().map(backups::draw)}
        <Work facts=facts />
        <providers::Providers providers=providers refused_sign_ins=refused_sign_ins callback_url=callback_url />
        <Section id="limits" title="Limits of organizations"
            hint="How many events, members and exports each organization may have, and how much disk space.">
            <p><a href="/instance/organizations">"Organizations of this instance"</a></p>
        </Section>
        <Section id="contents" title="Contents">
            <dl class="facts">
                <dt>"Accounts"</dt><dd><Count value=users /></dd>
                <dt>"Organizations"</dt><dd><Count value=organizations /></dd>
                <dt>"Projects"</dt><dd><Count value=projects /></dd>
                <dt>"Events"</dt><dd><Count value=events /></dd>
            </dl>
        </Section>
    }
    .into_any()
}

#[component]
fn Process(facts: ProcessFacts, sends_mail: bool) -> impl IntoView {
    let public_url = match facts.public_url {
        Some(url) => view! { <code class="wrap">{url}</code> }.into_any(),
        None => view! {
            "Not set: people can sign in on this machine only. "
            <a href="/help/sign-in">"Let others sign in"</a>
        }
        .into_any(),
    };
    let certificate = facts.certificate_days.map(certificate);
    let mail = match sends_mail {
        true => view! { <Status tone=Tone::Good label="Set up" /> }.into_any(),
        false => view! {
            <Status tone=Tone::Quiet label="Not set up" />
            " " <a href="/help/mail">"Set up mail"</a>
        }
        .into_any(),
    };
    view! {
        <Section id="process" title="Server">
            <dl class="facts">
                <dt>"Version"</dt><dd>{facts.version}</dd>
                <dt>"Uptime"</dt><dd>{duration(facts.up_seconds.saturating_mul(1000))}</dd>
                <dt>"Public address"</dt><dd>{public_url}</dd>
                {certificate}
                <dt>"Mail"</dt><dd>{mail}</dd>
                <dt>"Licences"</dt><dd><a href="/help/licences">"Licences of Weir and its parts"</a></dd>
            </dl>
        </Section>
    }
    .into_any()
}

/// The certificate of this server. Shown only if it has one.
fn certificate(days: i64) -> impl IntoView {
    let (tone, label) = match days {
        ..0 => (Tone::Bad, "Expired".to_owned()),
        0 => (Tone::Bad, "Expires in less than a day".to_owned()),
        days => {
            let tone = if days < CERTIFICATE_WARNING_DAYS { Tone::Warn } else { Tone::Good };
            (tone, format!("Expires in {}", counted(days.unsigned_abs(), "day", "days")))
        }
    };
    view! {
        <dt>"Certificate"</dt>
        <dd><Status tone=tone label=label /> " " <a href="/help/tls">"Certificates"</a></dd>
    }
}

#[component]
fn Data(disk: Option<DiskFacts>, files: FilesView) -> impl IntoView {
    let content = match disk {
        Some(disk) => on_disk(disk, files),
        None => view! { <p>"The data is in memory: nothing survives the process."</p> }.into_any(),
    };
    view! { <Section id="data" title="Data">{content}</Section> }.into_any()
}

fn on_disk(disk: DiskFacts, files: FilesView) -> AnyView {
    let others = disk.all_bytes.saturating_sub(disk.store_bytes).saturating_sub(disk.log_bytes);
    view! {
        <dl class="facts">
            <dt>"Directory"</dt><dd><code class="wrap">{disk.directory}</code></dd>
            <dt>"Total size"</dt><dd>{bytes::text(disk.all_bytes)}</dd>
            <dt>"Stored data"</dt><dd>{bytes::text(disk.store_bytes)}</dd>
            <dt>"Ingest log"</dt><dd>{bytes::text(disk.log_bytes)}</dd>
            <dt>"Other files"</dt>
            <dd>{bytes::text(others)} ", most of it the reserve for a full disk"</dd>
            <dt>"Free disk space"</dt><dd>{bytes::text(disk.free_bytes)}</dd>
            {files.bucket.map(in_bucket)}
            {(files.damage > 0).then(|| damaged_files(files.damage))}
        </dl>
    }
    .into_any()
}

fn in_bucket(bucket: BucketView) -> impl IntoView {
    let BucketView { location, failure, cached_bytes } = bucket;
    let state = match failure {
        None => view! { <Status tone=Tone::Good label="No failure" /> }.into_any(),
        Some(failure) => view! {
            <Status tone=Tone::Bad label="Not usable" /> " " {failure} ". "
            <a href="/help/running#files-of-events-in-a-bucket">"What to do"</a>
        }
        .into_any(),
    };
    view! {
        <dt>"Files of events"</dt><dd><code class="wrap">{location}</code></dd>
        <dt>"Bucket"</dt><dd>{state}</dd>
        <dt>"Cached on this machine"</dt><dd>{bytes::text(cached_bytes)}</dd>
    }
}

/// Damage of the files of stored events. Shown only if there is any.
fn damaged_files(findings: u64) -> impl IntoView {
    view! {
        <dt>"Damaged files of events"</dt>
        <dd>
            <Status tone=Tone::Bad label="Damaged" />
            " Found " {counted(findings, "time", "times")} " since the start. "
            <a href="/help/running#files-of-events">"What to do"</a>
        </dd>
    }
}

/// Damage of the ingest log. Shown only if there is any.
fn damaged(damage: DamageFacts) -> impl IntoView {
    let DamageFacts { copies, bytes, missing_bytes } = damage;
    let broken = (copies > 0).then(|| {
        let ranges = counted(copies, "range", "ranges");
        view! {
            {ranges} " with " {bytes::text(bytes)} " cannot be read. Copies are in "
            <code>"log/quarantine"</code> ". "
        }
    });
    let missing = (missing_bytes > 0).then(|| {
        view! { {bytes::text(missing_bytes)} " of the log are missing. " }
    });
    view! {
        <dt>"Damage of the ingest log"</dt>
        <dd>
            <Status tone=Tone::Bad label="Damaged" />
            " " {broken} {missing} <a href="/help/running#damage-of-the-ingest-log">"What to do"</a>
        </dd>
    }
}

#[component]
fn Work(facts: ProcessFacts) -> impl IntoView {
    let (tone, word) = match facts.accepts_events {
        true => (Tone::Good, "Accepting events"),
        false => (Tone::Bad, "Refusing events"),
    };
    view! {
        <Section id="work" title="In progress">
            <dl class="facts">
                <dt>"Events"</dt><dd><Status tone=tone label=word /></dd>
                <dt>"Waiting to be processed"</dt><dd>{bytes::text(facts.lag_bytes)}</dd>
                {facts.damage.map(damaged)}
                <dt>"Exports"</dt><dd>{counted(facts.export_runs, "run", "runs")} " in progress"</dd>
                <dt>"Plugin processes"</dt>
                <dd>{counted(facts.plugin_children, "process", "processes")}</dd>
            </dl>
        </Section>
    }
    .into_any()
}
