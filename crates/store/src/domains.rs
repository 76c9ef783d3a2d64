//! Domains of organizations.
//!
//! What belongs here: statements about `domain`, its lists, and when each verified domain
//! is checked next. What does not: which names are allowed, and when a domain counts as
//! verified (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `domain` | domain | the record |
//! | `domain_name` | name | the domain that is verified under it, at most one in the instance |
//! | `org_domain` | `[organization, name, domain]` | nothing: the list, in order of names |
//! | `domain_due` | `[time, domain]` | nothing: when a verified domain is checked next |

use std::collections::BTreeSet;

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::domains::SsoEnforcement;
use weir_model::{DomainId, OrganizationId, Timestamp};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::organizations::touch_organization;
use crate::{Error, Result, Store, lists};

/// A domain as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainRow {
    /// Id of the domain.
    pub id: DomainId,
    /// The organization that claims it.
    pub organization: OrganizationId,
    /// A new value after every change, so that a change of an older state is detected.
    pub revision: Uuid,
    /// The domain name, such as `example.com`.
    pub domain: String,
    /// The text that the TXT record must contain.
    pub challenge: String,
    /// When the organization proved that it owns the domain.
    pub verified_at: Option<Timestamp>,
    /// When name servers were last asked.
    pub checked_at: Option<Timestamp>,
    /// What they answered then, as a sentence for people.
    pub last_answer: Option<String>,
    /// Since when the TXT record of a verified domain is missing.
    pub failing_since: Option<Timestamp>,
    /// When a verified domain is checked next.
    pub due_at: Option<Timestamp>,
    /// Whether users become members when they sign in through an identity provider.
    pub jit_provisioning_enabled: bool,
    /// Which way of signing in is enforced.
    pub sso_enforcement: SsoEnforcement,
    /// The entity id of the identity provider.
    pub saml_entity_id: Option<String>,
    /// The URL of the identity provider for sign-ins.
    pub saml_acs_url: Option<String>,
    /// The certificate of the identity provider.
    pub saml_x509_cert: Option<String>,
    /// When the certificate expires.
    pub certificate_expires_at: Option<Timestamp>,
    /// When the domain was claimed.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    uuid: Uuid,
    organization: Uuid,
    revision: Uuid,
    domain: String,
    challenge: String,
    verified_at: Option<i64>,
    checked_at: Option<i64>,
    last_answer: Option<String>,
    failing_since: Option<i64>,
    due_at: Option<i64>,
    jit_provisioning_enabled: bool,
    sso_enforcement: String,
    saml_entity_id: Option<String>,
    saml_acs_url: Option<String>,
    saml_x509_cert: Option<String>,
    certificate_expires_at: Option<i64>,
    created_at: i64,
    updated_at: i64,
}

impl From<&DomainRow> for Stored {
    fn from(row: &DomainRow) -> Self {
        let micros = |time: Option<Timestamp>| time.map(Timestamp::micros);
        Self {
            uuid: row.id.0,
            organization: row.organization.0,
            revision: row.revision,
            domain: row.domain.clone(),
            challenge: row.challenge.clone(),
            verified_at: micros(row.verified_at),
            checked_at: micros(row.checked_at),
            last_answer: row.last_answer.clone(),
            failing_since: micros(row.failing_since),
            due_at: micros(row.due_at),
            jit_provisioning_enabled: row.jit_provisioning_enabled,
            sso_enforcement: row.sso_enforcement.text().to_owned(),
            saml_entity_id: row.saml_entity_id.clone(),
            saml_acs_url: row.saml_acs_url.clone(),
            saml_x509_cert: row.saml_x509_cert.clone(),
            certificate_expires_at: micros(row.certificate_expires_at),
            created_at: row.created_at.micros(),
            updated_at: row.updated_at.micros(),
        }
    }
}

impl TryFrom<Stored> for DomainRow {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let time = |micros: Option<i64>| micros.map(Timestamp::from_micros);
        let sso_enforcement = SsoEnforcement::parse(&stored.sso_enforcement)
            .map_err(|fault| Error::Shape { statement: "domains", detail: fault.detail })?;
        Ok(Self {
            id: DomainId(stored.uuid),
            organization: OrganizationId(stored.organization),
            revision: stored.revision,
            domain: stored.domain,
            challenge: stored.challenge,
            verified_at: time(stored.verified_at),
            checked_at: time(stored.checked_at),
            last_answer: stored.last_answer,
            failing_since: time(stored.failing_since),
            due_at: time(stored.due_at),
            jit_provisioning_enabled: stored.jit_provisioning_enabled,
            sso_enforcement,
            saml_entity_id: stored.saml_entity_id,
            saml_acs_url: stored.saml_acs_url,
            saml_x509_cert: stored.saml_x509_cert,
            certificate_expires_at: time(stored.certificate_expires_at),
            created_at: Timestamp::from_micros(stored.created_at),
            updated_at: Timestamp::from_micros(stored.updated_at),
        })
    }
}

