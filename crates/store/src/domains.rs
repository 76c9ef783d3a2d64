//! Domains of organizations.
//!
//! What belongs here: statements about `domain`, its lists, and when each
//! verified one is to be looked at again. What does not: what a domain may be
//! called, when it counts as verified (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `domain` | domain | the record |
//! | `domain_name` | name | the domain that is verified under it: one in the instance |
//! | `org_domain` | `[organization, name, domain]` | nothing: the list, in order of names |
//! | `domain_due` | `[time, domain]` | nothing: when a verified domain is looked at again |

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
    /// Id.
    pub id: DomainId,
    /// The organization that claims it.
    pub organization: OrganizationId,
    /// Differs after every change, so that a change of an older state is noticed.
    pub revision: Uuid,
    /// Name.
    pub domain: String,
    /// What the TXT record must hold.
    pub challenge: String,
    /// When the organization proved that it is its own.
    pub verified_at: Option<Timestamp>,
    /// When name servers were last asked.
    pub checked_at: Option<Timestamp>,
    /// What they answered then, for people.
    pub last_answer: Option<String>,
    /// Since when the record of a verified domain is not found.
    pub failing_since: Option<Timestamp>,
    /// When a verified domain is to be looked at again.
    pub due_at: Option<Timestamp>,
    /// Whether people become members when they sign in through a provider.
    pub jit_provisioning_enabled: bool,
    /// How people must sign in.
    pub sso_enforcement: SsoEnforcement,
    /// The identity provider's name of itself.
    pub saml_entity_id: Option<String>,
    /// The identity provider's address for sign-ins.
    pub saml_acs_url: Option<String>,
    /// The identity provider's certificate.
    pub saml_x509_cert: Option<String>,
    /// Until when the certificate is valid.
    pub certificate_expires_at: Option<Timestamp>,
    /// When it was claimed.
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

/// A domain of whichever organization: for work of the instance itself.
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

/// The verified domain with this name, whichever organization has it: for signing
/// in, where there is no organization yet, and for the operator.
///
/// # Errors
/// Any failure of the store.
pub async fn by_name(store: &Store, name: &str) -> Result<Option<DomainRow>> {
    // No record has an empty id; asking for one is an error.
    if name.is_empty() {
        return Ok(None);
    }
    let mut answer = store.db.run(BY_NAME, bind! { name: name }).await?;
    answer.row::<Stored>(0)?.map(DomainRow::try_from).transpose()
}

/// Of these names those that some organization has verified.
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

/// The domains of an organization in the order of their names: ids only.
///
/// # Errors
/// Any failure of the store.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<DomainId>> {
    lists::ids(store, ORDERED, bind! { organization: organization.0 }, DomainId).await
}

/// Domains of an organization, in the order of `domains`; what is gone is left
/// out.
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

/// The verified domains that are to be looked at again by now, longest due first.
///
/// # Errors
/// Any failure of the store.
pub async fn due(store: &Store, now: Timestamp) -> Result<Vec<DomainId>> {
    lists::ids(store, DUE, bind! { now: now.micros() }, DomainId).await
}

/// Refuses a claim of a name that another organization has verified, or that this
/// one claims already.
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

// It writes the organization's record for the reason given at
// `projects::CREATE`, and so that two claims of a name by one organization collide.
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

/// What became of the attempt to write a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is stored.
    Yes,
    /// Its name is verified for another organization, or claimed by this one already;
    /// nothing was written.
    Taken,
    /// It was changed meanwhile; nothing was written.
    Changed,
    /// It, or its organization, is gone; nothing was written.
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

// A second run after a lost answer finds its own revision and writes nothing. Of two
// who verify a name at once one collides with the other's `domain_name`, runs again and
// finds it taken.
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

/// Replaces a domain that is still in the state with the revision `before`. The
/// row has a revision of its own.
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

/// Removes the domain with the record `$row`, and its places in lists. Part of
/// the transactions that do so.
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

/// Removes all domains of `$organization`. Part of the transaction that deletes
/// an organization.
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

const DELETE: Statement = Statement::read(
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

/// Deletes a domain of this organization. Deleting what is gone does nothing.
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
