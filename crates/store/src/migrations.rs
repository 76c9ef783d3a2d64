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
    name: &'static str,
    statement: Statement,
}

/// Lists migrations, with the texts of their files.
macro_rules! migrations {
    ($($version:literal $digits:literal $name:literal;)+) => {
        &[$(Migration {
            version: $version,
            name: $name,
            statement: Statement::write(
                concat!("migration ", $version),
                include_str!(concat!("migrations/", $digits, "_", $name, ".surql")),
            ),
        }),+]
    };
}

/// All migrations, in order: the version, the same in the name of the file, and the rest of
/// that name.
const ALL: &[Migration] = migrations! {
    1 "0001" "first";
    2 "0002" "processing";
    3 "0003" "management";
    4 "0004" "person_processing";
    5 "0005" "accounts";
    6 "0006" "exports";
    7 "0007" "export_models";
    8 "0008" "plugins";
    9 "0009" "preferences";
    10 "0010" "two_factor";
    11 "0011" "key_overlap";
    12 "0012" "traffic";
    13 "0013" "refused";
    14 "0014" "invite_links";
    15 "0015" "export_work";
    16 "0016" "known_browsers";
    17 "0017" "affected_events";
    18 "0018" "roles";
    19 "0019" "names";
    20 "0020" "uuids";
    21 "0021" "segments";
    22 "0022" "event_counts";
    23 "0023" "single_sign_on";
    24 "0024" "scim";
    25 "0025" "passkeys";
    26 "0026" "limits";
    27 "0027" "scim_names";
    28 "0028" "erasures";
    29 "0029" "dashboards";
    30 "0030" "alerts";
    31 "0031" "subscriptions";
};

/// A migration that is not applied yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingMigration {
    /// The schema version after it.
    pub version: i64,
    /// What it is about, as in the name of its file.
    pub name: &'static str,
}

/// The schema of a data directory, compared with that of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSchema {
    /// The newest applied version; 0: none.
    pub version: i64,
    /// What a start of this program applies, in order.
    pub missing: Vec<MissingMigration>,
}

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

/// Compares the applied migrations with those of the program, and changes nothing.
pub(crate) async fn compare(db: &Db) -> Result<StoredSchema, Error> {
    let (version, unapplied) = unapplied(db, ALL).await?;
    let missing = |migration: &Migration| MissingMigration {
        version: migration.version,
        name: migration.name,
    };
    Ok(StoredSchema { version, missing: unapplied.into_iter().map(missing).collect() })
}

async fn run_all(db: &Db, all: &[Migration]) -> Result<(), Error> {
    let (_, unapplied) = unapplied(db, all).await?;
    for migration in unapplied {
        let mut vars = Variables::new();
        vars.insert("version", migration.version);
        vars.insert("checksum", checksum(migration.statement.text));
        db.run(migration.statement, vars).await?;
        tracing::info!(version = migration.version, "applied store migration");
    }
    Ok(())
}

/// The newest applied version, and the migrations that are not applied. Refuses the data of
/// a newer program, and data that another text of a migration was applied to.
async fn unapplied<'a>(db: &Db, all: &'a [Migration]) -> Result<(i64, Vec<&'a Migration>), Error> {
    let applied: Vec<Applied> = match db.run(APPLIED, Variables::new()).await {
        Ok(mut answer) => answer.rows(0)?,
        // The table does not exist before the first migration.
        Err(Error::Shape { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let version = applied.iter().map(|applied| applied.version).max().unwrap_or(0);
    let known = newest(all);
    if version > known {
        return Err(Error::NewerSchema { found: version, known });
    }
    let mut unapplied = Vec::new();
    for migration in all {
        match applied.iter().find(|applied| applied.version == migration.version) {
            Some(found) if found.checksum == checksum(migration.statement.text) => {}
            Some(found) => return Err(Error::ChangedMigration { version: found.version }),
            None => unapplied.push(migration),
        }
    }
    Ok((version, unapplied))
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

    #[test]
    fn the_number_of_a_file_is_that_of_its_migration() {
        assert!(ALL.is_sorted_by(|one, next| one.version < next.version));
        for migration in ALL {
            let path = format!(
                "{}/src/migrations/{:04}_{}.surql",
                env!("CARGO_MANIFEST_DIR"),
                migration.version,
                migration.name
            );
            assert_eq!(std::fs::read_to_string(path).unwrap(), migration.statement.text);
        }
    }

    #[tokio::test]
    async fn what_is_missing_is_named_and_not_applied() {
        let store = Store::open(&Location::Memory, Settings::default()).await.unwrap();
        let version = schema_version();
        let whole = StoredSchema { version, missing: Vec::new() };
        assert_eq!(compare(&store.db).await.unwrap(), whole);
        let before =
            Statement::write("an older schema", "DELETE migration WHERE record::id(id) > 23;");
        store.db.run(before, Variables::new()).await.unwrap();
        for _ in 0..2 {
            let found = compare(&store.db).await.unwrap();
            let missing = |version, name| MissingMigration { version, name };
            assert_eq!(found.version, 23);
            assert_eq!(found.missing[..2], [missing(24, "scim"), missing(25, "passkeys")]);
        }
        let newer = Statement::write(
            "a newer schema",
            "CREATE migration:98 SET checksum = 'a'; CREATE migration:99 SET checksum = 'b';",
        );
        store.db.run(newer, Variables::new()).await.unwrap();
        let refused = compare(&store.db).await.unwrap_err();
        let Error::NewerSchema { found, known } = refused else { panic!("{refused}") };
        assert_eq!((found, known), (99, schema_version()));
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
        let changed =
            ALL.iter().map(|m| Migration { version: m.version, name: m.name, statement: text });
        let error = run_all(&store.db, &changed.collect::<Vec<_>>()).await.unwrap_err();
        assert!(matches!(error, Error::ChangedMigration { version: 1 }), "{error}");
    }
}