const GET: Statement =
    Statement::read("domains get", "SELECT * FROM type::record('domain', $domain);");

/// A domain of any organization: for background work.
///
/// # Errors
/// Any failure of the store.
pub async fn get_any(store: &Store, domain: DomainId) -> Result<Option<DomainRow>> {
    let mut answer = store.db.run(GET, bind! { domain: domain.0 }).await?;
    answer.row::<Stored>(0)?.map(DomainRow::try_from).transpose()
}

/// A domain of this organization.
///
/// # Errors
/// Any failure of the store.
pub async fn get(
    store: &Store,
    organization: OrganizationId,
    domain: DomainId,
) -> Result<Option<DomainRow>> {
    let found = get_any(store, domain).await?;
    Ok(found.filter(|row| row.organization == organization))
}

const BY_NAME: Statement = Statement::read(
    "domains by name",
    "SELECT * FROM (SELECT VALUE type::record('domain', domain)
                    FROM type::record('domain_name', $name));",
);

/// The verified domain with this name, of any organization: for sign-ins, where the
/// organization is not known yet, and for the operator.
///
/// # Errors
/// Any failure of the store.
pub async fn by_name(store: &Store, name: &str) -> Result<Option<DomainRow>> {
    // No record has an empty id, and asking for one is an error.
    if name.is_empty() {
        return Ok(None);
    }
    let mut answer = store.db.run(BY_NAME, bind! { name: name }).await?;
    answer.row::<Stored>(0)?.map(DomainRow::try_from).transpose()
}

/// Those of these names that an organization has verified.
///
/// # Errors
/// Any failure of the store.
pub async fn verified_of(store: &Store, names: Vec<String>) -> Result<BTreeSet<String>> {
    #[derive(Debug, SurrealValue)]
    struct Holder {
        domain: Uuid,
    }
    let found = lists::records::<Holder>(store, "domain_name", names.clone()).await?;
    let held = |(name, holder): (String, Option<Holder>)| holder.map(|_| name);
    Ok(names.into_iter().zip(found).filter_map(held).collect())
}

const ORDERED: Statement = Statement::read(
    "domains ordered",
    "SELECT VALUE record::id(id)[2] FROM org_domain:[$organization]..=[$organization, ..];",
);

/// The domains of an organization: ids only, in the order of their names.
///
/// # Errors
/// Any failure of the store.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<DomainId>> {
    lists::ids(store, ORDERED, bind! { organization: organization.0 }, DomainId).await
}

/// Domains of an organization, in the order of `domains`; missing ones are skipped.
///
/// # Errors
/// Any failure of the store.
pub async fn rows(
    store: &Store,
    organization: OrganizationId,
    domains: &[DomainId],
) -> Result<Vec<DomainRow>> {
    let ids: Vec<Uuid> = domains.iter().map(|domain| domain.0).collect();
    let found = lists::records::<Stored>(store, "domain", ids).await?.into_iter().flatten();
    found.filter(|row| row.organization == organization.0).map(DomainRow::try_from).collect()
}

const DUE: Statement = Statement::read(
    "domains due",
    "SELECT VALUE record::id(id)[1] FROM domain_due:[0]..=[$now, ..];",
);

/// The verified domains that are due for a check, longest due first.
///
/// # Errors
/// Any failure of the store.
pub async fn due(store: &Store, now: Timestamp) -> Result<Vec<DomainId>> {
    lists::ids(store, DUE, bind! { now: now.micros() }, DomainId).await
}

/// Refuses a claim of a name that another organization has verified, or that this
/// organization already claims.
macro_rules! refuse_claimed {
    () => {
        "LET $holder = (SELECT VALUE domain
                        FROM ONLY type::record('domain_name', $domain.domain));
         LET $home = $domain.organization;
         LET $name = $domain.domain;
         LET $own = (SELECT VALUE record::id(id)[2]
                     FROM org_domain:[$home, $name]..=[$home, $name, ..]);
         IF $holder != NONE OR $own != [] { THROW 'taken' };"
    };
}

