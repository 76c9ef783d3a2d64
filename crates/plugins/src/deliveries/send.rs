//! Passing events to a script, and sending the requests that it returns.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::value::RawValue;
use tracing::Instrument as _;
use tracing::field::Empty;
use weir_egress::FaultClass;
use weir_model::persons::PersonRef;
use weir_model::{PersonId, PluginConfigId, ProjectId, traces};
use weir_sandbox::{Delivered, DeliveryFunction, ErrorKind, ScriptError, Webhook};
use weir_store::events::StoredEvent;
use weir_store::persons;

use super::delivery::Failed;
use crate::Shared;
use crate::host_calls::{MADE_BY, SendError, send as send_request};
use crate::registry::{Active, Loaded};
use crate::shape;

/// Concurrent requests of one call.
const CONCURRENT_REQUESTS: usize = 10;
/// If a call takes no longer than this, the next call gets more events.
const QUICK: Duration = Duration::from_millis(500);
/// Maximum bytes of the properties of a person. The script gets events of larger persons
/// without their person.
const MAX_PERSON_BYTES: usize = 64 << 10;

/// Whether this config captured the event. The event is not delivered to the same config.
pub(super) fn is_made_by(event: &StoredEvent, config: PluginConfigId) -> bool {
    event.properties.contains(MADE_BY)
        && weir_json::member(&event.properties, MADE_BY) == Some(config.to_string().as_str())
}

/// The event as the script receives it, to show it to members.
pub(super) fn sample(shared: &Shared, event: &StoredEvent, project: ProjectId) -> String {
    shape::for_delivery(event, project, None, &shared.site_url)
}

/// Delivers events; returns for each the reason if it failed. There may be fewer results
/// than events: the rest was not passed to the script, because the delivery has reached
/// its time limit. `deadline` is a time of `uptime`.
pub(super) async fn send(
    shared: &Shared,
    active: &Active,
    events: &[StoredEvent],
    one_by_one: bool,
    deadline: Duration,
) -> weir_store::Result<Vec<Option<Failed>>> {
    let Some(loaded) = active.script() else { return Ok(vec![None; events.len()]) };
    let people = people(shared, active.project(), events).await?;
    let readable = event_texts(active.project(), events, &people, &shared.site_url);
    let is_readable: Vec<bool> = readable.iter().map(Option::is_some).collect();
    let texts: Vec<Box<RawValue>> = readable.into_iter().flatten().collect();
    if texts.len() < events.len() {
        tracing::error!(config = %active.id(), "a stored event cannot be read");
    }
    let mut failed: Vec<Option<Failed>> = vec![None; texts.len()];
    let functions = [
        (active.capabilities.on_event, DeliveryFunction::OnEvent),
        (active.capabilities.compose_webhook, DeliveryFunction::ComposeWebhook),
        (active.capabilities.export_events, DeliveryFunction::ExportEvents),
    ];
    // Scripts with `exportEvents` begin with the whole batch, all others with one event.
    // After a slow call only one event is passed at a time, because other configs share
    // the lane.
    let mut events_at_a_time =
        if active.capabilities.export_events && !one_by_one { texts.len() } else { 1 };
    let mut reached = 0;
    while reached < texts.len() {
        let is_over = shared.is_stopped() || shared.services.uptime() >= deadline;
        if is_over && reached > 0 {
            failed.truncate(reached);
            break;
        }
        let mut took = Duration::ZERO;
        let end = texts.len().min(reached + events_at_a_time);
        for (_, function) in functions.into_iter().filter(|(has_function, _)| *has_function) {
            // A batch fails as a whole, so events are called one by one to find the
            // faulty one.
            let chunk_size = match function {
                DeliveryFunction::ExportEvents if one_by_one => 1,
                _ => end - reached,
            };
            let parts = texts[reached..end]
                .chunks(chunk_size)
                .zip(failed[reached..end].chunks_mut(chunk_size));
            for (texts, failed) in parts {
                let span = tracing::info_span!(
                    target: traces::TARGET,
                    "deliver events",
                    trace.id = Empty,
                    weir.plugin_config = %active.id(),
                    weir.events = texts.len()
                );
                let called = call(shared, active, loaded, function, texts, failed);
                took += called.instrument(span).await;
            }
        }
        events_at_a_time = if took < QUICK { events_at_a_time * 2 } else { 1 };
        reached = end;
    }
    Ok(with_unreadable(&is_readable, failed))
}

