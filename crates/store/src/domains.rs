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
//! | `sso_domain` | domain | nothing: a verified domain with a provider of its own, or that requires one |

use std::collections::BTreeSet;

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue, Variables};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::domains::SsoEnforcement;
use weir_model::{DomainId, OrganizationId, Timestamp};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Failure, Operation, Statement};
use crate::lists::{self, Order};
use crate::mail::{self, MailRow, write_mails};
use crate::organizations::touch_organization;
use crate::transaction::{Keyspace, Transaction};
use crate::update::{Row, update_text};
use crate::{Error, Result, Store, ids};

/// Refuses a claim of a name that another organization has verified, or that this
/// organization already claims.
macro_rules! refuse_claimed {
    () => {
        "LET $holder = (SELECT VALUE domain
                        FROM ONLY type::record('domain_name', $row.domain));
         LET $home = $row.organization;
         LET $name = $row.domain;
         LET $own = (SELECT VALUE record::id(id)[2]
                     FROM org_domain:[$home, $name]..=[$home, $name, ..]);
         IF $holder != NONE OR $own != [] { THROW 'taken' };"
    };
}

/// Keeps the lists of a domain that changes from `$present` to `$row`. When two
/// organizations verify a name concurrently, one conflicts with the other's `domain_name`,
/// runs again and finds it taken.
macro_rules! keep_lists {
    () => {
        concat!(
            "IF $present.domain != $row.domain {",
            crate::scim::remove_scim!(),
            "UPDATE type::record('organization', $row.organization)
                     SET additions = (additions ?? 0) + 1 RETURN NONE;",
            refuse_claimed!(),
            "IF $present.verified_at != NONE {
                     DELETE type::record('domain_name', $present.domain) RETURN NONE;
                 };
                 DELETE type::record('org_domain',
                     [$present.organization, $present.domain, $present.uuid]) RETURN NONE;
                 UPSERT type::record('org_domain', [$row.organization, $row.domain, $row.uuid])
                     CONTENT {} RETURN NONE;
             };
             IF $row.verified_at != NONE {
                 LET $holder = (SELECT VALUE domain
                                FROM ONLY type::record('domain_name', $row.domain));
                 IF $holder != NONE AND $holder != $row.uuid { THROW 'taken' };
                 IF $holder = NONE {
                     UPSERT type::record('domain_name', $row.domain)
                         CONTENT { domain: $row.uuid } RETURN NONE;
                 };
             };
             IF $present.due_at != NONE {
                 DELETE type::record('domain_due', [$present.due_at, $present.uuid]) RETURN NONE;
             };
             IF $row.due_at != NONE {
                 UPSERT type::record('domain_due', [$row.due_at, $row.uuid])
                     CONTENT {} RETURN NONE;
             };
             IF $row.verified_at != NONE AND ($row.sso_enforcement != ''
                 OR ($row.saml_entity_id != NONE AND $row.saml_acs_url != NONE
                     AND $row.saml_x509_cert != NONE)) {
                 UPSERT type::record('sso_domain', $row.uuid) CONTENT {} RETURN NONE;
             } ELSE {
                 DELETE type::record('sso_domain', $row.uuid) RETURN NONE;
             };"
        )
    };
}

