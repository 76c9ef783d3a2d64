//! Provisioning by SCIM: what the identity provider of a domain may do with its users and
//! groups (SSO-50 and later).
//!
//! What belongs here: the token of a domain, which users and groups it reaches, and the
//! refusals. What does not: the shapes of the protocol, filters and changes (`weir-scim`);
//! who may be added (`identity::sso`).

mod groups;
mod levels;
mod tokens;
mod users;

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use weir_model::activity::UsedKey;
use weir_model::scim::{PREFIX, path};
use weir_model::{DomainId, ScimGroupId, Timestamp};
use weir_scim::{Fault, FaultKind, Filter, PAGE_MAX, Selection};
use weir_store::domains::{self as domain_rows, DomainRow};
use weir_store::scim::{self as rows, DomainState, GroupRow};

use crate::domains::acts;
use crate::error::Error;
use crate::identity::Identity;
use crate::limits::MEMBERS_FULL;
use crate::{Core, Result, secrets};

/// How often a change is made again after concurrent changes of the same domain.
const TRIES: usize = 8;
/// Maximum length of a token that is looked up, in bytes.
const VALUE_MAX: usize = 200;
/// The use of a token is stored at most once in this time, in seconds.
const TOUCH_SECONDS: i64 = 60;

/// Result of an operation of an identity provider.
pub type ScimResult<T> = std::result::Result<T, ScimError>;

/// Why an operation of an identity provider is refused.
#[derive(Debug, thiserror::Error)]
pub enum ScimError {
    /// The request has no token, or one that does not belong to this domain.
    #[error("no valid token")]
    Unauthorized,
    /// The domain is not verified at present.
    #[error("the domain is not verified")]
    Unverified,
    /// There is no such resource.
    #[error("no such resource")]
    NotFound,
    /// The resource has another version than the one that the request names.
    #[error("another version")]
    Stale,
    /// The organization would have no owner left.
    #[error("the last owner")]
    LastOwner,
    /// The request is wrong.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The service refused or failed.
    #[error(transparent)]
    Service(#[from] Error),
}

impl From<weir_store::Error> for ScimError {
    fn from(error: weir_store::Error) -> Self {
        Self::Service(error.into())
    }
}

/// The identity provider of a domain, for one request.
#[derive(Debug, Clone)]
pub struct ScimCtx {
    /// The domain, which is verified.
    pub(crate) domain: DomainRow,
    /// The token, for audit entries.
    pub(crate) token: UsedKey,
    /// When the operation began.
    pub(crate) now: Timestamp,
    /// The request's id.
    pub(crate) request_id: String,
    /// The URL before `/Users`.
    base: String,
}

impl ScimCtx {
    /// The URL before `/Users`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The id of the domain that the token is for.
    pub fn domain_id(&self) -> DomainId {
        self.domain.id
    }

    /// What the quota counts the requests of: the domain, whatever its token.
    pub fn quota(&self) -> String {
        format!("scim:{}", self.domain.id)
    }
}

/// The version that a resource must have, from `If-Match`; `None`: any.
#[derive(Debug, Clone, Default)]
pub struct Precondition(Option<String>);

impl Precondition {
    /// Reads the header.
    pub fn parse(header: Option<&str>) -> Self {
        Self(header.map(str::trim).filter(|text| *text != "*").map(str::to_owned))
    }

    fn check(&self, version: Option<&str>) -> ScimResult<()> {
        let Some(wanted) = &self.0 else { return Ok(()) };
        // Versions are hashes of what is shown, so they are compared weakly.
        let opaque = |text: &str| text.trim().trim_start_matches("W/").to_owned();
        let version = version.map(opaque);
        let is_wanted = wanted.split(',').any(|one| Some(opaque(one)) == version);
        if is_wanted { Ok(()) } else { Err(ScimError::Stale) }
    }
}

/// The part of a list that a request asks for.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Which resources are meant.
    pub filter: Option<Filter>,
    /// The number of the first resource, from 1.
    pub start: usize,
    /// Most resources of the answer.
    pub count: usize,
    /// Which attributes are shown.
    pub selection: Selection,
}

impl Listing {
    /// Reads the parameters of a query. Numbers out of range count as the next one in range
    /// (RFC 7644, 3.4.2.4).
    ///
    /// # Errors
    /// `invalidFilter`, `invalidValue`.
    pub fn parse<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> Result<Self, Fault> {
        let number = |name: &str| match parameter(name).map(str::trim) {
            None | Some("") => Ok(None),
            Some(text) => {
                let number: Result<i64, _> = text.parse();
                let number = number.map_err(|_| Fault::value(format!("`{name}` is no number.")))?;
                Ok::<_, Fault>(Some(usize::try_from(number).unwrap_or(0)))
            }
        };
        let filter = match parameter("filter") {
            None | Some("") => None,
            Some(text) => Some(Filter::parse(text)?),
        };
        Ok(Self {
            filter,
            start: number("startIndex")?.unwrap_or(1).max(1),
            count: number("count")?.unwrap_or(PAGE_MAX).min(PAGE_MAX),
            selection: Selection::parse(parameter("attributes"), parameter("excludedAttributes"))?,
        })
    }