/// The events as the script receives them. `None` for an event that cannot be read.
fn event_texts(
    project: ProjectId,
    events: &[StoredEvent],
    people: &HashMap<PersonId, Arc<PersonRef>>,
    site_url: &str,
) -> Vec<Option<Box<RawValue>>> {
    let text = |event: &StoredEvent| {
        let id = persons::first_id(project, &event.distinct_id);
        let person = people.get(&id).map(|person| &**person);
        shape::raw(shape::for_delivery(event, project, person, site_url))
    };
    events.iter().map(text).collect()
}

/// The results of all events, from those of the readable events. Ends before the first
/// readable event without a result.
fn with_unreadable(is_readable: &[bool], results: Vec<Option<Failed>>) -> Vec<Option<Failed>> {
    let mut results = results.into_iter();
    let unreadable =
        || Failed { message: "The stored event cannot be read.".to_owned(), is_permanent: true };
    let result = |is_readable: &bool| match is_readable {
        true => results.next(),
        false => Some(Some(unreadable())),
    };
    is_readable.iter().map_while(result).collect()
}

/// Calls one function of the script, and sends the requests that it returns. Returns how
/// long the call took, including the wait for the lane.
async fn call(
    shared: &Shared,
    active: &Active,
    loaded: &Loaded,
    function: DeliveryFunction,
    texts: &[Box<RawValue>],
    failed: &mut [Option<Failed>],
) -> Duration {
    let lane = shared.lane_of(active.id());
    let began = Instant::now();
    let answers = shared.work.deliver(lane, &loaded.worker, function, texts, shared).await;
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
        .buffer_unordered(CONCURRENT_REQUESTS)
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
    failed.fill(Some(Failed { message: message.to_owned(), is_permanent: false }));
}

/// An error of a script is permanent unless the script requested a retry, timed out,
/// crashed or failed in its setup.
fn of_script(loaded: &Loaded, error: &ScriptError) -> Failed {
    let may_pass = error.retry
        || matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Crashed | ErrorKind::Setup);
    Failed { message: loaded.message(error), is_permanent: !may_pass }
}

async fn post(shared: &Shared, webhook: Webhook) -> Result<(), Failed> {
    let Webhook { url, method, headers, body } = webhook;
    let failed = |class: FaultClass| Failed {
        message: format!("The destination did not take the event: {class}."),
        is_permanent: matches!(class, FaultClass::Status(status) if is_permanent(status)),
    };
    match send_request(&shared.egress, &url, &method, &headers, body).await {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(failed(FaultClass::Status(response.status().as_u16()))),
        Err(SendError::Connection(class)) => Err(failed(class)),
        Err(SendError::Invalid(message)) => Err(Failed {
            message: format!("The request cannot be sent: {message}."),
            is_permanent: true,
        }),
    }
}

/// Whether a status means that a retry of the same request will be refused too.
const fn is_permanent(status: u16) -> bool {
    matches!(status, 300..=499) && !matches!(status, 408 | 425 | 429)
}

/// The persons of the events. Persons that are too large are dropped while reading.
async fn people(
    shared: &Shared,
    project: ProjectId,
    events: &[StoredEvent],
) -> weir_store::Result<HashMap<PersonId, Arc<PersonRef>>> {
    let ids = events.iter().map(|event| persons::first_id(project, &event.distinct_id));
    let needed = |person: PersonRef| {
        (person.properties.len() <= MAX_PERSON_BYTES)
            // Scripts do not see distinct ids, and there may be a megabyte of them.
            .then(|| PersonRef { distinct_ids: Vec::new(), ..person })
    };
    persons::resolve_as(&shared.store, project, ids, needed).await
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use uuid::Uuid;
    use weir_model::ProjectId;
    use weir_store::events::StoredEvent;

    use super::{event_texts, with_unreadable};

    #[test]
    fn an_unreadable_event_fails_alone() {
        let event = |properties: &str| StoredEvent {
            arrival: 1,
            uuid: Uuid::nil(),
            event: "opened".to_owned(),
            distinct_id: "ada".to_owned(),
            timestamp: 0,
            received_at: 0,
            properties: properties.to_owned(),
            elements_chain: String::new(),
            historical: false,
            warnings: Vec::new(),
        };
        let events = [event("{}"), event(r#"{"a":"#), event(r#"{"a":1}"#)];
        let texts = event_texts(ProjectId(1), &events, &HashMap::new(), "https://weir.example");
        let is_readable: Vec<bool> = texts.iter().map(Option::is_some).collect();
        assert_eq!(is_readable, [true, false, true]);

        let results = with_unreadable(&is_readable, vec![None, None]);
        let [None, Some(fault), None] = results.as_slice() else { panic!("{results:?}") };
        assert_eq!(fault.message, "The stored event cannot be read.");
        assert!(fault.is_permanent);
        // The delivery reached its time limit after the first event.
        assert_eq!(with_unreadable(&is_readable, vec![None]).len(), 2);
    }
}
