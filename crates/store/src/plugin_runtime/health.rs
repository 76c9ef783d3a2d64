//! The health of each config: counts per hour, and the last fault.

use std::collections::{BTreeMap, HashMap};

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::{PluginConfigId, ProjectId, Timestamp};

use super::hold_config;
use crate::bind::bind;
use crate::db::Statement;
use crate::{Result, Store};

/// Hours for which counts are kept.
const HOURS: i64 = 8 * 24;
/// Longest message, in bytes.
const MESSAGE: usize = 2_000;
/// Longest sample, in bytes.
const SAMPLE: usize = 4_096;

/// Counts and the last fault of a config since the last note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The config that the note is about.
    pub config: PluginConfigId,
    /// The project of the config.
    pub project: ProjectId,
    /// The hour of the events, in hours since 1970.
    pub hour: i64,
    /// Number of events that succeeded.
    pub succeeded: u64,
    /// Number of events that failed.
    pub failed: u64,
    /// Number of events that the plugin dropped on purpose.
    pub dropped: u64,
    /// The last fault, if there was one, and the revision of the config that failed.
    pub fault: Option<(Uuid, Fault)>,
}

/// A failure of a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The reason, as a sentence for people.
    pub message: String,
    /// When it happened.
    pub at: Timestamp,
    /// The event as JSON text, cut when it is long.
    pub sample: Option<String>,
}

/// The health of a config.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// The last fault since the config was changed.
    pub fault: Option<Fault>,
    /// Number of events that succeeded.
    pub succeeded: u64,
    /// Number of events that failed.
    pub failed: u64,
    /// Number of events that the plugin dropped.
    pub dropped: u64,
}

#[derive(Debug, Clone, SurrealValue)]
pub(super) struct StoredFault {
    message: String,
    at: i64,
    sample: Option<String>,
}

impl From<&Fault> for StoredFault {
    fn from(fault: &Fault) -> Self {
        Self {
            message: cut(&fault.message, MESSAGE),
            at: fault.at.micros(),
            sample: fault.sample.as_deref().map(|sample| cut(sample, SAMPLE)),
        }
    }
}

impl From<StoredFault> for Fault {
    fn from(stored: StoredFault) -> Self {
        Self {
            message: stored.message,
            at: Timestamp::from_micros(stored.at),
            sample: stored.sample,
        }
    }
}

