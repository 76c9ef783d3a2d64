//! Small components: states, numbers, code, icons.

use leptos::prelude::*;
use serde_json::json;

use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::bytes;
use crate::ui::code::{Code, Source};
use crate::ui::field::TextLine;
use crate::ui::form::FormResult;
use crate::ui::icon::Icon;
use crate::ui::number::{Count, Id, counted, duration, percent};
use crate::ui::sections::Section;
use crate::ui::status::{Chip, Mark, Progress, Status, Strip, Tone};

/// Names of the icons.
const ICONS: [&str; 51] = [
    "start",
    "live",
    "health",
    "settings",
    "organization",
    "key",
    "account",
    "check",
    "alter",
    "drop",
    "alert",
    "info",
    "copy",
    "close",
    "chevron",
    "plus",
    "pause",
    "play",
    "search",
    "help",
    "member",
    "invite",
    "domain",
    "activity",
    "export",
    "plugin",
    "transformation",
    "person",
    "group",
    "migration",
    "instance",
    "shield",
    "warning",
    "clock",
    "dot",
    "up",
    "down",
    "edit",
    "trash",
    "external",
    "filter",
    "refresh",
    "upload",
    "download",
    "lock",
    "history",
    "undo",
    "overview",
    "gear",
    "menu",
    "mark",
];

/// Example source of a plugin.
const SOURCE: &str = "export function processEvent(event) {\n  if (event.event === \"$pageview\") {\n    return null;\n  }\n\n  return event;\n}";

/// The small components.
pub(super) fn sections() -> AnyView {
    view! {
        <Section id="states" title="States">{states()}</Section>
        <Section id="numbers" title="Numbers and ids">{numbers()}</Section>
        <Section id="code" title="Texts for machines">
            <Code text="weir backup /var/backups/weir" what="command" />
            <Source text=SOURCE />
        </Section>
        <Section id="request" title="Request to the API">{request()}</Section>
        <Section id="icons" title="Icons">
            <div class="gallery-row">{ICONS.map(|name| view! { <Icon name=name /> }).collect_view()}</div>
        </Section>
    }
    .into_any()
}

fn states() -> AnyView {
    let words = [
        (Tone::Good, "Running"),
        (Tone::Warn, "Late"),
        (Tone::Bad, "Failing"),
        (Tone::Busy, "Starting"),
        (Tone::Quiet, "Paused"),
    ];
    let words = words.map(|(tone, label)| view! { <Status tone=tone label=label /> });
    let chips = ["Owner", "2 domains"].map(|label| view! { <Chip label=label /> });
    let mark = |at: u32| {
        let (tone, word) = match at {
            3 => (Tone::Bad, "failed"),
            7 => (Tone::Warn, "needed three tries"),
            11 => (Tone::Busy, "is running"),
            1 => (Tone::Quiet, "had nothing to do"),
            _ => (Tone::Good, "went well"),
        };
        let href = (at > 5).then(|| "#states".to_owned());
        Mark { tone, title: format!("Run of {at:02}:00 {word}"), href }
    };
    let marks: Vec<Mark> = (0..12).map(mark).collect();
    view! {
        <div class="gallery-row">{words.collect_view()} {chips.collect_view()}</div>
        <Strip marks=marks summary="12 runs since midnight: 1 failed, 1 needed several tries." />
        <Progress done=312 total=Some(1_204) label="Rows exported" />
        <Progress done=0 total=Some(0) label="Files" />
        <Progress done=24_199 total=None label="Events read" />
    }
    .into_any()
}

fn numbers() -> AnyView {
    view! {
        <dl class="facts">
            <dt>"Counts"</dt>
            <dd><Count value=0 /> ", " <Count value=9_999 /> ", " <Count value=24_199 /> ", " <Count value=1_250_000 /></dd>
            <dt>"With words"</dt>
            <dd>{counted(1, "member", "members")} ", " {counted(1_204, "member", "members")}</dd>
            <dt>"Shares"</dt>
            <dd>{percent(1, 3)} ", " {percent(1, 100_000)} ", " {percent(0, 0)}</dd>
            <dt>"Durations"</dt>
            <dd>{duration(180)} ", " {duration(2_560)} ", " {duration(125_000)} ", " {duration(349_200_000)}</dd>
            <dt>"Bytes"</dt>
            <dd>{bytes::text(312)} ", " {bytes::text(5 << 20)}</dd>
            <dt>"Ids"</dt>
            <dd>
                <Id text="mill-race" what="short name" /> " "
                <Id text="0191d3a2-7c1e-7b52-a3f0-5c2f9be4d017" what="export id" />
            </dd>
        </dl>
    }
    .into_any()
}

fn request() -> AnyView {
    let read = ApiCall {
        method: "GET",
        path: "/api/organizations/?limit=50".to_owned(),
        scope: "organization:read",
        body: None,
    };
    let change = ApiCall {
        method: "PATCH",
        path: "/api/users/@me/".to_owned(),
        scope: "",
        body: Some(json!({"first_name": "{first_name}"})),
    };
    let result = FormResult::sample(None);
    view! {
        <ApiRequest call=read />
        <form action="/gallery">
            <TextLine result=result name="first_name" label="First name" value="Ada" />
            <ApiRequest call=change />
        </form>
    }
    .into_any()
}
