//! The schema: numbered, forward-only migrations, each in one transaction, with a
//! checksum (DUR-15). They run under the lock of the data directory.
//!
//! Never edit a released migration: add the next one.

use sha2::{Digest, Sha256};
use surrealdb::types::{SurrealValue, Variables};

use crate::db::{Db, Statement};
use crate::error::Error;

struct Migration {
    version: i64,
    statement: Statement,
}

/// All migrations, in order.
const ALL: &[Migration] = &[
    Migration {
        version: 1,
        statement: Statement::write("migration 1", include_str!("migrations/0001_first.surql")),
    },
    Migration {
        version: 2,
        statement: Statement::write(
            "migration 2",
            include_str!("migrations/0002_processing.surql"),
        ),
    },
    Migration {
        version: 3,
        statement: Statement::write(
            "migration 3",
            include_str!("migrations/0003_management.surql"),
        ),
    },
    Migration {
        version: 4,
        statement: Statement::write(
            "migration 4",
            include_str!("migrations/0004_person_processing.surql"),
        ),
    },
    Migration {
        version: 5,
        statement: Statement::write("migration 5", include_str!("migrations/0005_accounts.surql")),
    },
    Migration {
        version: 6,
        statement: Statement::write("migration 6", include_str!("migrations/0006_exports.surql")),
    },
    Migration {
        version: 7,
        statement: Statement::write(
            "migration 7",
            include_str!("migrations/0007_export_models.surql"),
        ),
    },
    Migration {
        version: 8,
        statement: Statement::write("migration 8", include_str!("migrations/0008_plugins.surql")),
    },
    Migration {
        version: 9,
        statement: Statement::write(
            "migration 9",
            include_str!("migrations/0009_preferences.surql"),
        ),
    },
    Migration {
        version: 10,
        statement: Statement::write(
            "migration 10",
            include_str!("migrations/0010_two_factor.surql"),
        ),
    },
    Migration {
        version: 11,
        statement: Statement::write(
            "migration 11",
            include_str!("migrations/0011_key_overlap.surql"),
        ),
    },
    Migration {
        version: 12,
        statement: Statement::write("migration 12", include_str!("migrations/0012_traffic.surql")),
    },
    Migration {
        version: 13,
        statement: Statement::write("migration 13", include_str!("migrations/0013_refused.surql")),
    },
    Migration {
        version: 14,
        statement: Statement::write(
            "migration 14",
            include_str!("migrations/0014_invite_links.surql"),
        ),
    },
    Migration {
        version: 15,
        statement: Statement::write(
            "migration 15",
            include_str!("migrations/0015_export_work.surql"),
        ),
    },
    Migration {
        version: 16,
        statement: Statement::write(
            "migration 16",
            include_str!("migrations/0016_known_browsers.surql"),
        ),
    },
    Migration {
        version: 17,
        statement: Statement::write(
            "migration 17",
            include_str!("migrations/0017_affected_events.surql"),
        ),
    },
    Migration {
        version: 18,
        statement: Statement::write("migration 18", include_str!("migrations/0018_roles.surql")),
    },
    Migration {
        version: 19,
        statement: Statement::write("migration 19", include_str!("migrations/0019_names.surql")),
    },
    Migration {
        version: 20,
        statement: Statement::write("migration 20", include_str!("migrations/0020_uuids.surql")),
    },
    Migration {
        version: 21,
        statement: Statement::write("migration 21", include_str!("migrations/0021_segments.surql")),
    },
    Migration {
        version: 22,
        statement: Statement::write(
            "migration 22",
            include_str!("migrations/0022_event_counts.surql"),
        ),
    },
    Migration {
        version: 23,
        statement: Statement::write(
            "migration 23",
            include_str!("migrations/0023_single_sign_on.surql"),
        ),
    },
    Migration {
        version: 24,
        statement: Statement::write("migration 24", include_str!("migrations/0024_scim.surql")),
    },
    Migration {
        version: 25,
        statement: Statement::write("migration 25", include_str!("migrations/0025_passkeys.surql")),
    },
    Migration {
        version: 26,
        statement: Statement::write("migration 26", include_str!("migrations/0026_limits.surql")),
    },
    Migration {
        version: 27,
        statement: Statement::write(
            "migration 27",
            include_str!("migrations/0027_scim_names.surql"),
        ),
    },
    Migration {
        version: 28,
        statement: Statement::write("migration 28", include_str!("migrations/0028_erasures.surql")),
    },
];

