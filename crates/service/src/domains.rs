//! Domains of organizations: claiming, proving, changing, releasing them (API-37,
//! API-38).
//!
//! What belongs here: which domains can be claimed, when a domain counts as verified,
//! the valid settings of a domain. What does not: name servers (`weir-dns`), the effect
//! of a domain's settings on signing in (`identity`).

mod certificate;
mod checks;
mod impact;
mod lookup;
pub(crate) mod notices;
mod sign_in_methods;
mod signing;
pub(crate) mod trust;
mod warnings;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::domains::{
    self as model, DOMAINS_MAX, Domain, DomainDetails, DomainInput, DomainPatch, DomainWarning,
    SamlPatch, SsoEnforcement,
};
use weir_model::errors::FieldError;
use weir_model::mail::Mail;
use weir_model::pagination::{Page, Paged};
use weir_model::{DomainId, Patch, Timestamp, validate};
use weir_store::domains::{self as rows, Created, DomainRow};
use weir_store::ids;
use weir_store::update::{Change, Row as _, Updated, lock, update_with};

use crate::activity::{self, About, Changes};
use crate::ctx::{Actor, OrgCtx};
use crate::error::{Error, NOT_FOUND};
use crate::policy::{self, Action};
use crate::sso::Protocols;
use crate::unchecked::Unchecked;
use crate::{Core, Result, secrets};

pub use checks::Released;
pub use lookup::{LookupError, Pending, TxtLookup, TxtRecord};
pub use sign_in_methods::SignInMethod;

use trust::Rank;

/// Days for which the record of a verified domain may be missing before its rules for
/// signing in are suspended.
const GRACE_DAYS: i64 = 7;
const DAY_SECONDS: i64 = 24 * 60 * 60;
/// Days before its end from which a certificate expires soon.
pub const CERTIFICATE_SOON_DAYS: i64 = 30;
/// Time for ending the sessions that a new rule refuses, before the caller has the answer.
const END_SESSIONS_TIME: Duration = Duration::from_secs(5);
/// The name of a change that leaves all fields as they are: a caller of a higher level stands
/// for the stored settings (SSO-45).
const CONFIRMED: &str = "settings_confirmed";
/// The message for a domain that another organization has verified.
const VERIFIED_ELSEWHERE: &str = "Another organization on this instance has verified this domain, so it cannot be \
     verified here. The operator of the instance can release it.";

/// The service for domains.
#[derive(Clone)]
pub struct Domains {
    core: Arc<Core>,
    lookup: Arc<dyn TxtLookup>,
    protocols: Arc<dyn Protocols>,
}

/// A domain that the caller may change.
#[derive(Debug)]
pub struct Changeable(DomainRow);

impl Domains {
    pub(crate) fn new(
        core: Arc<Core>,
        lookup: Arc<dyn TxtLookup>,
        protocols: Arc<dyn Protocols>,
    ) -> Self {
        Self { core, lookup, protocols }
    }

