//! What organizations use of their limits, and the mails about it.
//!
//! What belongs here: statements about the tables below. What does not: the limits, which
//! are a field of the organization (`organizations`); members and exports, which are
//! counted in their transactions (`members`, `exports`); deciding (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `organization_usage` | `[organization, month]` | the events that were accepted in the month; kept for two months |
//! | `organization_disk` | organization | bytes of its stored events, and when they were measured |
//! | `limit_warning` | `[organization, month, limit, most, percent]` | a mail about it was stored |
//!
//! One task writes the first two.

use std::time::Duration;

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::limits::{LimitName, Month};
use weir_model::{OrganizationId, Timestamp};

use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::mail::{self, MailRow, write_mails};
use crate::{Result, Store};

/// Months that are kept before the present one.
const KEPT_MONTHS: i64 = 1;
/// Counts that one transaction adds.
const COUNTS_PER_WRITE: usize = 200;

/// Accepted events of an organization in a month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonthUsage {
    /// The organization whose projects accepted the events.
    pub organization: OrganizationId,
    /// The month in which the events were accepted.
    pub month: Month,
    /// The number of events.
    pub events: u64,
}

/// The disk space of the stored events of an organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskUsage {
    /// Bytes of event segments and of blocks that are not sealed.
    pub bytes: u64,
    /// When they were measured.
    pub measured_at: Timestamp,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredMonth {
    organization: OrganizationId,
    month: i64,
    events: i64,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredDisk {
    organization: OrganizationId,
    bytes: i64,
    measured_at: Timestamp,
}

// A retry after a lost answer finds the id of its counts. An organization that was deleted
// meanwhile is skipped.
const ADD: Statement = Statement::write(
    "organization usage add",
    "BEGIN;
     FOR $count IN $counts {
         LET $of = $count.organization;
         LET $home = (SELECT VALUE uuid FROM ONLY type::record('organization', $of));
         LET $there = (SELECT VALUE batch FROM ONLY
             type::record('organization_usage', [$of, $count.month]));
         IF $home != NONE AND $there != $batch {
             UPSERT type::record('organization_usage', [$of, $count.month]) SET
                 organization = $of,
                 month = $count.month,
                 events = (events ?? 0) + $count.events,
                 batch = $batch
                 RETURN NONE;
             LET $old = $count.month - $kept;
             DELETE organization_usage:[$of]..[$of, $old] RETURN NONE;
         };
     };
     COMMIT;",
);

/// Adds to the events of months, and removes months that are kept no longer. Each month of
/// an organization may occur once in `counts`. Returns how many of `counts` were added, from
/// the beginning, with the error that ended the call.
pub async fn add_usage(store: &Store, counts: &[MonthUsage]) -> (usize, Result<()>) {
    let mut added = 0;
    for some in counts.chunks(COUNTS_PER_WRITE) {
        let rows: Vec<StoredMonth> = some
            .iter()
            .map(|count| StoredMonth {
                organization: count.organization,
                month: count.month.0,
                events: i64::try_from(count.events).unwrap_or(i64::MAX),
            })
            .collect();
        let vars = bind! { counts: rows, batch: Uuid::new_v4(), kept: KEPT_MONTHS };
        if let Err(error) = store.db.run(ADD, vars).await {
            return (added, Err(error));
        }
        added += some.len();
    }
    (added, Ok(()))
}

// A table scan: it runs when the service starts.
const USAGE: Statement = Statement::read(
    "organization usage of a month",
    "SELECT organization, month, events FROM organization_usage WHERE month = $month;",
)
.within(Duration::from_secs(60));

/// The accepted events of all organizations in a month. Reads across organizations.
///
/// # Errors
/// Any failure of the store.
pub async fn usage(store: &Store, month: Month) -> Result<Vec<MonthUsage>> {
    let rows: Vec<StoredMonth> = store.db.run(USAGE, bind! { month: month.0 }).await?.rows(0)?;
    let usage = |row: StoredMonth| MonthUsage {
        organization: row.organization,
        month: Month(row.month),
        events: u64::try_from(row.events).unwrap_or(0),
    };
    Ok(rows.into_iter().map(usage).collect())
}

const WRITE_DISK: Statement = Statement::write(
    "organization disk write",
    "BEGIN;
     LET $home = (SELECT VALUE uuid FROM ONLY type::record('organization', $row.organization));
     IF $home != NONE {
         UPSERT type::record('organization_disk', $row.organization) CONTENT $row RETURN NONE;
     };
     COMMIT;",
);

/// Stores the measured disk space of an organization, unless it is deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn write_disk(
    store: &Store,
    organization: OrganizationId,
    usage: DiskUsage,
) -> Result<()> {
    let row = StoredDisk {
        organization,
        bytes: i64::try_from(usage.bytes).unwrap_or(i64::MAX),
        measured_at: usage.measured_at,
    };
    store.db.run(WRITE_DISK, bind! { row: row }).await.map(drop)
}

