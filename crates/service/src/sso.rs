//! Single sign-on: the providers of the instance, and what speaks their protocols.
//!
//! What belongs here: which providers there are, and which rule of a domain is in force.
//! What does not: who may sign in (`identity`), and the protocols themselves, which the
//! server passes as [`Protocols`].

use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::domains::SsoEnforcement;
use weir_model::errors::FieldError;
use weir_model::mail::{MailContent, SignInChange};
use weir_model::sso::{Connection, PROVIDER_TEXT_MAX, PROVIDERS_MAX, ProviderName, SamlCheck};
use weir_model::{DomainId, OrganizationId, Timestamp, validate};
use weir_store::domains::DomainRow;
use weir_store::mail::MailRow;
use weir_store::organizations::{self, Belonging};
use weir_store::sealing::SealedField;
use weir_store::sso::providers::{self as rows, ProviderRow};
use weir_store::users::{self, UserRow};
use zeroize::Zeroizing;

use crate::activity::{self, About, Changes};
use crate::ctx::Ctx;
use crate::domains::{acts, has_saml};
use crate::error::Error;
use crate::instance::Instance;
use crate::sealing::SealedLocation;
use crate::{Core, Result, mail, policy};

/// The page with the providers.
const PAGE: &str = "/instance#providers";
/// Most users that are notified of a change.
const NOTIFIED_MAX: usize = 50;

/// A provider that users can sign in through. It holds a secret, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Provider {
    /// The name in settings, URLs and `sso_enforcement`.
    pub name: ProviderName,
    /// The name that people read.
    pub label: String,
    /// The issuer; for GitHub the address of its server. Empty: that of the name.
    pub issuer: String,
    /// The client id that the provider gave to this instance.
    pub client_id: String,
    /// The secret that the provider gave with the client id.
    pub client_secret: Zeroizing<String>,
}

/// A provider as pages show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFacts {
    /// The name in settings, URLs and `sso_enforcement`.
    pub name: ProviderName,
    /// The name that people read.
    pub label: String,
    /// The issuer; empty: that of the name.
    pub issuer: String,
    /// The client id that the provider gave to this instance.
    pub client_id: String,
    /// Whether it is in the settings of the server, so that pages cannot change it.
    pub is_fixed: bool,
    /// When a page changed it last.
    pub updated_at: Option<Timestamp>,
}

/// What a person enters about a provider.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderInput {
    /// Its name, not yet validated.
    pub name: String,
    /// The name that people read; empty: that of the name.
    pub label: String,
    /// The issuer; empty: that of the name.
    pub issuer: String,
    /// The client id that the provider gave to this instance.
    pub client_id: String,
    /// The client secret; empty: it stays, if the issuer and the client id stay.
    pub client_secret: Zeroizing<String>,
}

/// A sign-in that was begun at a provider.
pub struct Begun {
    /// Where the browser goes.
    pub url: String,
    /// What the protocol keeps until the answer. It contains secrets.
    pub kept: Zeroizing<String>,
}

/// What a provider says about a user, after every check of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The issuer or entity id.
    pub issuer: String,
    /// What the provider calls the user, and will never call another one.
    pub subject: String,
    /// The address.
    pub email: Option<String>,
    /// Whether the provider confirms the address.
    pub email_verified: bool,
    /// The name to show.
    pub name: Option<String>,
    /// When the user signed in at the provider, if it says so.
    pub signed_in_at: Option<Timestamp>,
}

/// How a provider treats a user who has a session there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// It may sign the user in without a question.
    Silent,
    /// The user must sign in there once more, if the protocol has such a request.
    Again,
}

/// Why a protocol refuses, in words for administrators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

/// The SAML provider of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamlIdentityProvider {
    /// The domain whose users it signs in.
    pub domain: DomainId,
    /// The entity id of the identity provider.
    pub entity_id: String,
    /// Where it takes requests.
    pub sign_in_url: String,
    /// Its certificates: one, or two during a change.
    pub certificates: Vec<String>,
}

/// This instance as a SAML service provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamlServiceProvider {
    /// The entity id that the identity provider is given.
    pub entity_id: String,
    /// Where answers are taken.
    pub acs_url: String,
}

