//! The output of `weir log inspect`: tables for people, one JSON object for programs.
//!
//! What belongs here: the two forms. Their fields are stable, because scripts rely on
//! them.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use weir_ingest::log::{Inspection, RecordSeen, SegmentSeen, Waiting};
use weir_model::Timestamp;
use weir_store::events::LIVE_PARTITIONS;

use super::Progress;

/// Head of the table of records.
pub(super) const RECORDS: &str =
    "              offset  project  received                         events     bytes  form  note";

/// A line of the table of records.
pub(super) fn record_line(record: &RecordSeen) -> String {
    let form = record.form.map_or_else(|| "-".to_owned(), |form| form.to_string());
    let (received, note) = match &record.content {
        Ok(content) => {
            let mut notes = Vec::new();
            if content.historical {
                notes.push("historical".to_owned());
            }
            if content.dropped > 0 {
                notes.push(format!("{} dropped", content.dropped));
            }
            (time(Some(content.received_at)), notes.join(", "))
        }
        Err(why) => (time(None), why.clone()),
    };
    let line = format!(
        "{:>20}  {:>7}  {received:<27}  {:>10}  {:>8}  {form:>4}  {note}",
        record.offset.0, record.project.0, record.events, record.bytes
    );
    line.trim_end().to_owned()
}

/// A line about a quarantined record.
fn quarantine_line(record: &RecordSeen) -> String {
    let (received, reason) = match &record.content {
        Ok(content) => (time(Some(content.received_at)), "`weir log replay` can bring it back"),
        Err(why) => (time(None), why.as_str()),
    };
    format!(
        "  offset {}, project {}, {} events from number {}, received {received}: {reason}",
        record.offset.0, record.project.0, record.events, record.first_arrival
    )
}

/// A record as an object.
pub(super) fn record_json(record: &RecordSeen) -> Value {
    let content = record.content.as_ref().ok();
    json!({
        "offset": record.offset.0,
        "project_id": record.project.0,
        "first_arrival": record.first_arrival,
        "events": record.events,
        "bytes": record.bytes,
        "form": record.form,
        "received_at": content.map(|content| content.received_at),
        "historical": content.map(|content| content.historical),
        "dropped": content.map(|content| content.dropped),
        "unreadable": record.content.as_ref().err(),
    })
}

/// The tables.
pub(super) fn text(directory: &Path, found: &Inspection, progress: &Progress) -> String {
    let mut text = String::new();
    // Writing into a text cannot fail.
    let _ = write_text(&mut text, directory, found, progress);
    text
}

fn write_text(
    text: &mut String,
    directory: &Path,
    found: &Inspection,
    progress: &Progress,
) -> std::fmt::Result {
    let place = directory.display();
    match found.bounds() {
        Some((begin, end)) => {
            writeln!(text, "Ingest log {place}, offsets {} to {}", begin.0, end.0)?;
        }
        None => writeln!(text, "Ingest log {place}: empty")?,
    }
    if matches!(progress, Progress::InUse) {
        writeln!(
            text,
            "Another process has the data directory. What it is writing at the moment shows as \
             torn, and what waits is not known; nothing of this disturbs it."
        )?;
    }
    if !found.segments.is_empty() {
        writeln!(
            text,
            "\nsegment                        size               begin                 end  \
             records      events  received"
        )?;
    }
    for segment in &found.segments {
        let (first, last) = segment.received.unzip();
        writeln!(
            text,
            "{}  {:>9}  {:>18}  {:>18}  {:>7}  {:>10}  {} to {}",
            name(segment),
            segment.size,
            segment.begin.0,
            segment.end.0,
            segment.records,
            segment.events,
            time(first),
            time(last),
        )?;
    }
    let unreadable: u64 = found.segments.iter().map(|segment| segment.unreadable).sum();
    if unreadable > 0 {
        writeln!(text, "\n{unreadable} records cannot be read by this version; see --records")?;
    }
    if !found.broken.is_empty() {
        writeln!(text, "\nbroken                 offset       bytes")?;
    }
    for broken in &found.broken {
        let fault = broken.fault.name();
        writeln!(text, "{fault:<8}  {:>19}  {:>10}", broken.offset.0, broken.bytes)?;
    }
    if !found.quarantine.is_empty() {
        writeln!(text, "\nquarantine")?;
    }
    for file in &found.quarantine {
        let (place, at) = (file.path.display(), time(file.at));
        writeln!(text, "{place}  {} bytes, set aside {at}", file.bytes)?;
        if file.records.is_empty() {
            writeln!(text, "  no header of a record can be read")?;
        }
        for record in &file.records {
            writeln!(text, "{}", quarantine_line(record))?;
        }
    }
    match progress {
        Progress::Positions(_) => write_waiting(text, found),
        Progress::Unknown(why) => writeln!(text, "\nWhat waits is not known: {why}"),
        Progress::InUse => Ok(()),
    }
}

