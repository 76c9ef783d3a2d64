//! Passing events to a script, and sending the requests that it returns.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::value::RawValue;
use weir_egress::FaultClass;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, PluginConfigId, ProjectId};
use weir_sandbox::{Delivered, DeliveryFunction, ErrorKind, ScriptError, Webhook};
use weir_store::events::StoredEvent;
use weir_store::persons;

use super::delivery::Failed;
use crate::Shared;
use crate::host_calls::{MADE_BY, Sent, send as send_request};
use crate::registry::{Active, Loaded};
use crate::shape;

/// Concurrent requests of a batch.
const EVENTS_PER_CALL: usize = 10;
/// If a call takes no longer than this, the next call gets more events.
const QUICK: Duration = Duration::from_millis(500);
/// Maximum bytes of the properties of a person. Larger persons are omitted.
const PERSON: usize = 64 << 10;

/// Whether this config captured the event.
pub(super) fn is_made_by(event: &StoredEvent, config: PluginConfigId) -> bool {
    event.properties.contains(MADE_BY)
        && weir_json::member(&event.properties, MADE_BY) == Some(config.to_string().as_str())
}

/// The event in the form of the script, shown to members.
pub(super) fn sample(shared: &Shared, event: &StoredEvent, project: ProjectId) -> String {
    shape::for_delivery(event, project, None, &shared.site_url)
}

/// Delivers events; returns for each the reason if it failed. There may be fewer results
/// than events: the rest was not passed to the script, because the delivery has reached
/// its time limit.
pub(super) async fn send(
    shared: &Shared,
    active: &Active,
    events: &[StoredEvent],
    one_by_one: bool,
    until: Duration,
) -> weir_store::Result<Vec<Option<Failed>>> {
    let mut failed: Vec<Option<Failed>> = vec![None; events.len()];
    let Some(loaded) = active.script() else { return Ok(failed) };
    let people = people(shared, active.project(), events).await?;
    let texts: Vec<Box<RawValue>> = events
        .iter()
        .filter_map(|event| {
            let id = persons::first_id(active.project(), &event.distinct_id);
            let person = people.get(&id).map(|person| &**person);
            shape::raw(shape::for_delivery(event, active.project(), person, &shared.site_url))
        })
        .collect();
    // Capture has validated every stored event, so every event has its text.
    if texts.len() != events.len() {
        tracing::error!(config = %active.id(), "a stored event cannot be read");
        return Ok(failed);
    }
    let ways = [
        (active.capabilities.on_event, DeliveryFunction::OnEvent),
        (active.capabilities.compose_webhook, DeliveryFunction::ComposeWebhook),
        (active.capabilities.export_events, DeliveryFunction::ExportEvents),
    ];
    // Lanes serve several configs, so a slow config gets its lane for one event at a
    // time.
    let mut size = if active.capabilities.export_events && !one_by_one { texts.len() } else { 1 };
    let mut reached = 0;
    while reached < texts.len() {
        let is_over = shared.is_stopped() || shared.services.uptime() >= until;
        if is_over && reached > 0 {
            failed.truncate(reached);
            break;
        }
        let mut took = Duration::ZERO;
        let end = texts.len().min(reached + size);
        for (_, way) in ways.into_iter().filter(|(has_function, _)| *has_function) {
            // A batch fails as a whole, so events are called one by one to find the
            // faulty one.
            let is_alone = one_by_one && way == DeliveryFunction::ExportEvents;
            let concurrently = if is_alone { 1 } else { end - reached };
            let parts = texts[reached..end]
                .chunks(concurrently)
                .zip(failed[reached..end].chunks_mut(concurrently));
            for (texts, failed) in parts {
                took += call(shared, active, loaded, way, texts, failed).await;
            }
        }
        size = if took < QUICK { size * 2 } else { 1 };
        reached = end;
    }
    Ok(failed)
}

/// Calls one function of the script, and sends the requests that it returns. Returns how
/// long the lane was used.
async fn call(
    shared: &Shared,
    active: &Active,
    loaded: &Loaded,
    way: DeliveryFunction,
    texts: &[Box<RawValue>],
    failed: &mut [Option<Failed>],
) -> Duration {
    let lane = shared.lane_of(active.id());
    let began = Instant::now();
    let answers = shared.work.deliver(lane, &loaded.worker, way, texts, shared).await;
    let took = began.elapsed();
    let answers = match answers {
        Ok(answers) if answers.len() == texts.len() => answers,
        Ok(_) => {
            fail_all(failed, "The sandbox lost events.");
            return took;
        }
        Err(fault) => {
            fail_all(failed, &fault.to_string());
            return took;
        }
    };
    let mut webhooks: Vec<(usize, Webhook)> = Vec::new();
    for (index, (answer, failed)) in answers.into_iter().zip(failed.iter_mut()).enumerate() {
        match answer {
            Delivered::Done | Delivered::Webhook(None) => {}
            Delivered::Webhook(Some(webhook)) => webhooks.push((index, webhook)),
            Delivered::Failed(error) => *failed = Some(of_script(loaded, &error)),
        }
    }
    let sent = futures::stream::iter(webhooks)
        .map(|(index, webhook)| async move { (index, post(shared, webhook).await) })
        .buffer_unordered(EVENTS_PER_CALL)
        .collect::<Vec<_>>()
        .await;
    for (index, result) in sent {
        if let (Err(fault), Some(failed)) = (result, failed.get_mut(index)) {
            *failed = Some(fault);
        }
    }
    took
}

fn fail_all(failed: &mut [Option<Failed>], message: &str) {
    failed.fill(Some(Failed { message: message.to_owned(), is_lasting: false }));
}

/// An error is a fault of the script if the script did not ask for a retry and a retry
/// cannot help.
fn of_script(loaded: &Loaded, error: &ScriptError) -> Failed {
    let may_pass = error.retry
        || matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Crashed | ErrorKind::Setup);
    Failed { message: loaded.message(error), is_lasting: !may_pass }
}

async fn post(shared: &Shared, webhook: Webhook) -> Result<(), Failed> {
    let Webhook { url, method, headers, body } = webhook;
    let failed = |class: FaultClass| Failed {
        message: format!("The destination did not take the event: {class}."),
        is_lasting: matches!(class, FaultClass::Status(status) if is_lasting(status)),
    };
    match send_request(&shared.egress, &url, &method, &headers, body).await {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(failed(FaultClass::Status(response.status().as_u16()))),
        Err(Sent::Fault(class)) => Err(failed(class)),
        Err(Sent::Impossible(message)) => Err(Failed {
            message: format!("The request cannot be sent: {message}."),
            is_lasting: true,
        }),
    }
}

/// Whether a status means that a retry of the same request will be refused too.
const fn is_lasting(status: u16) -> bool {
    matches!(status, 300..=499) && !matches!(status, 408 | 425 | 429)
}

/// The persons of the events. Omitted persons are not kept in memory.
async fn people(
    shared: &Shared,
    project: ProjectId,
    events: &[StoredEvent],
) -> weir_store::Result<HashMap<PersonId, Arc<PersonRef>>> {
    let ids = events.iter().map(|event| persons::first_id(project, &event.distinct_id));
    let needed = |person: PersonRef| {
        (person.properties.len() <= PERSON)
            // Scripts do not see distinct ids, and there may be a megabyte of them.
            .then(|| PersonRef { distinct_ids: Vec::new(), ..person })
    };
    persons::resolve_as(&shared.store, project, ids, needed).await
}
