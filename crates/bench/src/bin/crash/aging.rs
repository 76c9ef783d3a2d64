//! A project that keeps its events for a limited time: sealed events that are old are
//! removed while the service is killed.
//!
//! Checked are: the events that are there are counted, no recent event is missing, all old
//! ones go but those of the newest block, and an old event that is sent again is not stored,
//! also after it was removed. Damage of a run is the exception: the uuid of a removed event is
//! nowhere else.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use weir_bench::api::{Api, organization_path};
use weir_bench::client::Connection;
use weir_bench::weir::{Instance, Weir};

use crate::Check;
use crate::sending::capture;

/// Old events of a cycle, and recent ones.
const EACH: u64 = 400;
/// One of so many events is sent again in each cycle. It is even: only old ones are.
const AGAIN: usize = 262;
/// Old events that may stay: those of a block and of the batch that began the next one.
const STAY: u64 = 1_500 + EACH;
/// Timeout until old events are gone and recent ones are there.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Deserialize)]
struct PersonPage {
    results: Vec<Person>,
}

#[derive(Deserialize)]
struct Person {
    event_count: Option<u64>,
}

/// The project, and what was sent to it.
pub(crate) struct Aging {
    instance: Instance,
    /// Old events are those with even numbers.
    next: u64,
    /// Events before this one are known to be stored.
    stored: u64,
    pub(crate) check: Check,
}

impl Aging {
    /// Creates the project.
    pub(crate) async fn begin(weir: &Weir, instance: &Instance) -> Result<Self> {
        #[derive(Deserialize)]
        struct Project {
            id: i64,
            api_token: String,
        }
        let mut api = Api::open(weir.address, instance).await?;
        let path = format!("{}projects/", organization_path(instance));
        let body = json!({"name": "Aging", "event_retention_days": 30}).to_string();
        let (status, answer) = api.call("POST", &path, &body).await?;
        ensure!(status == 201, "creating a project was answered with {status}");
        let Project { id, api_token } = serde_json::from_slice(&answer)?;
        let instance = Instance { project_id: id, project_api_key: api_token, ..instance.clone() };
        Ok(Self { instance, next: 0, stored: 0, check: Check::new("old events go, and no others") })
    }

    /// Sends old and recent events, and some of the old ones again.
    pub(crate) async fn send(&mut self, weir: &Weir) -> Result<()> {
        let begin = self.next;
        self.next += 2 * EACH;
        let old = (begin..self.next).step_by(2).map(|number| {
            json!({"event": "old", "distinct_id": "aging", "uuid": uuid(number),
                   "timestamp": "2020-02-03T04:05:06Z"})
        });
        let again = (0..self.stored).step_by(AGAIN);
        let recent = (begin + 1..self.next)
            .step_by(2)
            .chain(again)
            .map(|number| json!({"event": "recent", "distinct_id": "aging", "uuid": uuid(number)}));
        let batches: [(bool, Vec<Value>); 2] = [(true, old.collect()), (false, recent.collect())];
        for (historical, batch) in batches {
            let body = json!({"api_key": self.instance.project_api_key, "batch": batch,
                              "historical_migration": historical});
            let mut connection = Connection::open(weir.address).await?;
            let status = connection.send(&capture("/batch/", &body.to_string())).await?.status;
            ensure!(status == 200, "a batch was answered with {status}");
        }
        Ok(())
    }

    /// Waits until what must be there is there and the rest is gone, and compares.
    /// `has_lost_uuids`: entries of a run were damaged. After a fault nothing is awaited.
    pub(crate) async fn compare(&mut self, weir: &Weir, has_lost_uuids: bool) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let faults = self.faults(weir, has_lost_uuids).await?;
            if faults.is_empty() {
                self.stored = self.next;
                return Ok(());
            }
            if Instant::now() > deadline || !self.check.faults.is_empty() {
                faults.into_iter().for_each(|fault| self.check.fail(fault));
                return Ok(());
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    async fn faults(&self, weir: &Weir, has_lost_uuids: bool) -> Result<Vec<String>> {
        let mut api = Api::open(weir.address, &self.instance).await?;
        let mut found: HashMap<Uuid, Vec<String>> = HashMap::new();
        let mut next = Some("?limit=1000".to_owned());
        while let Some(query) = next {
            let page = api.events(&query).await?;
            for event in page.results {
                found.entry(event.uuid).or_default().push(event.event);
            }
            next = page.next;
        }
        let stored: usize = found.values().map(Vec::len).sum();
        let (mut faults, mut old) = (Vec::new(), 0);
        let page: PersonPage = api.of_project("persons/", "?distinct_id=aging").await?;
        let counted = page.results.first().and_then(|person| person.event_count);
        if counted != Some(stored as u64) && (stored > 0 || counted.is_some()) {
            faults.push(format!("{counted:?} of {stored} stored events are counted"));
        }
        for number in 0..self.next {
            let (names, is_old) = (found.remove(&uuid(number)), number.is_multiple_of(2));
            match names.as_deref() {
                None if is_old => {}
                Some([name]) if is_old && name == "old" => old += 1,
                Some([name]) if (!is_old || has_lost_uuids) && name == "recent" => {}
                names => faults.push(format!("event {number} is there as {names:?}")),
            }
        }
        if old > STAY {
            faults.push(format!("{old} old events are still there"));
        }
        faults.extend(found.keys().map(|uuid| format!("{uuid} was never sent")));
        Ok(faults)
    }
}

fn uuid(number: u64) -> Uuid {
    Uuid::from_u64_pair(number.wrapping_mul(0x9E37_79B9_7F4A_7C15), number)
}
