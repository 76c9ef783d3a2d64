//! The steps of a sign-in through a provider: beginning a login there, and finishing it (SSO-20,
//! SSO-27 to SSO-29).
//!
//! What belongs here: what waits in between. What does not: what follows from a verified
//! answer (`conclude`), cookies and redirects (the server).
//!
//! A pending login is found by a token of the browser and by the name of the
//! connection. So an answer that another browser brings finds nothing. It works once, and
//! for ten minutes. The answer is checked against the connection that was stored.

use std::time::Duration;

use async_trait::async_trait;
use weir_model::domains::SsoEnforcement;
use weir_model::errors::FieldError;
use weir_model::sso::{Connection, ConnectionTest, ProviderName};
use weir_model::{DomainId, Timestamp};
use weir_store::domains::{self as domain_rows, DomainRow};
use weir_store::ids;
use weir_store::sso::pending::{self as pending_rows, PendingRow};

use super::conclude::AnsweringProvider;
use super::decide::{Decision, Joins, decide};
use crate::ctx::{Actor, Ctx, OrgCtx};
use crate::domains::{acts, has_saml};
use crate::error::{Error, NOT_FOUND};
use crate::identity::throttle::Counted;
use crate::identity::{Identity, NewSession, Peer, emails, flash};
use crate::policy::{self, Action};
use crate::sso::{
    Asking, Begun, Examined, Refusal, SamlIdentityProvider, SamlServiceProvider, UsedAssertions,
};
use crate::{Result, secrets};

/// Seconds for which a pending login is valid.
const SECONDS: i64 = 10 * 60;
/// Time for removing pending logins that have expired, after which no further transaction
/// begins.
const PRUNE_TIME: Duration = Duration::from_secs(30);
/// Longest path to continue with, in bytes. Anyone can begin sign-ins, and each is stored.
const NEXT_MAX: usize = 512;
/// Longest report of a test, in bytes. Longer ones lose what the provider sent.
const REPORT_MAX: usize = 64 << 10;

/// The outcome of a test while the rules of the domain are not in force.
const NOT_VERIFIED: &str = "Every check passed. Verify the domain, so that users can sign in.";

/// What is recorded of an answer that is refused before its signature is verified, before
/// the name of the check.
const UNPROVED: &str = "Test the connection to read why this check failed:";

/// Where a sign-in comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Scheme and host of this instance, as its users know it.
    pub site: &'a str,
    /// The token of the browser for pending logins, from its cookie.
    pub browser: Option<&'a str>,
    /// The client.
    pub peer: &'a Peer,
    /// The id of the request, for logs and audit entries.
    pub request_id: &'a str,
}

/// A login that begins: the browser goes to the provider.
pub struct LoginRequest {
    /// Where the browser goes.
    pub url: String,
    /// The token of the browser, for the cookie. It is not stored.
    pub browser: String,
}

/// The end of a sign-in. In each case the browser continues with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedOn {
    /// A session was opened.
    Opened(NewSession, String),
    /// The provider was linked to the user who began this.
    Linked(String),
    /// The connection was tested, and nothing else happened.
    Tested(String),
    /// The provider was not linked. The code says why, where the user can do something.
    NotLinked(Option<&'static str>, String),
    /// The open session stays as it was. The code says why, where the user can do something.
    NotConfirmed(Option<&'static str>, String),
    /// No user signed in. The code is what the visitor learns.
    Refused(Option<&'static str>, String),
    /// The answer came too early, after many that were refused, and was not read. The login is
    /// still pending, and its answer may come again after this many seconds. The browser
    /// continues as after the refusal.
    TooEarly(u64, Box<Self>),
}

/// What a sign-in is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    SignIn,
    /// To confirm the identity of a user whose session is open.
    Confirm,
    Link,
    Test,
}

impl Purpose {
    const ALL: [Self; 4] = [Self::SignIn, Self::Confirm, Self::Link, Self::Test];

    /// A sign-in within a session confirms it.
    const fn of(ctx: Option<&Ctx>) -> Self {
        if ctx.is_some() { Self::Confirm } else { Self::SignIn }
    }

    const fn asking(self) -> Asking {
        match self {
            Self::Confirm => Asking::Again,
            Self::SignIn | Self::Link | Self::Test => Asking::Silent,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::SignIn => "sign in",
            Self::Confirm => "confirm",
            Self::Link => "link",
            Self::Test => "test",
        }
    }

    fn of_row(row: &PendingRow) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.word() == row.purpose)
    }

    /// The refusal of the answer, for the page that the user comes from.
    fn refused(self, code: Option<&'static str>, next: String) -> SignedOn {
        match self {
            Self::SignIn | Self::Test => SignedOn::Refused(code, next),
            Self::Confirm => SignedOn::NotConfirmed(code, next),
            Self::Link => SignedOn::NotLinked(code, next),
        }
    }
}