/// A domain as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct DomainRow {
    /// Id of the domain.
    #[surreal(rename = "uuid")]
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
    /// When name servers were last queried.
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
    /// A second certificate that is accepted too.
    pub saml_x509_cert_next: Option<String>,
    /// When the second certificate expires.
    pub next_certificate_expires_at: Option<Timestamp>,
    /// When owners were last notified that the last certificate expires soon.
    pub certificate_notified_at: Option<Timestamp>,
    /// Whether requests to the identity provider are signed.
    // Missing in domains that were claimed before this field existed.
    #[surreal(default)]
    pub saml_sign_requests: bool,
    /// The key that signs them, sealed.
    pub saml_signing_key: Option<String>,
    /// The certificate of that key.
    pub saml_signing_certificate: Option<String>,
    /// The rank of the caller who last set the SAML provider; `None`: unknown, the lowest.
    pub provider_rank: Option<i64>,
    /// When the SAML provider was last changed.
    pub provider_set_at: Option<Timestamp>,
    /// The rank of the caller who last set enforcement or just-in-time provisioning.
    pub rules_rank: Option<i64>,
    /// When the domain was claimed.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Row for DomainRow {
    type Id = DomainId;
    /// The mails about the change.
    type With = Vec<MailRow>;
    const TABLE: &'static str = "domain";
    const UPDATE: &'static str = "domains update";
    const TEXT: &'static str = update_text!(concat!(keep_lists!(), write_mails!()));

    fn touch(&mut self, now: Timestamp) {
        self.revision = ids::time_ordered(now);
    }

    fn bind(&self, mails: Vec<MailRow>, vars: &mut Variables) -> Result<()> {
        vars.insert("mails", mail::stored(&mails)?);
        Ok(())
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
    answer.row(0)
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

const BY_NAME: Operation = Operation::read("domains by name");

/// The verified domain with this name. Used by the reads of credentials.
pub(crate) async fn verified(
    tx: &Transaction,
    keyspace: Keyspace,
    name: &str,
) -> Result<Option<DomainRow>, Failure> {
    #[derive(SurrealValue)]
    struct Holder {
        domain: Uuid,
    }
    // No record has an empty id, and asking for one is an error.
    if name.is_empty() {
        return Ok(None);
    }
    let holder = keyspace.key(RecordId::new("domain_name", name))?;
    let Some(Holder { domain }) = tx.get_one(&holder).await? else { return Ok(None) };
    let row = RecordId::new("domain", RecordIdKey::Uuid(domain.into()));
    tx.get_one(&keyspace.key(row)?).await
}

/// The verified domain with this name, of any organization: for sign-ins, where the
/// organization is not known yet, and for the operator.
///
/// # Errors
/// Any failure of the store.
pub async fn by_name(store: &Store, name: &str) -> Result<Option<DomainRow>> {
    let keyspace = store.db.keyspace().await?;
    let name = name.to_owned();
    let work = move |tx: Transaction| {
        let name = name.clone();
        async move { verified(&tx, keyspace, &name).await }
    };
    store.db.transact(BY_NAME, (), work).await
}

const ANY_WITH_PROVIDER: Statement = Statement::read(
    "domains any with provider",
    "SELECT VALUE record::id(id) FROM sso_domain LIMIT 1;",
);

/// Whether a verified domain of the instance has a provider, or requires one.
///
/// # Errors
/// Any failure of the store.
pub async fn any_has_provider(store: &Store) -> Result<bool> {
    Ok(store.db.run(ANY_WITH_PROVIDER, bind! {}).await?.row::<Uuid>(0)?.is_some())
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

const ORDERED: Order = Order { name: "domains ordered", table: "org_domain", part: 2 };

/// The domains of an organization: ids only, in the order of their names.
///
/// # Errors
/// Any failure of the store.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<DomainId>> {
    lists::ordered(store, ORDERED, organization.0, DomainId).await
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
    let found = lists::records::<DomainRow>(store, "domain", ids).await?.into_iter().flatten();
    Ok(found.filter(|row| row.organization == organization).collect())
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

// It writes the organization's record for the reason given at `projects::CREATE`, and so
// that two claims of a name by one organization conflict.
const CREATE: Statement = Statement::write(
    "domains create",
    concat!(
        "BEGIN;",
        touch_organization!("$row.organization", "organization"),
        "LET $present = (SELECT VALUE uuid FROM ONLY type::record('domain', $row.uuid));
         IF $present = NONE {",
        refuse_claimed!(),
        "LET $all = (SELECT VALUE record::id(id)[2] FROM org_domain:[$home]..=[$home, ..]);
             IF array::len($all) >= $most { THROW 'full' };
             UPSERT type::record('domain', $row.uuid) CONTENT $row RETURN NONE;
             UPSERT type::record('org_domain',
                                 [$row.organization, $row.domain, $row.uuid])
                 CONTENT {} RETURN NONE;",
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// The result of claiming a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The domain is stored.
    Yes,
    /// Its name is verified for another organization, or already claimed by this one.
    /// Nothing was written.
    Taken,
    /// The organization has as many domains as allowed. Nothing was written.
    TooMany,
    /// The organization is deleted. Nothing was written.
    Gone,
}

/// The word of a change to a name that another organization has verified, or that this one
/// already claims.
pub const TAKEN: &str = "taken";

/// Claims a domain that is not verified yet. An organization may have `most`.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    row: &DomainRow,
    most: usize,
    activities: &[Entry],
) -> Result<Created> {
    let vars = bind! { row: row.clone(), most: i64::try_from(most).unwrap_or(i64::MAX) };
    match activity::change(store, CREATE, vars, activities).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) if reason == "full" => Ok(Created::TooMany),
        Err(Error::Refused { reason, .. }) if reason == TAKEN => Ok(Created::Taken),
        Err(Error::Refused { .. }) => Ok(Created::Gone),
        Err(error) => Err(error),
    }
}

/// Removes the domain with the record `$row` and its entries in lists. Used by the
/// transactions that do this.
macro_rules! remove_domain {
    () => {
        concat!(
            crate::scim::remove_scim!(),
            "DELETE type::record('domain', $row.uuid) RETURN NONE;
         DELETE type::record('saml_test', $row.uuid) RETURN NONE;
         DELETE type::record('sso_domain', $row.uuid) RETURN NONE;
         IF $row.verified_at != NONE {
             DELETE type::record('domain_name', $row.domain) RETURN NONE;
         };
         DELETE type::record('org_domain', [$row.organization, $row.domain, $row.uuid])
             RETURN NONE;
         IF $row.due_at != NONE {
             DELETE type::record('domain_due', [$row.due_at, $row.uuid]) RETURN NONE;
         };"
        )
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
        write_mails!(),
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
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! {
        organization: organization.0,
        domain: domain.0,
        mails: mail::stored(mails)?,
    };
    activity::change(store, DELETE, vars, activities).await.map(drop)
}