// It writes the organization's record for the reason given at `projects::CREATE`, and so
// that two claims of a name by one organization conflict.
const CREATE: Statement = Statement::write(
    "domains create",
    concat!(
        "BEGIN;",
        touch_organization!("$domain.organization", "organization"),
        "LET $present = (SELECT VALUE uuid FROM ONLY type::record('domain', $domain.uuid));
         IF $present = NONE {",
        refuse_claimed!(),
        "UPSERT type::record('domain', $domain.uuid) CONTENT $domain RETURN NONE;
             UPSERT type::record('org_domain',
                                 [$domain.organization, $domain.domain, $domain.uuid])
                 CONTENT {} RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// The result of writing a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The domain is stored.
    Yes,
    /// Its name is verified for another organization, or already claimed by this one.
    /// Nothing was written.
    Taken,
    /// It was changed since it was read. Nothing was written.
    Changed,
    /// The domain or its organization is deleted. Nothing was written.
    Gone,
}

/// Claims a domain that is not verified yet.
///
/// # Errors
/// Any failure of the store.
pub async fn create(store: &Store, row: &DomainRow, activities: &[Entry]) -> Result<Written> {
    let vars = bind! { domain: Stored::from(row) };
    written(activity::change(store, CREATE, vars, activities).await)
}

// A retry after a lost answer finds its own revision and writes nothing. When two
// organizations verify a name concurrently, one conflicts with the other's `domain_name`,
// runs again and finds it taken.
const SAVE: Statement = Statement::write(
    "domains save",
    concat!(
        "BEGIN;
         LET $present = (SELECT * FROM ONLY type::record('domain', $domain.uuid));
         IF $present = NONE OR $present.organization != $domain.organization { THROW 'gone' };
         IF $present.revision != $domain.revision {
             IF $present.revision != $before { THROW 'changed' };
             IF $present.domain != $domain.domain {
                 UPDATE type::record('organization', $domain.organization)
                     SET additions = (additions ?? 0) + 1 RETURN NONE;",
        refuse_claimed!(),
        "IF $present.verified_at != NONE {
                     DELETE type::record('domain_name', $present.domain) RETURN NONE;
                 };
                 DELETE type::record('org_domain',
                     [$present.organization, $present.domain, $present.uuid]) RETURN NONE;
                 UPSERT type::record('org_domain',
                                     [$domain.organization, $domain.domain, $domain.uuid])
                     CONTENT {} RETURN NONE;
             };
             IF $domain.verified_at != NONE {
                 LET $holder = (SELECT VALUE domain
                                FROM ONLY type::record('domain_name', $domain.domain));
                 IF $holder != NONE AND $holder != $domain.uuid { THROW 'taken' };
                 IF $holder = NONE {
                     UPSERT type::record('domain_name', $domain.domain)
                         CONTENT { domain: $domain.uuid } RETURN NONE;
                 };
             };
             IF $present.due_at != NONE {
                 DELETE type::record('domain_due', [$present.due_at, $present.uuid]) RETURN NONE;
             };
             IF $domain.due_at != NONE {
                 UPSERT type::record('domain_due', [$domain.due_at, $domain.uuid])
                     CONTENT {} RETURN NONE;
             };
             UPSERT type::record('domain', $domain.uuid) CONTENT $domain RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Replaces a domain whose revision is still `before`. The row has a new revision.
///
/// # Errors
/// Any failure of the store.
pub async fn save(
    store: &Store,
    before: Uuid,
    row: &DomainRow,
    activities: &[Entry],
) -> Result<Written> {
    let vars = bind! { before: before, domain: Stored::from(row) };
    written(activity::change(store, SAVE, vars, activities).await)
}

fn written<T>(outcome: Result<T>) -> Result<Written> {
    match outcome {
        Ok(_) => Ok(Written::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "taken" => Written::Taken,
            "changed" => Written::Changed,
            _ => Written::Gone,
        }),
        Err(error) => Err(error),
    }
}

/// Removes the domain with the record `$row` and its entries in lists. Used by the
/// transactions that do this.
macro_rules! remove_domain {
    () => {
        "DELETE type::record('domain', $row.uuid) RETURN NONE;
         IF $row.verified_at != NONE {
             DELETE type::record('domain_name', $row.domain) RETURN NONE;
         };
         DELETE type::record('org_domain', [$row.organization, $row.domain, $row.uuid])
             RETURN NONE;
         IF $row.due_at != NONE {
             DELETE type::record('domain_due', [$row.due_at, $row.uuid]) RETURN NONE;
         };"
    };
}

/// Removes all domains of `$organization`. Used by the transaction that deletes an
/// organization.
macro_rules! remove_domains {
    () => {
        concat!(
            "FOR $row IN (SELECT * FROM (SELECT VALUE type::record('domain', record::id(id)[2])
                          FROM org_domain:[$organization]..=[$organization, ..])) {",
            crate::domains::remove_domain!(),
            "};"
        )
    };
}
pub(crate) use {remove_domain, remove_domains};

const DELETE: Statement = Statement::delete(
    "domains delete",
    concat!(
        "BEGIN;
         LET $row = (SELECT * FROM ONLY type::record('domain', $domain));
         IF $row != NONE AND $row.organization = $organization {",
        remove_domain!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Deletes a domain of this organization. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    organization: OrganizationId,
    domain: DomainId,
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! { organization: organization.0, domain: domain.0 };
    activity::change(store, DELETE, vars, activities).await.map(drop)
}