/// A pending login that was taken.
pub(super) struct Waiting {
    pub(super) purpose: Purpose,
    pub(super) connection: Connection,
    pub(super) row: PendingRow,
    /// The domain whose administrators learn of a refusal, if its rules are in force.
    pub(super) domain: Option<DomainRow>,
    kept: String,
}

impl Waiting {
    /// The refusal of the answer, for the page that the user comes from.
    pub(super) fn refused(&self, code: Option<&'static str>) -> SignedOn {
        self.purpose.refused(code, self.row.next.clone())
    }

    /// When it was begun.
    pub(super) fn begun(&self) -> Timestamp {
        self.row.expires_at.plus_seconds(-SECONDS)
    }
}

/// What a login is for, and where.
struct Aim {
    purpose: Purpose,
    connection: Connection,
    domain: Option<DomainId>,
}

impl Identity {
    /// Begins a login at a provider of the instance. `email` is the address that the visitor
    /// entered, if there is one: administrators of a domain that requires this provider
    /// learn of a refusal.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such provider; [`Error::Throttled`];
    /// [`Error::Unavailable`] when the provider cannot be used now.
    pub async fn begin_login(
        &self,
        ctx: Option<&Ctx>,
        name: ProviderName,
        email: &str,
        next: &str,
        from: Origin<'_>,
    ) -> Result<LoginRequest> {
        self.count_beginning(from.peer).await?;
        let domain = self.acting_domain(&emails::normalise(email)).await?;
        let domain = match domain {
            Some(row) => {
                let sso = self.core.in_force(&row).await?;
                (sso == Some(SsoEnforcement::Provider(name))).then_some(row)
            }
            None => None,
        };
        let left = self.to_provider(ctx, Purpose::of(ctx), name, domain.as_ref(), next, from);
        left.await
    }

    /// Begins a login at the SAML provider of the domain of an address.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the domain has none; [`Error::Throttled`].
    pub async fn begin_saml_login(
        &self,
        ctx: Option<&Ctx>,
        email: &str,
        next: &str,
        from: Origin<'_>,
    ) -> Result<LoginRequest> {
        self.count_beginning(from.peer).await?;
        let row = self.acting_domain(&emails::normalise(email)).await?.filter(has_saml);
        let row = row.ok_or(Error::NotFound(NOT_FOUND))?;
        self.to_saml(ctx, Purpose::of(ctx), &row, next, from).await
    }

    /// Begins a login at a provider of the instance, to link it to the caller.
    ///
    /// # Errors
    /// As [`Identity::begin_login`]; [`Error::Forbidden`] for keys, [`Error::SignInAgain`].
    pub async fn begin_linking(
        &self,
        ctx: &Ctx,
        name: ProviderName,
        next: &str,
        from: Origin<'_>,
    ) -> Result<LoginRequest> {
        policy::recent_person_only(ctx)?;
        self.to_provider(Some(ctx), Purpose::Link, name, None, next, from).await
    }

    /// Begins a login at the SAML provider of a domain, to test the connection. The domain need
    /// not be verified. A fault of the settings is the result of the test.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator;
    /// [`Error::NotFound`]; [`Error::Invalid`] when the settings are not complete.
    pub async fn begin_saml_test(
        &self,
        org: &OrgCtx,
        domain: DomainId,
        next: &str,
        from: Origin<'_>,
    ) -> Result<LoginRequest> {
        policy::check(org, Action::ManageDomains)?;
        let row = domain_rows::get(&self.core.store, org.organization, domain).await?;
        let row = row.ok_or(Error::NotFound(NOT_FOUND))?;
        let left = if has_saml(&row) {
            self.to_saml(Some(&org.ctx), Purpose::Test, &row, next, from).await
        } else {
            let detail = "Enter all three SAML fields and save them first.";
            Err(FieldError::body("invalid_input", detail).into())
        };
        if let Err(Error::Invalid(fault)) = &left {
            let test = ConnectionTest {
                at: org.ctx.now,
                checks: Vec::new(),
                attributes: Vec::new(),
                outcome: format!("The test could not begin. {}", fault.detail),
                works: false,
            };
            pending_rows::put_test(&self.core.store, row.id, &text(&test)?).await?;
        }
        left
    }

