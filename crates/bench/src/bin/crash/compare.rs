//! Comparing acknowledged data with the data of the service.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use weir_bench::api::{Api, EventRow, measured, metric, organization_path};
use weir_bench::client::Connection;
use weir_bench::random::Random;
use weir_bench::weir::{Instance, Weir};

use crate::Check;
use crate::ledger::distinct_id;
use crate::people::{Beings, group_types};
use crate::sending::{Shared, capture, lock, setting};
use crate::stories;

/// Timeout until everything acknowledged is readable, also in a debug build.
const DRAIN: Duration = Duration::from_secs(90);
/// How many acknowledged events lengthen [`DRAIN`] by a second.
const DRAINED_PER_SECOND: u64 = 2_000;
/// Events that show that all before them are readable: enough to be in every partition.
const LAST: u64 = 64;
/// Events that are also read individually.
const SPOT_CHECKS: u64 = 50;

/// The checks of events.
#[derive(Debug)]
pub(crate) struct Checks {
    pub(crate) missing: Check,
    pub(crate) twice: Check,
    pub(crate) content: Check,
    pub(crate) settings: Check,
    /// The checks of persons and groups.
    pub(crate) beings: Beings,
    /// Number of readable events at the last comparison.
    pub(crate) readable: usize,
}

impl Checks {
    pub(crate) fn new() -> Self {
        Self {
            missing: Check::new("every acknowledged event is there"),
            twice: Check::new("no event is there twice"),
            content: Check::new("every event is as it was sent, and nothing else is there"),
            settings: Check::new("every acknowledged change of a setting is there"),
            beings: Beings::new(),
            readable: 0,
        }
    }

    /// Compares the setting.
    pub(crate) async fn setting(
        &mut self,
        weir: &Weir,
        instance: &Instance,
        ledger: &Shared,
    ) -> Result<()> {
        #[derive(Deserialize)]
        struct Organization {
            name: String,
        }
        let (tried, kept) = {
            let ledger = lock(ledger);
            (ledger.setting_tried, ledger.setting_kept)
        };
        let mut api = Api::open(weir.address, instance).await?;
        let (status, body) = api.call("GET", &organization_path(instance), "").await?;
        ensure!(status == 200, "the organization answered {status}");
        let found: Organization = serde_json::from_slice(&body)?;
        if kept > 0 && !(kept..=tried).any(|number| setting(number) == found.name) {
            self.settings.fail(format!(
                "the name is {:?}; acknowledged: {:?}, tried: {:?}",
                found.name,
                setting(kept),
                setting(tried)
            ));
        }
        Ok(())
    }

    /// Waits until everything is readable and compares all events.
    pub(crate) async fn events(
        &mut self,
        weir: &Weir,
        instance: &Instance,
        ledger: &Shared,
        random: &mut Random,
    ) -> Result<()> {
        drained(weir, instance, ledger).await?;
        let mut api = Api::open(weir.address, instance).await?;
        let types = self.beings.compare(&mut api, ledger).await?;
        let mut found: HashMap<Uuid, u32> = HashMap::new();
        let mut by_id: HashMap<String, u64> = HashMap::new();
        let mut next = Some("?limit=1000".to_owned());
        while let Some(query) = next {
            let page = api.events(&query).await?;
            for event in &page.results {
                *found.entry(event.uuid).or_default() += 1;
                *by_id.entry(event.distinct_id.clone()).or_default() += 1;
                self.look_at(event, &types, ledger);
            }
            next = page.next;
        }
        self.beings.event_counts(&mut api, &by_id).await?;
        self.readable = found.len();
        for (uuid, count) in found.iter().filter(|(_, count)| **count > 1) {
            self.twice.fail(format!("{uuid} is there {count} times"));
        }
        let acknowledged: Vec<(u64, Uuid)> = {
            let ledger = lock(ledger);
            ledger.acknowledged().map(|number| (number, ledger.uuid(number))).collect()
        };
        for (number, uuid) in &acknowledged {
            if !found.contains_key(uuid) {
                self.missing.fail(format!("event {number}, {uuid}, is not in the list"));
            }
        }
        for _ in 0..SPOT_CHECKS.min(acknowledged.len() as u64) {
            let place = random.below(acknowledged.len() as u64);
            let Some((number, uuid)) =
                usize::try_from(place).ok().and_then(|p| acknowledged.get(p))
            else {
                continue;
            };
            if !api.is_readable(*uuid).await? {
                self.missing.fail(format!("event {number}, {uuid}, is not found by its uuid"));
            }
        }
        Ok(())
    }