    /// The domains of the organization by name, with details that only the page shows.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(&self, org: &OrgCtx, page: Page) -> Result<Paged<DomainDetails>> {
        policy::check(org, Action::ReadOrganization)?;
        let store = &self.core.store;
        let ids = rows::ordered(store, org.organization).await?;
        let count = ids.len() as u64;
        let found = rows::rows(store, org.organization, &page.slice(ids)).await?;
        Ok(Paged { count, results: self.details(found).await? })
    }

    /// One domain.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`].
    pub async fn get(&self, org: &OrgCtx, domain: &str) -> Result<DomainDetails> {
        policy::check(org, Action::ReadOrganization)?;
        let row = self.find(org, domain).await?;
        self.detail(row).await
    }

    /// Refuses a caller who is not allowed to change the domains of the organization.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator;
    /// [`Error::SignInAgain`].
    fn may_manage(&self, org: &OrgCtx) -> Result<()> {
        policy::check(org, Action::ManageDomains)?;
        policy::recent_if_person(&org.ctx)
    }

    /// Claims a domain that no other organization has verified, and that this
    /// organization has not claimed yet.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator;
    /// [`Error::Invalid`] at the first field that is wrong, and when the organization has
    /// the maximum number of domains.
    pub async fn create(
        &self,
        org: &OrgCtx,
        input: impl Into<Unchecked<'_, DomainInput>>,
    ) -> Result<Domain> {
        self.may_manage(org)?;
        let input = input.into().read()?;
        let mut row = DomainRow {
            id: DomainId(ids::time_ordered(org.ctx.now)),
            organization: org.organization,
            revision: ids::time_ordered(org.ctx.now),
            domain: claimable(&input.domain)?,
            challenge: challenge()?,
            verified_at: None,
            checked_at: None,
            last_answer: None,
            failing_since: None,
            due_at: None,
            jit_provisioning_enabled: false,
            sso_enforcement: SsoEnforcement::Off,
            saml_entity_id: None,
            saml_acs_url: None,
            saml_x509_cert: None,
            certificate_expires_at: None,
            saml_x509_cert_next: None,
            next_certificate_expires_at: None,
            certificate_notified_at: None,
            saml_sign_requests: false,
            saml_signing_key: None,
            saml_signing_certificate: None,
            provider_rank: None,
            provider_set_at: None,
            rules_rank: None,
            created_at: org.ctx.now,
            updated_at: org.ctx.now,
        };
        let blank = row.clone();
        fill_in(&mut row, input.saml);
        let rank = Rank::of_caller(&self.core, org).await?;
        trust::stamp(&blank, &mut row, &DomainPatch::default(), rank, org.ctx.now);
        if let Some(key) = self.new_key(&row).await? {
            key.fill_in(&mut row);
        }
        let changes = Changes::none().field("domain", &None, &Some(&row.domain));
        let audit_entry = entry(org, &row, AuditAction::Created, changes);
        match rows::create(&self.core.store, &row, DOMAINS_MAX, &[audit_entry]).await? {
            Created::Yes => Ok(self.detail(row).await?.domain),
            Created::Taken => Err(taken()),
            Created::TooMany => {
                let detail = format!(
                    "An organization may have at most {DOMAINS_MAX} domains. Delete one first."
                );
                Err(FieldError::body("invalid_input", detail).into())
            }
            Created::Gone => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// Proves that there is this domain and that the actor may change it.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator;
    /// [`Error::NotFound`].
    pub async fn changeable(&self, org: &OrgCtx, domain: &str) -> Result<Changeable> {
        self.may_manage(org)?;
        Ok(Changeable(self.find(org, domain).await?))
    }

    /// Changes a domain. Another name is another claim: it gets a new challenge, and
    /// loses the settings that only a verified domain has.
    ///
    /// A change that could lock out all owners (SSO-32) is stored for a key, with the warning
    /// `would_lock_out` in this answer. A user confirms it with the name of the domain.
    ///
    /// # Errors
    /// [`Error::Invalid`] at the first field that is wrong, and for a user with
    /// `would_lock_out` at `confirmed_name`; [`Error::NotFound`] when the domain was deleted
    /// at the same time.
    pub async fn update(
        &self,
        org: &OrgCtx,
        changeable: Changeable,
        patch: DomainPatch,
    ) -> Result<Domain> {
        let now = org.ctx.now;
        let mut after = changeable.0.clone();
        change(&mut after, patch.clone())?;
        let rank = Rank::of_caller(&self.core, org).await?;
        trust::stamp(&changeable.0, &mut after, &patch, rank, now);
        let locks_out = self.check_enforcement(org, &changeable.0, &after, &patch).await?;
        let key = self.new_key(&after).await?;
        let notice = notices::to_owners(&self.core, org.organization, Some(org)).await?;
        let changed = |before: DomainRow| -> Result<Change<DomainRow>> {
            let mut row = before.clone();
            change(&mut row, patch.clone())?;
            trust::stamp(&before, &mut row, &patch, rank, now);
            if let Some(key) = key.clone() {
                key.fill_in(&mut row);
            }
            if row == before {
                return Ok(Change { row, entries: Vec::new(), with: Vec::new() });
            }
            row.updated_at = now;
            row.touch(now);
            let entries = vec![entry(org, &row, AuditAction::Updated, changes(&before, &row))];
            let mails = self.core.mailing.rows(now, notice.of_change(&before, &row));
            Ok(Change { row, entries, with: mails })
        };
        let change =
            |before: DomainRow| std::future::ready(changed(before).map(|change| (change, ())));
        match update_with(&self.core.store, changeable.0.id, (), change).await? {
            Updated::Stored((row, ())) => {
                self.core.mailing.wake();
                if row.sso_enforcement != changeable.0.sso_enforcement {
                    // The rule is stored and refuses the sessions that are left. They end
                    // within the hour.
                    let ended = self.core.end_refused_sessions(0, END_SESSIONS_TIME).await;
                    if let Err(error) = ended {
                        tracing::warn!(%error, "refused sessions were not ended yet");
                    }
                }
                let mut domain = self.detail(row).await?.domain;
                domain.warnings.extend(locks_out);
                Ok(domain)
            }
            Updated::Refused(reason) if reason == rows::TAKEN => Err(taken()),
            Updated::Gone | Updated::Refused(_) => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// Checks for the record that proves the domain. A missing record is not an error.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `already_verified`, or with `verified_elsewhere` when
    /// another organization was first; [`Error::NotFound`] when the domain was deleted
    /// at the same time.
    pub async fn verify(&self, org: &OrgCtx, changeable: Changeable) -> Result<Domain> {
        let Changeable(before) = changeable;
        if before.verified_at.is_some() {
            let detail = "This domain has already been verified.";
            return Err(FieldError::body("already_verified", detail).into());
        }
        if rows::by_name(&self.core.store, &before.domain).await?.is_some() {
            return Err(verified_elsewhere());
        }
        let proved = lookup::prove(&*self.lookup, &before.domain, &before.challenge).await;
        if let Err(why) = &proved {
            tracing::info!(domain = before.domain, %why, "a domain was not verified");
        }
        let now = self.core.clock.now();
        let change = |row: &mut DomainRow| {
            // A concurrent call may have renamed it, or verified it too.
            if row.challenge != before.challenge || row.verified_at.is_some() {
                return Ok(());
            }
            row.checked_at = Some(now);
            row.last_answer = Some(lookup::answer(&proved));
            if proved.is_ok() {
                row.verified_at = Some(now);
                row.updated_at = now;
                row.due_at = Some(checks::next(row.id, now));
            }
            Ok(())
        };
        let entries = |before: &DomainRow, after: &DomainRow| {
            let is_verified = after.verified_at.is_some();
            let changes = Changes::none().field("is_verified", &false, &is_verified);
            let has_changed = before.verified_at.is_some() != is_verified;
            let verified = has_changed.then(|| entry(org, after, AuditAction::Verified, changes));
            verified.into_iter().collect()
        };
        let notice = notices::to_owners(&self.core, org.organization, Some(org)).await?;
        let mails = |before: &DomainRow, after: &DomainRow| match before.verified_at {
            None if after.verified_at.is_some() => notice.of_verification(after, now),
            _ => Vec::new(),
        };
        match self.update_with_mails(before.id, now, change, entries, mails).await? {
            Updated::Stored(row) => Ok(self.detail(row).await?.domain),
            Updated::Refused(reason) if reason == rows::TAKEN => Err(verified_elsewhere()),
            Updated::Gone | Updated::Refused(_) => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// Releases a domain, with its rules for signing in.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn delete(&self, org: &OrgCtx, changeable: Changeable) -> Result<()> {
        let store = &self.core.store;
        let _permit = lock::<DomainRow>(store, &changeable.0.id).await;
        let found = rows::get(store, org.organization, changeable.0.id).await?;
        let row = found.ok_or(Error::NotFound(NOT_FOUND))?;
        let changes = Changes::none().field("domain", &Some(&row.domain), &None);
        let audit_entry = entry(org, &row, AuditAction::Deleted, changes);
        let notice = notices::to_owners(&self.core, org.organization, Some(org)).await?;
        let mails = self.core.mailing.rows(org.ctx.now, notice.of_removal(&row, org.ctx.now));
        rows::delete(store, org.organization, row.id, &mails, &[audit_entry]).await?;
        self.core.mailing.wake();
        Ok(())
    }

    /// Changes a domain, with its audit entries and mails.
    async fn update_with_mails(
        &self,
        id: DomainId,
        now: Timestamp,
        change: impl Fn(&mut DomainRow) -> Result<()>,
        entries: impl Fn(&DomainRow, &DomainRow) -> Vec<Entry>,
        mails: impl Fn(&DomainRow, &DomainRow) -> Vec<Mail>,
    ) -> Result<Updated<DomainRow>> {
        let changed = |before: DomainRow| -> Result<Change<DomainRow>> {
            let mut row = before.clone();
            change(&mut row)?;
            if row == before {
                return Ok(Change { row, entries: Vec::new(), with: Vec::new() });
            }
            let entries = entries(&before, &row);
            let with = self.core.mailing.rows(now, mails(&before, &row));
            row.touch(now);
            Ok(Change { row, entries, with })
        };
        let change =
            |before: DomainRow| std::future::ready(changed(before).map(|change| (change, ())));
        Ok(match update_with(&self.core.store, id, (), change).await? {
            Updated::Stored((row, ())) => {
                self.core.mailing.wake();
                Updated::Stored(row)
            }
            Updated::Gone => Updated::Gone,
            Updated::Refused(reason) => Updated::Refused(reason),
        })
    }

    /// Refuses a way of signing in that is not set up, and one that could lock out all
    /// owners unless the name of the domain confirms it. Where SAML is required, another
    /// provider or a certificate that is accepted no more could lock them out too. A key
    /// confirms nothing: it gets a warning instead.
    async fn check_enforcement(
        &self,
        org: &OrgCtx,
        row: &DomainRow,
        after: &DomainRow,
        patch: &DomainPatch,
    ) -> Result<Option<DomainWarning>> {
        let sso = after.sso_enforcement;
        let is_new = sso != row.sso_enforcement;
        let changes_provider = sso == SsoEnforcement::Saml && trust::provider_differs(row, after);
        if sso == SsoEnforcement::Off || !(is_new || changes_provider) {
            return Ok(None);
        }
        let is_readable = sso != SsoEnforcement::Saml || has_certificate(after);
        if !is_new && !self.core.can_enforce(after, sso).await? {
            // A provider that is not set up is not required.
            return Ok(None);
        }
        if is_new && (!is_readable || !self.core.can_enforce(after, sso).await?) {
            if !SsoEnforcement::KNOWN.contains(&sso) {
                return Err(validate::invalid_choice("sso_enforcement", &sso.text()).into());
            }
            let detail = format!(
                "Signing in through {} is not set up, so no member could sign in.",
                sso.text()
            );
            return Err(FieldError::new("sso_enforcement", "provider_unavailable", detail).into());
        }
        if patch.confirmed_name.as_deref().map(str::trim) == Some(&*after.domain) {
            return Ok(None);
        }
        let breaks = changes_provider && (!is_readable || trust::provider_breaks(row, after));
        // No sign-in of before proves settings that can break it.
        let never = Some(org.ctx.now.plus_seconds(1));
        let since = if breaks { never } else { row.provider_set_at };
        let Some(impact) = self.lock_out(org, after, sso, since).await? else { return Ok(None) };
        match org.ctx.actor {
            Actor::Key { .. } => Ok(Some(warnings::lock_out(org, &impact))),
            Actor::Session { .. } => {
                let detail = format!(
                    "{} Sign in this way first, or confirm with the name of the domain: {}",
                    warnings::NO_OWNER,
                    after.domain
                );
                Err(FieldError::new("confirmed_name", warnings::LOCK_OUT, detail).into())
            }
        }
    }

    async fn detail(&self, row: DomainRow) -> Result<DomainDetails> {
        let shown = self.details(vec![row]).await?.pop();
        shown.ok_or_else(|| Error::Internal("a domain has no details".to_owned()))
    }

    /// Domains of one organization as pages show them.
    async fn details(&self, rows: Vec<DomainRow>) -> Result<Vec<DomainDetails>> {
        let unproved = rows.iter().filter(|row| row.verified_at.is_none());
        let unproved = unproved.map(|row| row.domain.clone()).collect();
        let held = rows::verified_of(&self.core.store, unproved).await?;
        let has_google = self.core.has_google().await?;
        let show = |row: DomainRow| {
            let elsewhere = held.contains(&row.domain);
            details(row, elsewhere, has_google)
        };
        Ok(rows.into_iter().map(show).collect())
    }

    async fn find(&self, org: &OrgCtx, domain: &str) -> Result<DomainRow> {
        let found = match parse_id(domain) {
            Some(id) => rows::get(&self.core.store, org.organization, id).await?,
            None => None,
        };
        found.ok_or(Error::NotFound(NOT_FOUND))
    }
}

/// Whether a domain's rules for signing in are in force.
pub(crate) fn acts(row: &DomainRow) -> bool {
    row.verified_at.is_some() && !is_suspended(row)
}

/// Whether every check failed for longer than `GRACE_DAYS`. Time without checks does
/// not count.
fn is_suspended(row: &DomainRow) -> bool {
    row.failing_since.is_some_and(|since| {
        let end = since.plus_seconds(GRACE_DAYS * DAY_SECONDS);
        row.checked_at.is_some_and(|checked| checked >= end)
    })
}

/// The id in a path. Only its usual written form is accepted.
fn parse_id(text: &str) -> Option<DomainId> {
    let id: DomainId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

/// A name that an organization can own.
fn claimable(name: &str) -> Result<String, FieldError> {
    let name = model::name(name)?;
    let wrong = |detail: &str| FieldError::new("domain", "invalid_input", detail);
    // Also refuses names that no name server can have: an `xn--` label that decodes to
    // nothing.
    if idna::domain_to_ascii_strict(&name).ok().as_deref() != Some(name.as_str()) {
        return Err(wrong(model::WRONG_NAME));
    }
    if psl::domain_str(&name).is_none() {
        return Err(wrong("This is a public suffix: names below it belong to many."));
    }
    Ok(name)
}

/// A new challenge: 43 characters.
fn challenge() -> Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(secrets::random::<32>()?))
}

/// Applies a patch, or returns the fault of its first wrong field.
fn change(row: &mut DomainRow, patch: DomainPatch) -> Result<()> {
    if let Some(name) = patch.domain.required("domain")? {
        let name = claimable(&name)?;
        if name != row.domain {
            row.domain = name;
            row.challenge = challenge()?;
            row.verified_at = None;
            row.checked_at = None;
            row.last_answer = None;
            row.failing_since = None;
            row.due_at = None;
            row.jit_provisioning_enabled = false;
            row.sso_enforcement = SsoEnforcement::Off;
        }
    }
    let is_verified = row.verified_at.is_some();
    if let Some(jit) = patch.jit_provisioning_enabled.required("jit_provisioning_enabled")? {
        refuse_unverified("jit_provisioning_enabled", is_verified)?;
        row.jit_provisioning_enabled = jit;
    }
    if let Some(text) = patch.sso_enforcement.required("sso_enforcement")? {
        refuse_unverified("sso_enforcement", is_verified)?;
        row.sso_enforcement = SsoEnforcement::parse(&text)?;
    }
    fill_in(row, patch.saml);
    Ok(())
}

fn refuse_unverified(attr: &str, is_verified: bool) -> Result<(), FieldError> {
    if is_verified {
        return Ok(());
    }
    let detail = "This attribute cannot be updated until the domain is verified.";
    Err(FieldError::new(attr, "verification_required", detail))
}

/// Sets the SAML fields of a patch. Any text is kept as a certificate.
fn fill_in(row: &mut DomainRow, saml: SamlPatch) {
    let set = |present: &mut Option<String>, patch: Patch<String>| match patch {
        Patch::Keep => {}
        Patch::Clear => *present = None,
        Patch::Set(text) => *present = Some(text),
    };
    set(&mut row.saml_entity_id, saml.entity_id);
    set(&mut row.saml_acs_url, saml.acs_url);
    set(&mut row.saml_x509_cert, saml.x509_cert);
    set(&mut row.saml_x509_cert_next, saml.x509_cert_next);
    row.saml_sign_requests = saml.sign_requests.apply(row.saml_sign_requests, false);
    let end = |text: &Option<String>| {
        let read = text.as_deref().map(certificate::read);
        read.and_then(Result::ok).flatten().map(|facts| facts.expires_at)
    };
    row.certificate_expires_at = end(&row.saml_x509_cert);
    row.next_certificate_expires_at = end(&row.saml_x509_cert_next);
}

fn verified_elsewhere() -> Error {
    FieldError::body(model::VERIFIED_ELSEWHERE, VERIFIED_ELSEWHERE).into()
}

fn taken() -> Error {
    FieldError::new("domain", "unique", "domain with this domain already exists.").into()
}

/// The audit entry about a domain.
fn entry(org: &OrgCtx, row: &DomainRow, action: AuditAction, changes: Changes) -> Entry {
    activity::entry(&org.ctx, row.organization, about(row), action, changes)
}

pub(crate) fn about(row: &DomainRow) -> About<'_> {
    About {
        subject: Subject::Domain,
        id: row.id.to_string(),
        name: Some(&row.domain),
        project: None,
    }
}

fn changes(before: &DomainRow, after: &DomainRow) -> Changes {
    // Of a long text, a hash that distinguishes it from others.
    let print = |text: &Option<String>| text.as_deref().map(activity::hash);
    let changes = Changes::none()
        .field("domain", &before.domain, &after.domain)
        .field("is_verified", &before.verified_at.is_some(), &after.verified_at.is_some())
        .field(
            "jit_provisioning_enabled",
            &before.jit_provisioning_enabled,
            &after.jit_provisioning_enabled,
        )
        .field("sso_enforcement", &before.sso_enforcement, &after.sso_enforcement)
        .field("saml_entity_id", &before.saml_entity_id, &after.saml_entity_id)
        .field("saml_acs_url", &before.saml_acs_url, &after.saml_acs_url)
        .field("saml_x509_cert", &print(&before.saml_x509_cert), &print(&after.saml_x509_cert))
        .field(
            "saml_x509_cert_next",
            &print(&before.saml_x509_cert_next),
            &print(&after.saml_x509_cert_next),
        )
        .field("saml_sign_requests", &before.saml_sign_requests, &after.saml_sign_requests)
        .field(
            "saml_signing_certificate",
            &print(&before.saml_signing_certificate),
            &print(&after.saml_signing_certificate),
        );
    // A caller of a higher rank confirmed what is stored.
    let confirmed = changes.is_empty();
    if confirmed { changes.field(CONFIRMED, &false, &true) } else { changes }
}

/// Whether one of the certificates can be read.
fn has_certificate(row: &DomainRow) -> bool {
    let texts = [&row.saml_x509_cert, &row.saml_x509_cert_next];
    texts.into_iter().flatten().any(|text| matches!(certificate::read(text), Ok(Some(_))))
}

/// Whether all three SAML fields are filled in.
pub(crate) fn has_saml(row: &DomainRow) -> bool {
    [&row.saml_entity_id, &row.saml_acs_url, &row.saml_x509_cert]
        .iter()
        .all(|field| field.as_ref().is_some_and(|text| !text.trim().is_empty()))
}

fn details(row: DomainRow, verified_elsewhere: bool, has_google: bool) -> DomainDetails {
    let certificate = row.saml_x509_cert.as_deref().map(certificate::read);
    let next = row.saml_x509_cert_next.as_deref().map(certificate::read);
    let mut faults = Vec::new();
    if verified_elsewhere {
        faults.push(warnings::of("domain", model::VERIFIED_ELSEWHERE, VERIFIED_ELSEWHERE));
    }
    for (attr, read) in [("saml_x509_cert", &certificate), ("saml_x509_cert_next", &next)] {
        if let Some(Err(why)) = read {
            faults.push(warnings::of(attr, "invalid_certificate", why));
        }
    }
    faults.extend(warnings::by_key(&row, has_google));
    let certificate = certificate.and_then(Result::ok).flatten();
    DomainDetails {
        challenge_name: model::challenge_name(&row.domain),
        checked_at: row.checked_at,
        last_answer: row.last_answer.clone(),
        next_check_at: row.due_at,
        saml_certificate_subject: certificate.map(|facts| facts.subject),
        verification_failing_since: row.failing_since,
        is_suspended: is_suspended(&row),
        saml_certificate_expires_at: row.certificate_expires_at,
        saml_next_certificate_expires_at: row.next_certificate_expires_at,
        saml_signing_certificate: row.saml_signing_certificate.as_deref().map(signing::file),
        domain: Domain {
            has_saml: has_saml(&row),
            id: row.id,
            domain: row.domain,
            is_verified: row.verified_at.is_some(),
            verified_at: row.verified_at,
            verification_challenge: row.challenge,
            jit_provisioning_enabled: row.jit_provisioning_enabled,
            sso_enforcement: row.sso_enforcement,
            saml_entity_id: row.saml_entity_id,
            saml_acs_url: row.saml_acs_url,
            saml_x509_cert: row.saml_x509_cert,
            saml_x509_cert_next: row.saml_x509_cert_next,
            saml_sign_requests: row.saml_sign_requests,
            warnings: faults,
        },
    }
}

#[cfg(test)]
mod tests;