// A table scan: it runs when the service starts.
const DISK: Statement = Statement::read(
    "organization disk",
    "SELECT organization, bytes, measured_at FROM organization_disk;",
)
.within(Duration::from_secs(60));

/// The measured disk space of all organizations. Reads across organizations.
///
/// # Errors
/// Any failure of the store.
pub async fn disk(store: &Store) -> Result<Vec<(OrganizationId, DiskUsage)>> {
    let rows: Vec<StoredDisk> = store.db.run(DISK, bind! {}).await?.rows(0)?;
    let usage = |row: StoredDisk| {
        let bytes = u64::try_from(row.bytes).unwrap_or(0);
        (row.organization, DiskUsage { bytes, measured_at: row.measured_at })
    };
    Ok(rows.into_iter().map(usage).collect())
}

/// What owners are warned about, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitWarning {
    /// The organization whose owners are warned.
    pub organization: OrganizationId,
    /// The month whose use is counted.
    pub month: Month,
    /// The limit that the use comes close to.
    pub limit: LimitName,
    /// Its number. Another number is another warning.
    pub most: u64,
    /// The share of it, in percent.
    pub percent: u64,
}

// A retry after a lost answer finds its own batch and writes nothing.
const WARN: Statement = Statement::write(
    "limit warning",
    concat!(
        "BEGIN;
         LET $id = type::record('limit_warning', [$organization, $month, $limit, $most, $percent]);
         LET $there = (SELECT VALUE batch FROM ONLY $id);
         IF $there != NONE AND $there != $batch { THROW 'sent' };
         IF $there = NONE {
             UPSERT $id CONTENT { batch: $batch } RETURN NONE;
             LET $old = $month - $kept;
             DELETE limit_warning:[$organization]..[$organization, $old] RETURN NONE;",
        write_mails!(),
        "};
         COMMIT;"
    ),
);

/// Stores mails about a limit, unless mails about the same were stored before. `false`: they
/// were.
///
/// # Errors
/// Any failure of the store.
pub async fn warn(store: &Store, warning: LimitWarning, mails: &[MailRow]) -> Result<bool> {
    let vars = bind! {
        organization: warning.organization.0,
        month: warning.month.0,
        limit: warning.limit.code().to_owned(),
        most: i64::try_from(warning.most).unwrap_or(i64::MAX),
        percent: i64::try_from(warning.percent).unwrap_or(i64::MAX),
        batch: Uuid::new_v4(),
        kept: KEPT_MONTHS,
        mails: mail::stored(mails)?,
    };
    is_done(store.db.run(WARN, vars).await)
}

/// Removes what is stored about the use of `$organization`. Used by the transaction that
/// deletes it.
macro_rules! remove_usage {
    () => {
        "DELETE organization_usage:[$organization]..=[$organization, ..] RETURN NONE;
         DELETE type::record('organization_disk', $organization) RETURN NONE;
         DELETE limit_warning:[$organization]..=[$organization, ..] RETURN NONE;"
    };
}
pub(crate) use remove_usage;

/// Throws `members` when `$organization` has `$members_most` members or more; NONE is no
/// limit. Used by the transactions that add one, after they have written the organization's
/// record, so that concurrent ones are all counted.
macro_rules! refuse_full {
    () => {
        "IF $members_most != NONE {
             LET $members_now = array::len((SELECT VALUE record::id(id)[2]
                 FROM org_member:[$organization]..=[$organization, ..]));
             IF $members_now >= $members_most { THROW 'members' };
         };"
    };
}
pub(crate) use refuse_full;

#[cfg(test)]
mod tests {
    use weir_model::mail::{Mail, MailContent};
    use weir_model::{MailId, UserId};

    use super::*;
    use crate::organizations::{self, NewOrganization, OrganizationRow};
    use crate::projects::ProjectRow;
    use crate::tests::{all_stores, stores};