    /// What a link to a provider must contain if it changes something of the
    /// user who follows it: only pages of this session can have it. Otherwise another site
    /// could make a browser link an account that is not the user's.
    pub fn login_link_proof(token: &str) -> String {
        secrets::sha256_hex(&format!("weir pending_login {token}"))
    }

    /// The result of the last test of a domain's connection.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] below administrator.
    pub async fn last_test(
        &self,
        org: &OrgCtx,
        domain: DomainId,
    ) -> Result<Option<ConnectionTest>> {
        policy::check(org, Action::ManageDomains)?;
        let store = &self.core.store;
        if domain_rows::get(store, org.organization, domain).await?.is_none() {
            return Ok(None);
        }
        let report = pending_rows::last_test(store, domain).await?;
        // A report of another program version is not shown.
        Ok(report.and_then(|report| serde_json::from_str(&report).ok()))
    }

    async fn to_provider(
        &self,
        ctx: Option<&Ctx>,
        purpose: Purpose,
        name: ProviderName,
        domain: Option<&DomainRow>,
        next: &str,
        from: Origin<'_>,
    ) -> Result<LoginRequest> {
        let provider = self.core.provider(name).await?.ok_or(Error::NotFound(NOT_FOUND))?;
        let (back, asking) = (callback(from.site, name), purpose.asking());
        let connection = Connection::Provider(name);
        let begun = match self.protocols.begin(&provider, &back, asking).await {
            Ok(begun) => begun,
            Err(Refusal(why)) => {
                tracing::warn!(provider = name.text(), why, "a provider cannot be used");
                self.keep_refusal(connection, &why);
                if let Some(domain) = domain {
                    self.record_unproved(domain, connection, &why).await?;
                }
                return Err(Error::Unavailable("the provider cannot be used now"));
            }
        };
        let aim = Aim { purpose, connection, domain: domain.map(|row| row.id) };
        self.depart(ctx, aim, begun, next, from).await
    }

    async fn to_saml(
        &self,
        ctx: Option<&Ctx>,
        purpose: Purpose,
        row: &DomainRow,
        next: &str,
        from: Origin<'_>,
    ) -> Result<LoginRequest> {
        let site = SamlServiceProvider::at(from.site);
        let (peer, key) = (identity_provider_of(row), self.core.signing_key(row)?);
        let (relay_state, asking) = (row.id.to_string(), purpose.asking());
        let begun = self.protocols.begin_saml(&peer, &site, &relay_state, key.as_ref(), asking);
        let begun = begun.map_err(|Refusal(why)| {
            tracing::warn!(domain = row.domain, why, "a SAML provider cannot be used");
            Error::from(FieldError::body("invalid_input", why))
        })?;
        // The connection says whose administrators learn of a refusal.
        let aim = Aim { purpose, connection: Connection::Saml(row.id), domain: None };
        self.depart(ctx, aim, begun, next, from).await
    }

    async fn depart(
        &self,
        ctx: Option<&Ctx>,
        aim: Aim,
        begun: Begun,
        next: &str,
        from: Origin<'_>,
    ) -> Result<LoginRequest> {
        let browser = match from.browser.filter(|token| secrets::is_token(token)) {
            Some(token) => token.to_owned(),
            None => secrets::token()?.reveal(),
        };
        let key = aim.connection.to_string();
        let session = ctx.and_then(|ctx| match &ctx.actor {
            Actor::Session { session, .. } => Some(session.clone()),
            Actor::Key { .. } => None,
        });
        let row = PendingRow {
            connection: key.clone(),
            purpose: aim.purpose.word().to_owned(),
            user: ctx.map(Ctx::user),
            session,
            domain: aim.domain,
            next: if next.len() <= NEXT_MAX { next.to_owned() } else { "/".to_owned() },
            sealed: flash::seal(&browser, &key, &begun.kept)?,
            expires_at: self.core.clock.now().plus_seconds(SECONDS),
        };
        let hash = secrets::sha256_hex(&browser);
        pending_rows::put(&self.core.store, &hash, &key, &row).await?;
        Ok(LoginRequest { url: begun.url, browser })
    }

