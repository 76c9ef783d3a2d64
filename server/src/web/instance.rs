//! Facts about the process for the staff of the instance.

use std::sync::Arc;

use weir_app::process_facts::{
    BackupFacts, BackupFailure, BackupSchedule, DamageFacts, DiskFacts, LastBackupFacts,
    ProcessFacts, ProcessFactsCollector,
};
use weir_ingest::log::Damage;

use crate::app::App;
use crate::backup::LastBackup;
use crate::backup::schedule::{BackupState, Failure, Schedule};
use crate::config::StoreKind;
use crate::files::size;

/// Collects the facts on every call.
pub(super) fn facts(app: &App) -> ProcessFactsCollector {
    let app = app.clone();
    ProcessFactsCollector(Arc::new(move || {
        let app = app.clone();
        Box::pin(async move { now(&app).await })
    }))
}

async fn now(app: &App) -> ProcessFacts {
    let count = |gauge: i64| u64::try_from(gauge).unwrap_or(0);
    ProcessFacts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        up_seconds: app.started.elapsed().as_secs(),
        public_url: app.config.public_url.origin(),
        certificate_days: certificate_days(app),
        disk: disk(app).await,
        backups: backups(app),
        lag_bytes: app.ingest.lag_bytes(),
        accepts_events: app.ingest.accepts(),
        damage: damage(app.ingest.damage()),
        export_runs: count(app.metrics.export_runs_active.get()),
        plugin_children: count(app.metrics.plugin_children.get()),
    }
}

fn certificate_days(app: &App) -> Option<i64> {
    let expires_at = app.metrics.tls_certificate_expiry_seconds.get();
    let left = expires_at - app.services.clock.now().micros() as f64 / 1e6;
    (expires_at > 0.0).then(|| (left / 86_400.0).floor() as i64)
}

fn backups(app: &App) -> Option<BackupFacts> {
    if app.config.store != StoreKind::RocksDb {
        return None;
    }
    let BackupState { last, failure, is_running } = app.backups.known();
    let schedule = |Schedule { directory, every, keep }| BackupSchedule {
        directory: directory.display().to_string(),
        every_seconds: every.as_secs(),
        keep: keep.and_then(|keep| u64::try_from(keep.get()).ok()),
    };
    let now = app.services.clock.now().micros();
    let last = last.map(|last| {
        let LastBackup { directory, began_at, took_ms, bytes, new_bytes, .. } = last;
        let age = now.saturating_sub(began_at.micros());
        LastBackupFacts {
            directory: directory.display().to_string(),
            began_at: began_at.to_string(),
            age_seconds: u64::try_from(age).unwrap_or(0) / 1_000_000,
            took_ms,
            bytes,
            new_bytes,
        }
    });
    let failure =
        failure.map(|Failure { at, reason }| BackupFailure { at: at.to_string(), reason });
    let schedule = Schedule::of(&app.config).map(schedule);
    Some(BackupFacts { schedule, last, failure, is_running })
}

fn damage(found: Damage) -> Option<DamageFacts> {
    let Damage { copies, bytes, missing } = found;
    (!found.is_none()).then_some(DamageFacts { copies, bytes, missing_bytes: missing })
}

/// Reads file sizes off the threads that answer requests.
async fn disk(app: &App) -> Option<DiskFacts> {
    let directory = match app.config.store {
        StoreKind::RocksDb | StoreKind::Postgres(_) => app.config.data.clone(),
        StoreKind::Memory => return None,
    };
    let free_bytes = app.disk.free_bytes();
    let counting = tokio::task::spawn_blocking(move || DiskFacts {
        all_bytes: size(&directory),
        store_bytes: size(&directory.join("store")) + size(&directory.join("segments")),
        log_bytes: size(&directory.join("log")),
        directory: directory.display().to_string(),
        free_bytes,
    });
    counting.await.ok()
}