    /// Reads all events until a page of them is refused, and compares what is served. Returns
    /// whether one was refused.
    pub(crate) async fn until_refused(&mut self, api: &mut Api, ledger: &Shared) -> Result<bool> {
        let types = group_types(api).await?;
        let mut next = Some("?limit=1000".to_owned());
        while let Some(query) = next {
            let page = match api.events(&query).await {
                Ok(page) => page,
                Err(error) if error.to_string().contains(" answered 500") => return Ok(true),
                Err(error) => return Err(error),
            };
            for event in &page.results {
                self.look_at(event, &types, ledger);
            }
            next = page.next;
        }
        Ok(false)
    }

    /// Compares an event with the sent one. `types`: names of the group types.
    fn look_at(&mut self, event: &EventRow, types: &[String], ledger: &Shared) {
        let (number, sent) = {
            let ledger = lock(ledger);
            let Some(number) = ledger.number(event.uuid) else {
                return self
                    .content
                    .fail(format!("{} ({}) was never sent", event.uuid, event.event));
            };
            (number, ledger.story_event(number))
        };
        let text = event.properties.get();
        let mut found: stories::Properties = serde_json::from_str(text).unwrap_or_default();
        let is_transformed = stories::untransformed(&mut found);
        let same = match sent {
            Some(sent) => {
                // The service adds the IP address of the sender.
                found.remove("$ip");
                let expected = stories::processed(sent.properties, types);
                event.event == sent.event
                    && event.distinct_id == sent.distinct_id
                    && found == expected
            }
            None => {
                event.event == "crash test"
                    && event.distinct_id == distinct_id(number)
                    && found.get("number").and_then(Value::as_u64) == Some(number)
            }
        };
        if !(same && is_transformed) {
            self.content.fail(format!(
                "event {number}, {}, is not as it was sent and transformed: {} of {} with {text}",
                event.uuid, event.event, event.distinct_id
            ));
        }
    }
}

/// Waits until everything acknowledged so far is readable. Events that are sent now come
/// after all others in the log; live and historical events are in separate partitions.
pub(crate) async fn drained(weir: &Weir, instance: &Instance, ledger: &Shared) -> Result<()> {
    for historical in [false, true] {
        let (numbers, body, uuids) = {
            let mut ledger = lock(ledger);
            let numbers = ledger.take(LAST);
            let body = ledger.batch(&instance.project_api_key, &numbers, historical, 0);
            let uuids: Vec<Uuid> = numbers.iter().map(|number| ledger.uuid(*number)).collect();
            (numbers, body, uuids)
        };
        let mut connection = Connection::open(weir.address).await?;
        let status = connection.send(&capture("/batch/", &body)).await?.status;
        ensure!(status == 200, "the last events were answered with {status}");
        lock(ledger).acknowledge(&numbers);
        let mut api = Api::open(weir.address, instance).await?;
        let acknowledged = lock(ledger).acknowledged().count() as u64;
        let patience = DRAIN + Duration::from_secs(acknowledged / DRAINED_PER_SECOND);
        if let Err(error) = api.wait_readable(&uuids, patience).await {
            let measured = measured(weir.metrics, "weir_ingest_").await?;
            let last = weir.last_lines();
            return Err(error.context(format!("the log is not applied:\n{measured}\n{last}")));
        }
    }
    // The gauge is updated once a second.
    let deadline = Instant::now() + Duration::from_secs(30);
    while metric(weir.metrics, "weir_ingest_apply_lag_bytes").await? != 0.0 {
        ensure!(Instant::now() < deadline, "everything is readable, and the lag is not zero");
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