impl SamlServiceProvider {
    /// The instance at this origin, such as `https://weir.example.org`.
    pub fn at(origin: &str) -> Self {
        Self {
            entity_id: format!("{origin}/api/saml/metadata/"),
            acs_url: format!("{origin}/complete/saml/"),
        }
    }
}

/// A key that signs requests. It is a secret, so it has no `Debug`.
pub struct SamlKey {
    /// The private key as text.
    pub key: Zeroizing<String>,
    /// Its certificate, as base64.
    pub certificate: String,
}

/// The examination of a SAML answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The user, or why the answer is refused.
    pub outcome: Result<Verified, Refusal>,
    /// Whether a signature of the identity provider was verified. Until then, anyone may
    /// have written the answer.
    pub is_signed: bool,
    /// The checks, in their order.
    pub checks: Vec<SamlCheck>,
    /// What the provider sent. Empty if the answer is refused.
    pub attributes: Vec<(String, Vec<String>)>,
}

/// Remembers which assertions were used.
#[async_trait]
pub trait UsedAssertions: Send + Sync {
    /// Records the use of an assertion until it is not valid any more. `false`: it was
    /// used before.
    ///
    /// # Errors
    /// Failures of the store: the assertion must not be accepted.
    async fn use_once(&self, assertion: &str, until: Timestamp) -> Result<bool>;
}

/// What speaks the protocols. It decides nothing about users.
#[async_trait]
pub trait Protocols: Send + Sync {
    /// Checks the settings of a provider, without a request.
    ///
    /// # Errors
    /// The fault at the first field that is wrong.
    fn check(&self, provider: &Provider) -> Result<(), FieldError>;

    /// Begins a sign-in. The provider sends the browser back to `redirect_uri`.
    ///
    /// # Errors
    /// [`Refusal`] when the provider cannot be used now.
    async fn begin(
        &self,
        provider: &Provider,
        redirect_uri: &str,
        asking: Asking,
    ) -> Result<Begun, Refusal>;

    /// Finishes a sign-in. `kept` is from [`Begun`], `query` that of the callback.
    ///
    /// # Errors
    /// [`Refusal`] of the first check that failed.
    async fn finish(
        &self,
        provider: &Provider,
        kept: &str,
        query: &str,
    ) -> Result<Verified, Refusal>;

    /// The metadata of this instance as a service provider, as XML. With the certificate of
    /// a signing key, it says that requests are signed.
    fn saml_metadata(&self, site: &SamlServiceProvider, certificate: Option<&str>) -> String;

    /// A new key that signs requests. It takes a while.
    ///
    /// # Errors
    /// [`Refusal`] when the system cannot make one.
    fn new_saml_key(&self) -> Result<SamlKey, Refusal>;

    /// Begins a sign-in by SAML. The answer repeats `relay_state`. The request is signed
    /// if there is a key.
    ///
    /// # Errors
    /// [`Refusal`] when the settings of the domain cannot be used.
    fn begin_saml(
        &self,
        peer: &SamlIdentityProvider,
        site: &SamlServiceProvider,
        relay_state: &str,
        key: Option<&SamlKey>,
        asking: Asking,
    ) -> Result<Begun, Refusal>;

    /// Examines a SAML answer: `answer` is the form field `SAMLResponse`.
    async fn finish_saml(
        &self,
        peer: &SamlIdentityProvider,
        site: &SamlServiceProvider,
        kept: &str,
        answer: &str,
        used: &dyn UsedAssertions,
    ) -> Examined;
}

/// Whether a provider is Google itself, and not another issuer with this name. Google says to
/// which organization an account belongs.
pub(crate) fn is_google(name: ProviderName, issuer: &str) -> bool {
    name == ProviderName::GOOGLE && issuer.is_empty()
}

/// A provider in the settings is fixed. The others are stored.
enum Found {
    Fixed(Provider),
    Stored(ProviderRow),
}

impl Core {
    async fn find(&self, name: ProviderName) -> Result<Option<Found>> {
        if let Some(fixed) = self.providers.iter().find(|provider| provider.name == name) {
            return Ok(Some(Found::Fixed(fixed.clone())));
        }
        Ok(rows::get(&self.store, name.text()).await?.map(Found::Stored))
    }