    const MONTH: Month = Month(24_312);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::EPOCH.plus_seconds(seconds)
    }

    async fn created(store: &Store, number: u128) -> OrganizationId {
        let id = OrganizationId(Uuid::from_u128(number));
        let slug = format!("home-{number}");
        let new = NewOrganization {
            row: OrganizationRow { slug: slug.clone(), ..OrganizationRow::new(id, at(0)) },
            owner: UserId(Uuid::from_u128(900)),
            membership: weir_model::MembershipId(Uuid::from_u128(number)),
            project: ProjectRow::new(
                weir_model::ProjectId(i64::try_from(number).unwrap()),
                id,
                "Shop".to_owned(),
                slug,
                at(0),
            ),
        };
        organizations::create(store, &new, &[]).await.unwrap();
        id
    }

    fn count(organization: OrganizationId, month: Month, events: u64) -> MonthUsage {
        MonthUsage { organization, month, events }
    }

    #[tokio::test]
    async fn events_of_a_month_add_up_and_old_months_go() {
        let (stores, _directory) = all_stores().await;
        for store in stores {
            let home = created(&store, 1).await;
            let gone = OrganizationId(Uuid::from_u128(2));
            for counts in [
                vec![count(home, MONTH, 3), count(gone, MONTH, 9)],
                vec![count(home, MONTH, 4), count(home, MONTH.next(), 1)],
            ] {
                let (added, outcome) = add_usage(&store, &counts).await;
                assert_eq!((added, outcome.is_ok()), (counts.len(), true));
            }
            assert_eq!(usage(&store, MONTH).await.unwrap(), [count(home, MONTH, 7)]);
            let next = MONTH.next();
            assert_eq!(usage(&store, next).await.unwrap(), [count(home, next, 1)]);
            let later = count(home, next.next(), 5);
            add_usage(&store, &[later]).await.1.unwrap();
            assert!(usage(&store, MONTH).await.unwrap().is_empty());
            assert_eq!(usage(&store, next).await.unwrap(), [count(home, next, 1)]);
        }
    }

    #[tokio::test]
    async fn the_disk_space_is_that_of_the_last_measurement() {
        let (stores, _directory) = stores().await;
        for store in stores {
            let home = created(&store, 1).await;
            for (organization, bytes) in
                [(home, 5), (home, 7), (OrganizationId(Uuid::from_u128(2)), 1)]
            {
                let usage = DiskUsage { bytes, measured_at: at(60) };
                write_disk(&store, organization, usage).await.unwrap();
            }
            let usage = DiskUsage { bytes: 7, measured_at: at(60) };
            assert_eq!(disk(&store).await.unwrap(), [(home, usage)]);
        }
    }

    #[tokio::test]
    async fn owners_are_warned_once_in_a_month_and_again_about_another_number() {
        let (stores, _directory) = stores().await;
        for store in stores {
            let mail = MailRow {
                id: MailId(Uuid::from_u128(5)),
                due_at: at(0),
                created_at: at(0),
                tries: 0,
                mail: Mail {
                    to: "ada@mail.example".to_owned(),
                    news: MailContent::Joined {
                        member_name: String::new(),
                        member_email: String::new(),
                        organization: String::new(),
                    },
                },
            };
            let warning = LimitWarning {
                organization: OrganizationId(Uuid::from_u128(1)),
                month: MONTH,
                limit: LimitName::EventsPerMonth,
                most: 10,
                percent: 80,
            };
            assert!(warn(&store, warning, std::slice::from_ref(&mail)).await.unwrap());
            assert!(!warn(&store, warning, &[]).await.unwrap());
            assert_eq!(mail::due(&store, at(1)).await.unwrap(), [mail]);
            for other in [
                LimitWarning { percent: 100, ..warning },
                LimitWarning { most: 20, ..warning },
                LimitWarning { month: MONTH.next(), ..warning },
            ] {
                assert!(warn(&store, other, &[]).await.unwrap(), "{other:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_stored_about_an_organization_is_deleted_with_it() {
        let (stores, _directory) = stores().await;
        for store in stores {
            let home = created(&store, 1).await;
            add_usage(&store, &[count(home, MONTH, 3)]).await.1.unwrap();
            let bytes = DiskUsage { bytes: 5, measured_at: at(60) };
            write_disk(&store, home, bytes).await.unwrap();
            organizations::delete(&store, home, UserId(Uuid::from_u128(900)), at(1), &[])
                .await
                .unwrap();
            assert!(usage(&store, MONTH).await.unwrap().is_empty());
            assert!(disk(&store).await.unwrap().is_empty());
        }
    }
}
