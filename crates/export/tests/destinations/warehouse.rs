//! What the tests of warehouses use in common: rows, runs, settings, and the prepared
//! behaviour of stand-ins.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;
use weir_egress::{Egress, Rules};
use weir_export::destination::{Altered, Destination, Failure, Job, Writer};
use weir_export::destinations::{Dependencies, DestinationAddresses, open};
use weir_export::persons;
use weir_export::rows::{Batch, Cell, Kind, PersonRecord};
use weir_model::exports::ExportModel;
use weir_model::persons::PersonRef;
use weir_model::{BatchExportId, PersonId, ProjectId, RunId, Timestamp};
use weir_testkit::servers::StubAnswer;

/// 2026-07-01T10:00:00.123456Z
const TIME: i64 = 1_782_900_000_123_456;
/// A key for signing, only for tests.
pub(crate) const KEY: &str = include_str!("../keys/rsa.pem");
/// The same key, encrypted with the passphrase `correct`.
pub(crate) const LOCKED_KEY: &str = include_str!("../keys/des3.pem");

/// A destination that uses these addresses of public services.
pub(crate) fn destination(
    kind: &str,
    config: &Value,
    addresses: DestinationAddresses,
) -> Box<dyn Destination> {
    let rules = Rules { allow: vec!["127.0.0.1/32".parse().unwrap()], own: Vec::new() };
    let dependencies =
        Dependencies { addresses, ..Dependencies::new(Egress::new(rules).unwrap(), None) };
    open(kind, config.as_object().unwrap(), &dependencies).unwrap()
}

/// What a stand-in does once instead of its normal answer.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends this answer and has no other effect.
    Say(StubAnswer),
    /// Executes the call, and closes the connection without an answer.
    DoAndClose,
    /// Fails the job or statement for this reason.
    Fail(&'static str),
}

/// The prepared acts of a stand-in, in order. Each one applies to the next call that
/// contains its text.
#[derive(Default)]
pub(crate) struct Acts(VecDeque<(&'static str, Act)>);

impl Acts {
    pub(crate) fn then(&mut self, part: &'static str, act: Act) {
        self.0.push_back((part, act));
    }

    /// The act for this call, if there is one.
    pub(crate) fn take(&mut self, call: &str) -> Option<Act> {
        let (part, _) = self.0.front()?;
        if !call.contains(part) {
            return None;
        }
        self.0.pop_front().map(|(_, act)| act)
    }
}

/// The job of the run with this number.
pub(crate) fn job(destination: &dyn Destination, run: u128) -> Job {
    Job {
        export: BatchExportId(Uuid::from_u128(1)),
        run: RunId(Uuid::from_u128(run)),
        project: ProjectId(3),
        start: None,
        end: Timestamp::from_micros(TIME),
        by_time: false,
        model: ExportModel::Events,
        columns: Arc::new(destination.columns()),
        cursor: None,
    }
}

/// The id of the event of this number.
pub(crate) fn uuid(n: u64) -> Uuid {
    Uuid::from_u128(u128::from(n))
}

/// The ids of the events of these numbers.
pub(crate) fn ids(numbers: RangeInclusive<u64>) -> Vec<String> {
    numbers.map(|n| uuid(n).to_string()).collect()
}

/// A row with the columns of `job`: the event with this number and these properties.
pub(crate) fn row(job: &Job, n: u64, properties: &str) -> Vec<Cell> {
    let text = |text: &str, kind| match kind {
        Kind::Json => Cell::Json(text.to_owned()),
        _ => Cell::Text(text.to_owned()),
    };
    let cell = |name: &str, kind| match name {
        "uuid" if kind == Kind::Uuid => Cell::Uuid(uuid(n)),
        "uuid" => Cell::Text(uuid(n).to_string()),
        "event" => Cell::Text("paid".to_owned()),
        "distinct_id" => Cell::Text(format!("user-{}", n % 7)),
        "team_id" => Cell::Integer(3),
        "timestamp" => Cell::Timestamp(TIME + i64::try_from(n).unwrap()),
        "properties" => text(properties, kind),
        "person_properties" => text("{\"plan\":\"pro\"}", kind),
        "elements" if kind == Kind::Json => Cell::Json("\"a:nth-child=\\\"1\\\"\"".to_owned()),
        "elements" => Cell::Text("a:nth-child=\"1\"".to_owned()),
        "site_url" => Cell::Text(String::new()),
        name if name.ends_with("_ingested_timestamp") => Cell::Timestamp(TIME),
        _ => Cell::Null,
    };
    job.columns.columns.iter().map(|column| cell(&column.name, column.kind)).collect()
}

/// The events of these numbers.
pub(crate) fn rows(job: &Job, numbers: RangeInclusive<u64>) -> Vec<Vec<Cell>> {
    numbers.map(|n| row(job, n, &format!("{{\"n\":{n}}}"))).collect()
}

/// The job of a run of persons with this number.
pub(crate) fn job_of_persons(destination: &dyn Destination, run: u128) -> Job {
    let columns = Arc::new(persons::columns());
    Job { model: ExportModel::Persons, columns, ..job(destination, run) }
}

/// A row of that run: a distinct id, the person that it leads to, and the version.
pub(crate) fn person(distinct_id: &str, person: u128, version: i64) -> Vec<Cell> {
    let person = PersonRef {
        id: PersonId(Uuid::from_u128(person)),
        distinct_ids: Vec::new(),
        properties: format!("{{\"v\":{version}}}"),
        created_at: Timestamp::from_micros(TIME),
        is_identified: true,
    };
    let record = PersonRecord { distinct_id, person: &person, version, seen_at: TIME };
    persons::columns().row_of_person(ProjectId(3), record)
}

/// Writes rows in batches.
pub(crate) async fn write(writer: &mut dyn Writer, rows: Vec<Vec<Cell>>) -> Result<(), Failure> {
    for rows in rows.chunks(100) {
        let arrivals = Some((1..).take(rows.len()).collect());
        writer.write(Batch { rows: rows.to_vec(), arrivals }).await?;
    }
    Ok(())
}

/// A complete run, or one attempt of it.
pub(crate) async fn run(
    destination: &dyn Destination,
    job: Job,
    rows: Vec<Vec<Cell>>,
) -> Result<Vec<Altered>, Failure> {
    let mut writer = destination.begin(job).await?;
    let mut done = write(writer.as_mut(), rows).await;
    if done.is_ok() {
        done = writer.finish().await;
    }
    if let Err(failure) = done {
        writer.abort().await;
        return Err(failure);
    }
    Ok(writer.altered())
}

/// Text of this many bytes that does not compress. It depends only on the number.
pub(crate) fn noise(number: u64, bytes: usize) -> String {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'0' + u8::try_from(state % 75).unwrap())
    };
    // Skips the character that JSON escapes.
    std::iter::repeat_with(next).filter(|c| *c != '\\').take(bytes).collect()
}