    /// The provider with this name.
    pub(crate) async fn provider(&self, name: ProviderName) -> Result<Option<Provider>> {
        match self.find(name).await? {
            Some(Found::Fixed(provider)) => Ok(Some(provider)),
            Some(Found::Stored(row)) => self.opened(name, row).map(Some),
            None => Ok(None),
        }
    }

    /// Whether users can sign in through Google ([`is_google`]).
    pub(crate) async fn has_google(&self) -> Result<bool> {
        Ok(match self.find(ProviderName::GOOGLE).await? {
            Some(Found::Fixed(Provider { name, issuer, .. })) => is_google(name, &issuer),
            Some(Found::Stored(row)) => is_google(ProviderName::GOOGLE, &row.issuer),
            None => false,
        })
    }

    fn opened(&self, name: ProviderName, row: ProviderRow) -> Result<Provider> {
        let secret = self.sealer.open(&location(name), &row.secret)?;
        let secret = String::from_utf8(secret.bytes().to_vec());
        let secret = secret.map_err(|_| Error::Internal("a secret is not text".to_owned()))?;
        Ok(Provider {
            name,
            label: row.label,
            issuer: row.issuer,
            client_id: row.client_id,
            client_secret: Zeroizing::new(secret),
        })
    }

    /// All providers, by name: those of the settings first.
    pub(crate) async fn provider_facts(&self) -> Result<Vec<ProviderFacts>> {
        let fixed = self.providers.iter().map(|provider| ProviderFacts {
            name: provider.name,
            label: provider.label.clone(),
            issuer: provider.issuer.clone(),
            client_id: provider.client_id.clone(),
            is_fixed: true,
            updated_at: None,
        });
        let mut facts: Vec<ProviderFacts> = fixed.collect();
        for row in rows::all(&self.store).await? {
            let name = ProviderName::parse(&row.name);
            let name = name.filter(|name| facts.iter().all(|known| known.name != *name));
            facts.extend(name.map(|name| ProviderFacts {
                name,
                label: row.label,
                issuer: row.issuer,
                client_id: row.client_id,
                is_fixed: false,
                updated_at: Some(row.updated_at),
            }));
        }
        Ok(facts)
    }

    /// Whether a domain can require this way of signing in: it is set up.
    pub(crate) async fn can_enforce(&self, row: &DomainRow, sso: SsoEnforcement) -> Result<bool> {
        match sso {
            SsoEnforcement::Off => Ok(true),
            SsoEnforcement::Saml => Ok(has_saml(row)),
            SsoEnforcement::Provider(name) => Ok(self.find(name).await?.is_some()),
        }
    }

    /// The names of connections for people.
    pub(crate) async fn connection_names(&self) -> Result<ConnectionNames> {
        let facts = self.provider_facts().await?;
        Ok(ConnectionNames(facts.into_iter().map(|facts| (facts.name, facts.label)).collect()))
    }

    /// The name of a connection for people.
    pub(crate) async fn connection_name(&self, connection: Connection) -> Result<String> {
        Ok(self.connection_names().await?.of(connection))
    }

    /// What a domain requires now. A way that is not set up any more is not required, so
    /// that members are not locked out.
    pub(crate) async fn in_force(&self, row: &DomainRow) -> Result<Option<SsoEnforcement>> {
        let sso = row.sso_enforcement;
        let counts = sso != SsoEnforcement::Off && acts(row) && self.can_enforce(row, sso).await?;
        Ok(counts.then_some(sso))
    }
}

/// The labels of the providers of the instance.
pub(crate) struct ConnectionNames(Vec<(ProviderName, String)>);

impl ConnectionNames {
    /// The name of a connection. A provider that was removed has the name that it had
    /// without a label.
    pub(crate) fn of(&self, connection: Connection) -> String {
        match connection {
            Connection::Saml(_) => "SAML".to_owned(),
            Connection::Provider(name) => {
                let label = self.0.iter().find(|(known, _)| *known == name);
                label.map_or_else(|| name.label().to_owned(), |(_, label)| label.clone())
            }
        }
    }
}

fn location(name: ProviderName) -> SealedLocation {
    SealedLocation::new(SealedField::SignInProviderSecret, name, OrganizationId(Uuid::nil()))
}