    /// Finishes a login at a provider of the instance. `query` is that of the callback.
    ///
    /// # Errors
    /// Failures of the store. Everything that is wrong with the answer is
    /// [`SignedOn::Refused`].
    pub async fn finish_login(
        &self,
        name: ProviderName,
        query: &str,
        from: Origin<'_>,
    ) -> Result<SignedOn> {
        let connection = Connection::Provider(name);
        let (waiting, counted) = match self.take(connection, from).await? {
            Ok(taken) => taken,
            Err(end) => return Ok(end),
        };
        let Some(provider) = self.core.provider(name).await? else {
            return self.stray(connection).await;
        };
        let verified = match self.protocols.finish(&provider, &waiting.kept, query).await {
            Ok(verified) => verified,
            Err(Refusal(why)) => {
                tracing::info!(provider = name.text(), why, "a sign-in was refused");
                self.count_refusal();
                self.keep_refusal(connection, &why);
                if let Some(domain) = &waiting.domain {
                    self.record_unproved(domain, connection, &why).await?;
                }
                return Ok(waiting.refused(None));
            }
        };
        self.conclude(&waiting, Some(&provider), None, verified, from, counted).await
    }

    /// Finishes a login at the SAML provider of a domain.
    ///
    /// # Errors
    /// As [`Identity::finish_login`].
    pub async fn finish_saml_login(
        &self,
        relay_state: &str,
        answer: &str,
        from: Origin<'_>,
    ) -> Result<SignedOn> {
        let Ok(domain) = relay_state.parse::<DomainId>() else {
            tracing::info!("an answer by SAML without a domain as relay state was refused");
            return Ok(no_pending_login());
        };
        let connection = Connection::Saml(domain);
        let (waiting, counted) = match self.take(connection, from).await? {
            Ok(taken) => taken,
            Err(end) => return Ok(end),
        };
        let row = domain_rows::get_any(&self.core.store, domain).await?;
        let Some(row) = row.filter(has_saml) else { return self.stray(connection).await };
        let used = Used { identity: self, domain };
        let (peer, site) = (identity_provider_of(&row), SamlServiceProvider::at(from.site));
        let examined = self.protocols.finish_saml(&peer, &site, &waiting.kept, answer, &used).await;
        if waiting.purpose == Purpose::Test {
            return self.report(&row, examined, waiting.row.next).await;
        }
        let Examined { outcome, is_signed, checks, .. } = examined;
        // The rules may have been suspended since.
        let (outcome, failed) = if acts(&row) {
            (outcome, checks.into_iter().find(|check| check.passed == Some(false)))
        } else {
            (Err(Refusal("The rules of the domain are not in force.".to_owned())), None)
        };
        match outcome {
            Ok(verified) => {
                self.conclude(&waiting, None, Some(&row), verified, from, counted).await
            }
            Err(Refusal(why)) => {
                tracing::info!(domain = row.domain, why, "a sign-in by SAML was refused");
                self.count_refusal();
                match failed {
                    _ if is_signed => {
                        self.record_refusal(&row, waiting.connection, None, &why).await?;
                    }
                    // Until a signature is verified, the reason can quote what a visitor
                    // wrote. It is in the log of the server alone.
                    Some(check) => {
                        let why = format!("{UNPROVED} {}.", check.name);
                        self.record_unproved(&row, waiting.connection, &why).await?;
                    }
                    None => self.record_unproved(&row, waiting.connection, &why).await?,
                }
                Ok(waiting.refused(None))
            }
        }
    }

    /// Counts an answer, and takes the pending login of this connection in this browser: it
    /// is valid once. `Err`: how the sign-in ends otherwise.
    async fn take(
        &self,
        connection: Connection,
        from: Origin<'_>,
    ) -> Result<Result<(Waiting, Counted), SignedOn>> {
        let Some(browser) = from.browser.filter(|token| secrets::is_token(token)) else {
            return self.stray(connection).await.map(Err);
        };
        let (store, now) = (&self.core.store, self.core.clock.now());
        let (key, hash) = (connection.to_string(), secrets::sha256_hex(browser));
        let is_pending = |row: &PendingRow| now < row.expires_at && row.connection == key;
        let row = pending_rows::get(store, &hash, &key).await?.filter(is_pending);
        let purpose = row.as_ref().and_then(Purpose::of_row);
        let Some((row, purpose)) = row.zip(purpose) else {
            return self.stray(connection).await.map(Err);
        };
        // Before it is taken: an answer that comes too early must not use it up.
        let counted = match self.count_answer(from.peer).await {
            Ok(counted) => counted,
            Err(Error::Throttled { wait_seconds }) => {
                tracing::info!(%connection, "an answer came too early");
                let refused = purpose.refused(None, row.next);
                return Ok(Err(SignedOn::TooEarly(wait_seconds, Box::new(refused))));
            }
            Err(other) => return Err(other),
        };
        // A newer login may have replaced the one that was read.
        let row = pending_rows::take(store, &hash, &key).await?.filter(is_pending);
        let purpose = row.as_ref().and_then(Purpose::of_row);
        let kept = row.as_ref().and_then(|row| flash::open(browser, &key, &row.sealed));
        let (Some(row), Some(purpose), Some(kept)) = (row, purpose, kept) else {
            return self.stray(connection).await.map(Err);
        };
        let domain = match row.domain {
            Some(domain) => domain_rows::get_any(store, domain).await?.filter(acts),
            None => None,
        };
        Ok(Ok((Waiting { purpose, connection, row, domain, kept }, counted)))
    }