fn write_waiting(text: &mut String, found: &Inspection) -> std::fmt::Result {
    writeln!(text, "\npartition             applied to  events waiting  bytes behind")?;
    for waiting in &found.waiting {
        let mut position = waiting.position.offset.to_string();
        if waiting.position.index > 0 {
            let _ = write!(position, "+{}", waiting.position.index);
        }
        writeln!(
            text,
            "{} {:<10}  {position:>18}  {:>14}  {:>12}",
            waiting.partition,
            kind(waiting),
            waiting.events,
            waiting.bytes
        )?;
    }
    writeln!(text, "Waiting: {} events, {} bytes", events(found), bytes(found))
}

/// The object, with `records` if they were requested.
pub(super) fn json(
    directory: &Path,
    found: &Inspection,
    progress: &Progress,
    records: Option<Vec<Value>>,
) -> Value {
    let bounds = found.bounds();
    let known = matches!(progress, Progress::Positions(_));
    let mut object = json!({
        "directory": directory,
        "in_use": matches!(progress, Progress::InUse),
        "begin": bounds.map(|(begin, _)| begin.0),
        "end": bounds.map(|(_, end)| end.0),
        "segments": found.segments.iter().map(segment_json).collect::<Vec<_>>(),
        "broken": found.broken.iter().map(|broken| json!({
            "fault": broken.fault.name(),
            "offset": broken.offset.0,
            "bytes": broken.bytes,
        })).collect::<Vec<_>>(),
        "quarantine": found.quarantine.iter().map(|file| json!({
            "path": file.path,
            "bytes": file.bytes,
            "offset": file.offset.map(|offset| offset.0),
            "set_aside_at": file.at,
            "records": file.records.iter().map(record_json).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "partitions": known.then(|| found.waiting.iter().map(waiting_json).collect::<Vec<_>>()),
        "waiting": known.then(|| json!({"events": events(found), "bytes": bytes(found)})),
    });
    if let (Some(records), Some(object)) = (records, object.as_object_mut()) {
        object.insert("records".to_owned(), Value::Array(records));
    }
    object
}

fn segment_json(segment: &SegmentSeen) -> Value {
    let (first, last) = segment.received.unzip();
    json!({
        "path": segment.path,
        "size": segment.size,
        "begin": segment.begin.0,
        "end": segment.end.0,
        "records": segment.records,
        "events": segment.events,
        "unreadable_records": segment.unreadable,
        "first_received_at": first,
        "last_received_at": last,
    })
}

fn waiting_json(waiting: &Waiting) -> Value {
    json!({
        "partition": waiting.partition,
        "kind": kind(waiting),
        "offset": waiting.position.offset,
        "index": waiting.position.index,
        "waiting_events": waiting.events,
        "bytes_behind": waiting.bytes,
    })
}

fn events(found: &Inspection) -> u64 {
    found.waiting.iter().map(|waiting| waiting.events).sum()
}

/// Bytes that the slowest partition has not applied.
fn bytes(found: &Inspection) -> u64 {
    found.waiting.iter().map(|waiting| waiting.bytes).max().unwrap_or(0)
}

fn kind(waiting: &Waiting) -> &'static str {
    if waiting.partition < LIVE_PARTITIONS { "live" } else { "historical" }
}

fn name(segment: &SegmentSeen) -> String {
    segment.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| at.to_string())
}