fn cut(text: &str, most: usize) -> String {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned()
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredCount {
    hour: i64,
    succeeded: i64,
    failed: i64,
    dropped: i64,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredNote {
    config: i64,
    project: i64,
    newest: i64,
    counts: Vec<StoredCount>,
    revision: Option<Uuid>,
    fault: Option<StoredFault>,
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

// A retry after a lost answer finds the id of its notes. A late note must not replace the
// reason why a config was disabled, but may add the sample of the event. A fault from
// before a change of the config is ignored. The revision shows this and not the time,
// because events from before the change may fail at any time after it.
const NOTE: Statement = Statement::write(
    "plugin health note",
    concat!(
        "BEGIN;
         FOR $note IN $notes {
             LET $config = $note.config;
             LET $row = (SELECT project, enabled, revision
                         FROM ONLY type::record('plugin_config', $config));
             LET $health = (SELECT * FROM ONLY type::record('plugin_health', $config));
             IF $row.project = $note.project AND $health.batch != $batch {
                 IF $health = NONE {",
        hold_config!(),
        "};
                 LET $stays = IF $row.enabled { NONE } ELSE { $health.fault };
                 LET $new = IF $note.revision = $row.revision { $note.fault } ELSE { NONE };
                 LET $fault = $stays ?? $new ?? $health.fault;
                 UPSERT type::record('plugin_health', $config)
                     CONTENT { batch: $batch, fault: $fault } RETURN NONE;
                 IF $stays != NONE AND $stays.sample = NONE AND $note.fault.sample != NONE {
                     UPDATE type::record('plugin_health', $config)
                         SET fault.sample = $note.fault.sample RETURN NONE;
                 };
                 FOR $count IN $note.counts {
                     UPSERT type::record('plugin_count', [$config, $count.hour]) SET
                         succeeded = (succeeded ?? 0) + $count.succeeded,
                         failed = (failed ?? 0) + $count.failed,
                         dropped = (dropped ?? 0) + $count.dropped
                         RETURN NONE;
                 };
                 LET $old = $note.newest - $hours;
                 DELETE plugin_count:[$config]..=[$config, $old] RETURN NONE;
             };
         };
         COMMIT;"
    ),
);

/// Adds counts and replaces faults by newer ones. A disabled config keeps its fault.
/// Notes about configs that are deleted or of another project are skipped.
pub async fn note(store: &Store, notes: &[Note]) -> Result<()> {
    let mut by_config: BTreeMap<PluginConfigId, Vec<&Note>> = BTreeMap::new();
    for note in notes {
        by_config.entry(note.config).or_default().push(note);
    }
    let stored: Vec<StoredNote> = by_config.into_values().filter_map(|of| united(&of)).collect();
    if stored.is_empty() {
        return Ok(());
    }
    let vars = bind! { notes: stored, batch: Uuid::new_v4(), hours: HOURS };
    store.db.run(NOTE, vars).await.map(drop)
}

/// Merges the notes about one config.
fn united(notes: &[&Note]) -> Option<StoredNote> {
    let last = notes.last()?;
    let faults = notes.iter().filter_map(|note| note.fault.as_ref());
    let count = |note: &&Note| StoredCount {
        hour: note.hour,
        succeeded: int(note.succeeded),
        failed: int(note.failed),
        dropped: int(note.dropped),
    };
    let (revision, fault) = faults.max_by_key(|(_, fault)| fault.at).cloned().unzip();
    Some(StoredNote {
        config: last.config.0,
        project: last.project.0,
        newest: notes.iter().map(|note| note.hour).max()?,
        counts: notes.iter().map(count).collect(),
        revision,
        fault: fault.as_ref().map(StoredFault::from),
    })
}

#[derive(Debug, SurrealValue)]
struct Found {
    config: i64,
    fault: Option<StoredFault>,
    counts: Vec<StoredCountOfHour>,
}

#[derive(Debug, SurrealValue)]
struct StoredCountOfHour {
    succeeded: i64,
    failed: i64,
    dropped: i64,
}

const HEALTH: Statement = Statement::read(
    "plugin health",
    "RETURN $configs.map(|$config| {
         config: $config,
         fault: (SELECT VALUE fault FROM ONLY type::record('plugin_health', $config)),
         counts: (SELECT succeeded, failed, dropped
                  FROM plugin_count:[$config, $since]..=[$config, ..]),
     });",
);

/// The health of configs, counted from the hour `since_hour` on. Does not check the
/// project.
pub async fn health(
    store: &Store,
    configs: &[PluginConfigId],
    since_hour: i64,
) -> Result<HashMap<PluginConfigId, Health>> {
    if configs.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<i64> = configs.iter().map(|config| config.0).collect();
    let vars = bind! { configs: ids, since: since_hour };
    let found = store.db.run(HEALTH, vars).await?.rows::<Found>(0)?;
    let sum = |found: &Found, of: fn(&StoredCountOfHour) -> i64| {
        u64::try_from(found.counts.iter().map(of).sum::<i64>()).unwrap_or(0)
    };
    let health = |found: Found| {
        let health = Health {
            succeeded: sum(&found, |count| count.succeeded),
            failed: sum(&found, |count| count.failed),
            dropped: sum(&found, |count| count.dropped),
            fault: found.fault.map(Fault::from),
        };
        (PluginConfigId(found.config), health)
    };
    Ok(found.into_iter().map(health).collect())
}