/// The service for the providers of the instance.
#[derive(Clone)]
pub struct Providers {
    core: Arc<Core>,
    instance: Instance,
    protocols: Arc<dyn Protocols>,
}

impl Providers {
    pub(crate) fn new(core: Arc<Core>, protocols: Arc<dyn Protocols>) -> Self {
        Self { instance: Instance::new(Arc::clone(&core)), core, protocols }
    }

    /// Name and label of all providers, for everyone: the sign-in page shows them.
    pub async fn offered(&self) -> Result<Vec<(ProviderName, String)>> {
        let facts = self.core.provider_facts().await?;
        Ok(facts.into_iter().map(|facts| (facts.name, facts.label)).collect())
    }

    /// Whether users of the instance may sign in through a provider: one is set up, or a
    /// domain has one.
    pub async fn is_used(&self) -> Result<bool> {
        Ok(!self.core.provider_facts().await?.is_empty()
            || weir_store::domains::any_has_provider(&self.core.store).await?)
    }

    /// The metadata of this instance as a SAML service provider: that for the identity
    /// provider of a domain, or for any other one. A domain that does not sign its requests
    /// has the same one as a domain that does not exist.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn metadata(&self, origin: &str, domain: Option<DomainId>) -> Result<String> {
        let row = match domain {
            Some(domain) => weir_store::domains::get_any(&self.core.store, domain).await?,
            None => None,
        };
        let signing = row.filter(|row| row.saml_sign_requests);
        let certificate = signing.and_then(|row| row.saml_signing_certificate);
        Ok(self.protocols.saml_metadata(&SamlServiceProvider::at(origin), certificate.as_deref()))
    }

    /// The providers of the instance.
    ///
    /// # Errors
    /// [`Error::NotFound`] for callers who are not staff.
    pub async fn list(&self, ctx: &Ctx) -> Result<Vec<ProviderFacts>> {
        self.instance.enter(ctx).await?;
        self.core.provider_facts().await
    }

    /// Adds or changes a provider.
    ///
    /// # Errors
    /// [`Error::NotFound`] for callers who are not staff; [`Error::SignInAgain`];
    /// [`Error::Invalid`] at the first field that is wrong.
    pub async fn save(&self, ctx: &Ctx, input: ProviderInput) -> Result<()> {
        self.instance.enter(ctx).await?;
        policy::recent_person_only(ctx)?;
        let name = validate::text("name", &input.name, PROVIDER_TEXT_MAX)?;
        let name = ProviderName::parse(&name).ok_or_else(|| {
            let detail = "Use lower case letters, digits and hyphens, at most 28 characters.";
            FieldError::new("name", "invalid_input", detail)
        })?;
        if self.core.providers.iter().any(|fixed| fixed.name == name) {
            let detail = "This provider is in the settings of the server. Change it there.";
            return Err(FieldError::new("name", "invalid_input", detail).into());
        }
        let label = validate::optional_text("label", &input.label, PROVIDER_TEXT_MAX)?;
        let issuer = validate::optional_text("issuer", &input.issuer, PROVIDER_TEXT_MAX)?;
        let client_id = validate::text("client_id", &input.client_id, PROVIDER_TEXT_MAX)?;
        let before = rows::get(&self.core.store, name.text()).await?;
        // With another issuer, the stored secret would be sent to another server.
        let kept = before
            .clone()
            .filter(|row| row.issuer == issuer && row.client_id == client_id)
            .filter(|_| input.client_secret.trim().is_empty());
        let is_new_secret = kept.is_none();
        let client_secret = match kept {
            Some(row) => self.core.opened(name, row)?.client_secret,
            None => Zeroizing::new(validate::text(
                "client_secret",
                &input.client_secret,
                PROVIDER_TEXT_MAX,
            )?),
        };
        let label = if label.is_empty() { name.label().to_owned() } else { label };
        let provider = Provider { name, label, issuer, client_id, client_secret };
        self.protocols.check(&provider)?;
        let secret =
            self.core.sealer.seal(&location(name), provider.client_secret.as_bytes()).await?;
        let row = ProviderRow {
            name: name.text().to_owned(),
            label: provider.label,
            issuer: provider.issuer,
            client_id: provider.client_id,
            secret,
            organization: Uuid::nil(),
            updated_at: ctx.now,
        };
        let action = if before.is_some() { AuditAction::Updated } else { AuditAction::Created };
        let changes = changes(before.as_ref(), Some(&row), is_new_secret);
        let change = SignInChange::ProviderSaved { name: name.text().to_owned() };
        let mails = match changes.is_empty() {
            true => Vec::new(),
            false => self.notices(ctx, &change).await?,
        };
        let activities = self.audit_entries(ctx, name, action, changes).await?;
        if !rows::put(&self.core.store, &row, PROVIDERS_MAX, &mails, &activities).await? {
            let detail = format!(
                "An instance may have at most {PROVIDERS_MAX} providers. Remove one first."
            );
            return Err(FieldError::body("invalid_input", detail).into());
        }
        self.core.mailing.wake();
        tracing::info!(user.id = %ctx.user(), provider = name.text(), "a provider was saved");
        Ok(())
    }

    /// Removes a provider. Users who are linked to it cannot sign in through it any more,
    /// and domains that require it require nothing until it is back.
    ///
    /// # Errors
    /// [`Error::NotFound`] for callers who are not staff; [`Error::SignInAgain`].
    pub async fn remove(&self, ctx: &Ctx, name: &str) -> Result<()> {
        self.instance.enter(ctx).await?;
        policy::recent_person_only(ctx)?;
        let Some(name) = ProviderName::parse(name) else { return Ok(()) };
        if let Some(before) = rows::get(&self.core.store, name.text()).await? {
            let changes = changes(Some(&before), None, false);
            let activities = self.audit_entries(ctx, name, AuditAction::Deleted, changes).await?;
            let change = SignInChange::ProviderRemoved { name: name.text().to_owned() };
            let mails = self.notices(ctx, &change).await?;
            rows::delete(&self.core.store, name.text(), &mails, &activities).await?;
            self.core.mailing.wake();
            tracing::info!(user.id = %ctx.user(), provider = name.text(), "a provider was removed");
        }
        Ok(())
    }

    /// The audit entries about a provider: one for every organization of the caller, because
    /// its members know the caller. None if nothing changed.
    async fn audit_entries(
        &self,
        ctx: &Ctx,
        name: ProviderName,
        action: AuditAction,
        changes: Changes,
    ) -> Result<Vec<Entry>> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let organizations = organizations::of_user(&self.core.store, ctx.user()).await?;
        let entry = |belonging: &Belonging| {
            let about = About {
                subject: Subject::SignInProvider,
                id: name.text().to_owned(),
                name: Some(name.text()),
                project: None,
            };
            activity::entry(ctx, belonging.row.id, about, action, changes.clone())
        };
        Ok(organizations.iter().map(entry).collect())
    }

    /// The mails about a change, to the staff of the instance.
    async fn notices(&self, ctx: &Ctx, change: &SignInChange) -> Result<Vec<MailRow>> {
        if !self.core.mailing.is_open() {
            return Ok(Vec::new());
        }
        let store = &self.core.store;
        let by = users::get(store, ctx.user()).await?.map(|user| user.email);
        let news = |user: &UserRow| MailContent::SignInChanged {
            first_name: user.first_name.clone(),
            change: change.clone(),
            by: by.clone(),
            at: ctx.now,
            path: PAGE.to_owned(),
        };
        let staff = users::staff(store, NOTIFIED_MAX).await?;
        let mails = staff.iter().map(|user| mail::to(&user.email, news(user)));
        Ok(self.core.mailing.rows(ctx.now, mails))
    }
}

/// The fields of a provider that differ, without its secret.
fn changes(
    before: Option<&ProviderRow>,
    after: Option<&ProviderRow>,
    is_new_secret: bool,
) -> Changes {
    let changes = Changes::none()
        .field("label", &before.map(|row| &row.label), &after.map(|row| &row.label))
        .field("issuer", &before.map(|row| &row.issuer), &after.map(|row| &row.issuer))
        .field("client_id", &before.map(|row| &row.client_id), &after.map(|row| &row.client_id));
    if is_new_secret { changes.secret("client_secret") } else { changes }
}