const APPLIED: Statement = Statement::read(
    "migrations applied",
    "SELECT record::id(id) AS version, checksum FROM migration ORDER BY version;",
);

#[derive(Debug, SurrealValue)]
struct Applied {
    version: i64,
    checksum: String,
}

/// Applies the missing migrations. Refuses the data of a newer program and does not
/// change it.
pub(crate) async fn run(db: &Db) -> Result<(), Error> {
    run_all(db, ALL).await
}

/// The newest schema that this program knows.
pub fn schema_version() -> i64 {
    newest(ALL)
}

fn newest(all: &[Migration]) -> i64 {
    all.last().map_or(0, |migration| migration.version)
}

async fn run_all(db: &Db, all: &[Migration]) -> Result<(), Error> {
    let applied: Vec<Applied> = match db.run(APPLIED, Variables::new()).await {
        Ok(mut answer) => answer.rows(0)?,
        // The table does not exist before the first migration.
        Err(Error::Shape { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let known = newest(all);
    if let Some(newer) = applied.iter().find(|a| a.version > known) {
        return Err(Error::NewerSchema { found: newer.version, known });
    }
    for migration in all {
        let checksum = checksum(migration.statement.text);
        match applied.iter().find(|a| a.version == migration.version) {
            Some(found) if found.checksum == checksum => {}
            Some(found) => return Err(Error::ChangedMigration { version: found.version }),
            None => {
                let mut vars = Variables::new();
                vars.insert("version", migration.version);
                vars.insert("checksum", checksum);
                db.run(migration.statement, vars).await?;
                tracing::info!(version = migration.version, "applied store migration");
            }
        }
    }
    Ok(())
}

fn checksum(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        // Writing into a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::{Location, Settings, Store};

    #[tokio::test]
    async fn a_second_run_changes_nothing() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        run(&store.db).await.unwrap();
    }

    /// Projects that were created before the setting existed.
    #[tokio::test]
    async fn older_projects_continue_with_persons() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let before = Statement::write(
            "an older project",
            "DELETE migration:4;
             CREATE project:1 SET number = 1;
             CREATE project:2 SET number = 2, person_processing_opt_out = true;",
        );
        store.db.run(before, Variables::new()).await.unwrap();
        run(&store.db).await.unwrap();
        let read = Statement::read(
            "the setting",
            "SELECT VALUE person_processing_opt_out FROM project:1, project:2;",
        );
        let found: Vec<bool> = store.db.run(read, Variables::new()).await.unwrap().rows(0).unwrap();
        assert_eq!(found, [false, true]);
    }

    /// Exports that were created before there were other models.
    #[tokio::test]
    async fn older_exports_continue_with_events() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let before = Statement::write(
            "an older export",
            "DELETE migration:7;
             CREATE batch_export:1 SET name = 'old';
             CREATE batch_export:2 SET model = 'persons';",
        );
        store.db.run(before, Variables::new()).await.unwrap();
        run(&store.db).await.unwrap();
        let read =
            Statement::read("the model", "SELECT VALUE model FROM batch_export:1, batch_export:2;");
        let found: Vec<String> =
            store.db.run(read, Variables::new()).await.unwrap().rows(0).unwrap();
        assert_eq!(found, ["events", "persons"]);
    }

    /// Configs and jobs that were created before plugins could run.
    #[tokio::test]
    async fn older_jobs_are_due_and_older_configs_have_a_token() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let before = Statement::write(
            "an older job",
            "DELETE migration:8;
             REMOVE TABLE plugin_build; REMOVE TABLE plugin_health; REMOVE TABLE plugin_count;
             REMOVE TABLE plugin_log; REMOVE TABLE plugin_log_head;
             REMOVE TABLE plugin_storage; REMOVE TABLE plugin_storage_size;
             REMOVE TABLE plugin_cursor; REMOVE TABLE plugin_task;
             REMOVE TABLE plugin_job_due;
             CREATE plugin_config:7 SET number = 7, project = 1, revision = rand::uuid::v7();
             CREATE plugin_config:8 SET number = 8, project = 1, revision = rand::uuid::v7();
             LET $job = rand::uuid::v7();
             CREATE type::record('plugin_job', [7, $job])
                 SET config = 7, uuid = $job, created_at = 5;",
        );
        store.db.run(before, Variables::new()).await.unwrap();
        run(&store.db).await.unwrap();
        let read = Statement::read(
            "jobs that are due",
            "SELECT VALUE config FROM plugin_job_due:[0]..=[5, ..];
             SELECT VALUE project FROM plugin_job WHERE run_at = 5;
             SELECT VALUE web_token FROM plugin_config:7, plugin_config:8;",
        );
        let mut answer = store.db.run(read, Variables::new()).await.unwrap();
        assert_eq!(answer.rows::<i64>(0).unwrap(), [7]);
        assert_eq!(answer.rows::<i64>(1).unwrap(), [1]);
        let tokens: Vec<String> = answer.rows(2).unwrap();
        assert!(tokens.len() == 2 && tokens[0].len() == 32 && tokens[0] != tokens[1]);
    }

    /// Invites whose id was the secret of their link, and claims that blocked a name.
    #[tokio::test]
    async fn older_invites_have_no_link_and_older_claims_hold_no_name() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let before = Statement::write(
            "an older invite",
            "DELETE migration:14; REMOVE TABLE invite_link;
             CREATE invite:1 SET first_name = '';
             CREATE domain:1 SET domain = 'claimed.example';
             CREATE domain:2 SET domain = 'verified.example', verified_at = 5;
             CREATE type::record('domain_name', 'claimed.example') SET domain = 1;
             CREATE type::record('domain_name', 'verified.example') SET domain = 2;",
        );
        store.db.run(before, Variables::new()).await.unwrap();
        run(&store.db).await.unwrap();
        let read = Statement::read(
            "links and names",
            "SELECT VALUE links FROM invite:1; SELECT VALUE domain FROM domain_name;",
        );
        let mut answer = store.db.run(read, Variables::new()).await.unwrap();
        assert_eq!(answer.rows::<Vec<String>>(0).unwrap(), [Vec::<String>::new()]);
        assert_eq!(answer.rows::<i64>(1).unwrap(), [2]);
    }

    /// A running backfill that had a run cancelled.
    #[tokio::test]
    async fn older_backfills_know_their_cancelled_runs() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let before = Statement::write(
            "an older backfill",
            "DELETE migration:15; REMOVE TABLE removed_export;
             LET $export = rand::uuid::v7(); LET $backfill = rand::uuid::v7();
             CREATE type::record('active_backfill', [1, $backfill]) SET export = $export;
             CREATE type::record('batch_export_backfill', [$export, $backfill])
                 SET status = 'Running';
             FOR $run IN [['Cancelled', $backfill], ['Completed', $backfill], ['Cancelled', NONE]] {
                 CREATE type::record('batch_export_run', [$export, rand::uuid::v7()])
                     SET status = $run[0], backfill = $run[1];
             };",
        );
        store.db.run(before, Variables::new()).await.unwrap();
        run(&store.db).await.unwrap();
        let read = Statement::read(
            "cancelled runs",
            "SELECT VALUE cancelled_runs FROM batch_export_backfill;",
        );
        let mut answer = store.db.run(read, Variables::new()).await.unwrap();
        assert_eq!(answer.rows::<i64>(0).unwrap(), [1]);
    }

    /// A second factor that was confirmed before there were passkeys, and a set-up.
    #[tokio::test]
    async fn older_second_factors_are_on_since_they_were_confirmed() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let before = Statement::write(
            "an older second factor",
            "DELETE migration:25;
             REMOVE TABLE passkey; REMOVE TABLE user_passkey; REMOVE TABLE passkey_handle;
             CREATE second_factor:1 SET begun_at = 4, confirmed_at = 5;
             CREATE second_factor:2 SET begun_at = 6;",
        );
        store.db.run(before, Variables::new()).await.unwrap();
        run(&store.db).await.unwrap();
        let read = Statement::read(
            "since when",
            "SELECT VALUE since FROM second_factor:1, second_factor:2;",
        );
        let mut answer = store.db.run(read, Variables::new()).await.unwrap();
        assert_eq!(answer.rows::<Option<i64>>(0).unwrap(), [Some(5), None]);
    }

    #[tokio::test]
    async fn newer_and_changed_schemas_are_refused() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let error = run_all(&store.db, &[]).await.unwrap_err();
        assert!(matches!(error, Error::NewerSchema { known: 0, .. }), "{error}");
        let text = Statement::write("m", "RETURN 1;");
        let changed = ALL.iter().map(|m| Migration { version: m.version, statement: text });
        let error = run_all(&store.db, &changed.collect::<Vec<_>>()).await.unwrap_err();
        assert!(matches!(error, Error::ChangedMigration { version: 1 }), "{error}");
    }
}