    /// The end of a sign-in whose answer has no pending login in this browser. It is not
    /// counted for the network, because other sites can make a browser send it.
    async fn stray(&self, connection: Connection) -> Result<SignedOn> {
        tracing::info!(%connection, "an answer without a pending login was refused");
        self.record_stray(connection).await?;
        Ok(no_pending_login())
    }

    /// Stores the report of a test.
    async fn report(&self, row: &DomainRow, examined: Examined, next: String) -> Result<SignedOn> {
        let (outcome, works) = match &examined.outcome {
            Err(Refusal(why)) => (why.clone(), false),
            // Who has an address of a domain is not shown to those who only claim it.
            Ok(_) if !acts(row) => (NOT_VERIFIED.to_owned(), false),
            Ok(verified) => {
                let connection = Connection::Saml(row.id);
                let answering = AnsweringProvider { connection, provider: None, saml: Some(row) };
                let found = self.read_facts(&answering, verified, Some(Purpose::Test)).await?;
                sentence(&decide(&found.facts))
            }
        };
        let mut test = ConnectionTest {
            at: self.core.clock.now(),
            checks: examined.checks,
            attributes: examined.attributes,
            outcome,
            works,
        };
        let mut report = text(&test)?;
        if report.len() > REPORT_MAX {
            test.attributes.clear();
            report = text(&test)?;
        }
        pending_rows::put_test(&self.core.store, row.id, &report).await?;
        Ok(SignedOn::Tested(next))
    }

    /// Removes pending logins that have expired, and stops after half a minute. Returns whether
    /// all of them are removed.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn prune_pending_logins(&self) -> Result<bool> {
        Ok(pending_rows::prune(&self.core.store, self.core.clock.now(), PRUNE_TIME).await?)
    }
}

/// The assertions of one domain, for the check of the protocol.
struct Used<'a> {
    identity: &'a Identity,
    domain: DomainId,
}

#[async_trait]
impl UsedAssertions for Used<'_> {
    async fn use_once(&self, assertion: &str, until: Timestamp) -> Result<bool> {
        let store = &self.identity.core.store;
        let hash = secrets::sha256_hex(assertion);
        let attempt = ids::time_ordered(self.identity.core.clock.now());
        Ok(pending_rows::use_assertion(store, self.domain, &hash, until, attempt).await?)
    }
}

/// The report of a test, as it is stored.
fn text(test: &ConnectionTest) -> Result<String> {
    serde_json::to_string(test).map_err(|error| Error::Internal(error.to_string()))
}

/// The end of a sign-in that this browser did not begin, or began too long ago.
fn no_pending_login() -> SignedOn {
    SignedOn::Refused(None, "/".to_owned())
}

/// Where a provider sends the browser back to.
fn callback(site: &str, name: ProviderName) -> String {
    format!("{site}/complete/{name}/")
}

fn identity_provider_of(row: &DomainRow) -> SamlIdentityProvider {
    let certificates = [&row.saml_x509_cert, &row.saml_x509_cert_next];
    let certificates = certificates.into_iter().flatten().filter(|text| !text.trim().is_empty());
    SamlIdentityProvider {
        domain: row.id,
        entity_id: row.saml_entity_id.clone().unwrap_or_default().trim().to_owned(),
        sign_in_url: row.saml_acs_url.clone().unwrap_or_default().trim().to_owned(),
        certificates: certificates.cloned().collect(),
    }
}

/// What would happen at a sign-in, and whether a user would sign in.
fn sentence(decision: &Decision) -> (String, bool) {
    let text = match decision {
        Decision::Refuse(reason) => return (reason.text().to_owned(), false),
        Decision::Enter { joins: None, .. } => "This user would sign in.".to_owned(),
        Decision::Enter { joins: Some(_), .. } => {
            "This user would sign in and become a member.".to_owned()
        }
        Decision::Create(Some(Joins::Invite)) => {
            "A new user would accept the invite of this address and sign in.".to_owned()
        }
        Decision::Create(Some(Joins::Domain)) => {
            "A new user would become a member and sign in.".to_owned()
        }
        Decision::Create(None) => {
            "A new user would sign in, and could create an organization.".to_owned()
        }
    };
    (text, true)
}
