//! What a server must be like, so that it keeps what it has acknowledged.

use tokio_postgres::SimpleQueryMessage;

/// The oldest version, as the server writes it.
const OLDEST: u32 = 140_000;

/// Settings of every connection, and then the facts about the server.
///
/// Each statement uses the index of the table, so other plans are switched off: without
/// statistics, which a new table does not have, the planner would choose them. Their cost
/// would also make it compile statements. A lock is waited for no longer than a caller
/// waits; the limit does not end a commit that waits for a standby, and neither does the one
/// of statements. Commits wait for a standby at least until it has written them, whatever
/// the server's own setting is.
pub(crate) const SET_UP: &str = "\
    SET client_min_messages = warning; \
    SET enable_seqscan = off; \
    SET enable_bitmapscan = off; \
    SET jit = off; \
    SET max_parallel_workers_per_gather = 0; \
    SET plan_cache_mode = force_generic_plan; \
    SET lock_timeout = '5s'; \
    SET statement_timeout = '60s'; \
    SET idle_in_transaction_session_timeout = '120s'; \
    SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false); \
    SELECT current_setting('server_version_num'), current_setting('fsync'), \
        current_setting('full_page_writes'), current_setting('data_checksums'), \
        current_setting('synchronous_standby_names'), pg_is_in_recovery(), \
        pg_has_role(current_user, 'pg_read_all_stats', 'usage'), \
        (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))";

/// Facts about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    version: u32,
    fsync: bool,
    full_page_writes: bool,
    data_checksums: bool,
    names_standbys: bool,
    pub(crate) is_standby: bool,
    may_see_standbys: bool,
    standbys: u64,
}

impl Facts {
    /// The facts in the answer to [`SET_UP`]: its last row. `None`: another answer.
    pub(crate) fn read(answer: &[SimpleQueryMessage]) -> Option<Self> {
        let row = answer.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        })?;
        let mut columns = Vec::with_capacity(row.len());
        for at in 0..row.len() {
            columns.push(row.try_get(at).ok()??);
        }
        Self::of(&columns)
    }

    fn of(columns: &[&str]) -> Option<Self> {
        let [version, fsync, pages, checksums, names, recovery, may_see, standbys] = columns else {
            return None;
        };
        Some(Self {
            version: version.parse().ok()?,
            fsync: *fsync == "on",
            full_page_writes: *pages == "on",
            data_checksums: *checksums == "on",
            names_standbys: !names.trim().is_empty(),
            is_standby: *recovery != "f",
            may_see_standbys: *may_see == "t",
            standbys: standbys.parse().ok()?,
        })
    }

    /// Why the server could lose what it has acknowledged, also if its standbys are good.
    pub(crate) fn faults_of_server(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.version < OLDEST {
            faults.push("its version is older than 14".to_owned());
        }
        for (is_on, name) in [
            (self.fsync, "fsync"),
            (self.full_page_writes, "full_page_writes"),
            (self.data_checksums, "data_checksums"),
        ] {
            if !is_on {
                faults.push(format!("its {name} is not on"));
            }
        }
        faults
    }

    /// Why the data would be in one place only.
    pub(crate) fn faults_of_standbys(&self) -> Vec<String> {
        const ACCEPT: &str = "(accept_single_database accepts that)";
        if !self.names_standbys {
            return vec![format!("its synchronous_standby_names is empty {ACCEPT}")];
        }
        if !self.may_see_standbys {
            return vec!["its user must be a member of pg_read_all_stats".to_owned()];
        }
        if self.standbys == 0 {
            return vec![format!("no synchronous standby is connected to it {ACCEPT}")];
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [&str; 8] = ["150018", "on", "on", "on", "ANY 1 (a, b)", "f", "t", "2"];

    fn facts(changes: &[(usize, &'static str)]) -> Facts {
        let mut columns = GOOD;
        for (at, value) in changes {
            columns[*at] = *value;
        }
        Facts::of(&columns).unwrap()
    }

    #[test]
    fn each_fault_is_named() {
        let all = |facts: Facts| [facts.faults_of_server(), facts.faults_of_standbys()].concat();
        assert_eq!(all(facts(&[])), [""; 0]);
        assert_eq!(
            all(facts(&[(0, "130004"), (1, "off"), (2, "off"), (3, "off"), (4, " ")])),
            [
                "its version is older than 14",
                "its fsync is not on",
                "its full_page_writes is not on",
                "its data_checksums is not on",
                "its synchronous_standby_names is empty (accept_single_database accepts that)",
            ]
        );
        assert_eq!(
            all(facts(&[(6, "f"), (7, "0")])),
            ["its user must be a member of pg_read_all_stats"]
        );
        assert_eq!(
            all(facts(&[(7, "0")])),
            ["no synchronous standby is connected to it (accept_single_database accepts that)"]
        );
        assert!(facts(&[(5, "t")]).is_standby);
        assert_eq!(Facts::of(&GOOD[1..]), None);
    }
}