    /// The page of a list.
    fn of<T>(&self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.start - 1).take(self.count).collect()
    }
}

/// A page of a list.
#[derive(Debug)]
pub struct Listed {
    /// Number of all resources that match.
    pub total: usize,
    /// The resources of the page.
    pub resources: Vec<Value>,
}

/// The service for identity providers.
#[derive(Clone)]
pub struct Scim {
    core: Arc<Core>,
    identity: Identity,
}

impl Scim {
    pub(crate) fn new(core: Arc<Core>, identity: Identity) -> Self {
        Self { core, identity }
    }

    /// The identity provider whose token this is. `domain` is the domain of the path: its id
    /// or its name.
    ///
    /// # Errors
    /// [`ScimError::Unauthorized`], the same for a token that never existed, was revoked,
    /// or belongs to another domain; [`ScimError::Unverified`].
    pub async fn authenticate(
        &self,
        domain: &str,
        value: &str,
        origin: &str,
        request_id: String,
    ) -> ScimResult<ScimCtx> {
        // A shorter way to the same answer: only values of our own form are stored.
        if value.len() > VALUE_MAX || !value.starts_with(PREFIX) {
            return Err(ScimError::Unauthorized);
        }
        let store = &self.core.store;
        let now = self.core.clock.now();
        let hash = secrets::sha256_hex(value);
        let state = rows::by_hash(store, &hash).await?.ok_or(ScimError::Unauthorized)?;
        let token = state.token.filter(|token| token.hash == hash);
        let token = token.ok_or(ScimError::Unauthorized)?;
        let row = domain_rows::get(store, state.organization, state.domain).await?;
        let row = row.ok_or(ScimError::Unauthorized)?;
        let is_named = |name: &str| domain.eq_ignore_ascii_case(name);
        if !is_named(&row.id.to_string()) && !is_named(&row.domain) {
            return Err(ScimError::Unauthorized);
        }
        if !acts(&row) {
            return Err(ScimError::Unverified);
        }
        let stale = |used: Timestamp| used.plus_seconds(TOUCH_SECONDS) <= now;
        if token.used_at.is_none_or(stale) {
            // A request must succeed even when this write fails.
            if let Err(error) = rows::touch(store, row.id, &hash, now).await {
                tracing::warn!(%error, "the use of a SCIM token was not noted");
            }
        }
        Ok(ScimCtx {
            base: format!("{origin}{}", path(row.id)),
            token: UsedKey {
                id: row.id.to_string(),
                label: row.domain.clone(),
                mask_value: Some(token.mask),
            },
            domain: row,
            now,
            request_id,
        })
    }

    /// Users and then groups, as one list (RFC 7644, 3.4.2.1).
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn list_all(&self, ctx: &ScimCtx, listing: &Listing) -> ScimResult<Listed> {
        let users = self.list_users(ctx, listing).await?;
        let rest = Listing {
            start: listing.start.saturating_sub(users.total).max(1),
            count: listing.count.saturating_sub(users.resources.len()),
            ..listing.clone()
        };
        let groups = self.list_groups_of(ctx, &rest).await?;
        let mut resources = users.resources;
        resources.extend(groups.resources);
        Ok(Listed { total: users.total + groups.total, resources })
    }

    /// The group of a domain with the id in a path; `None`: there is none.
    async fn group_at(&self, domain: DomainId, id: &str) -> Result<Option<GroupRow>> {
        match parse_id(id).map(ScimGroupId) {
            Some(id) => Ok(rows::group(&self.core.store, domain, id).await?),
            None => Ok(None),
        }
    }

    /// What the domain has, to compare with when a change is stored.
    async fn state(&self, ctx: &ScimCtx) -> ScimResult<DomainState> {
        let state = rows::state(&self.core.store, ctx.domain.id).await?;
        state.ok_or(ScimError::Unauthorized)
    }
}

/// The refusal after too many concurrent changes.
fn busy() -> ScimError {
    Error::Unavailable("others are changing the same users and groups").into()
}

/// The version of a resource: a hash of what is shown.
fn version(shown: &impl serde::Serialize) -> Option<String> {
    let text = serde_json::to_vec(shown).ok()?;
    let hash = secrets::hex(&Sha256::digest(text));
    hash.get(..32).map(|hash| format!("W/\"{hash}\""))
}

/// The id in a path or a body. Only its usual written form is accepted.
fn parse_id(text: &str) -> Option<Uuid> {
    let id = Uuid::parse_str(text).ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

/// A resource as JSON.
fn json(shown: &impl serde::Serialize) -> ScimResult<Value> {
    let json = serde_json::to_value(shown);
    json.map_err(|error| Error::Internal(format!("a resource has no JSON form: {error}")).into())
}

/// A value that belongs to another resource.
fn taken(detail: impl Into<String>) -> ScimError {
    Fault::new(FaultKind::Uniqueness, detail).into()
}

/// The organization has as many members as its limit.
fn full() -> ScimError {
    Fault::new(FaultKind::TooMany, MEMBERS_FULL).into()
}
