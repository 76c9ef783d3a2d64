//! Personal API keys: the list, and actions on one key.
//!
//! What does not belong here: creating and editing (`key_forms`).

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::keys::PersonalKey;
#[cfg(feature = "ssr")]
use weir_service::{Ctx, Services};

#[cfg(feature = "ssr")]
use crate::context::{anyone, enter, enter_with_token, go, notice, ui_error};
use crate::error::UiError;

/// The key under which a new value is kept for the page that shows it.
const FLASH: &str = "new key";

/// A personal API key as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyView {
    /// Id of the key.
    pub(crate) id: String,
    pub(crate) label: String,
    /// First and last characters of the value.
    pub(crate) mask: String,
    pub(crate) scopes: Vec<String>,
    /// Organizations that it is limited to: id and name.
    pub(crate) organizations: Vec<(String, String)>,
    /// Projects that it is limited to: number and name.
    pub(crate) projects: Vec<(i64, String)>,
    /// When it was created.
    pub(crate) created_at: String,
    pub(crate) last: Option<CallView>,
    /// The expiry time.
    pub(crate) expires_at: Option<String>,
    /// Whether it has expired.
    pub(crate) expired: bool,
    /// The previous value, while it is valid.
    pub(crate) previous: Option<PreviousView>,
    /// Number of refused calls in the last seven days.
    pub(crate) refused: u64,
    /// The last refused calls, newest first.
    pub(crate) refusals: Vec<RefusalView>,
}

impl KeyView {
    /// All values that its form changes, as one text.
    pub(crate) fn edited(&self) -> String {
        let organizations = self.organizations.iter().map(|(id, _)| id.clone());
        let projects = self.projects.iter().map(|(id, _)| id.to_string());
        let mut parts: Vec<String> =
            self.scopes.iter().cloned().chain(organizations).chain(projects).collect();
        parts.sort();
        format!("{}\n{}", self.label, parts.join("\n"))
    }
}

/// A call with a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallView {
    /// Time of the call.
    pub(crate) at: String,
    /// Method and route. Empty if only the time is known.
    pub(crate) route: String,
    /// IP address of the client.
    pub(crate) address: String,
}

/// A refused call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusalView {
    pub(crate) call: CallView,
    /// The missing scope.
    pub(crate) scope: String,
    /// Whether the key has the scope now.
    pub(crate) held: bool,
}

/// A previous value that is still valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviousView {
    /// First and last characters of the value.
    pub(crate) mask: String,
    /// Time at which it becomes invalid.
    pub(crate) until: String,
    /// Time of its last use.
    pub(crate) used_at: Option<String>,
}

/// A new value, to be shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Revealed {
    /// The value. `None` if it was already shown.
    pub(crate) value: Option<String>,
    /// Scheme and host of the API.
    pub(crate) host: String,
    /// Without a value: keys that can be rotated, by id and label.
    pub(crate) keys: Vec<(String, String)>,
}

/// Names of the organizations and projects in a key's limits.
struct Names {
    organizations: Vec<(String, String)>,
    projects: Vec<(i64, String)>,
}

#[cfg(feature = "ssr")]
async fn names(services: &Services, ctx: &Ctx) -> Result<Names, UiError> {
    use weir_model::pagination::{MAX_LIMIT, Page};

    let page = Page { limit: MAX_LIMIT, offset: 0 };
    let found = services.organizations.list(ctx, page).await.map_err(ui_error)?.results;
    let projects = found.iter().flat_map(|organization| &organization.teams);
    Ok(Names {
        projects: projects.map(|project| (project.id.0, project.name.clone())).collect(),
        organizations: found
            .into_iter()
            .map(|one| (one.row.id.to_string(), one.row.name))
            .collect(),
    })
}

/// Limits with their names. Those that the user has left have their id as name.
fn named<I: Clone + PartialEq + ToString>(ids: Vec<I>, names: &[(I, String)]) -> Vec<(I, String)> {
    let name = |id: I| {
        let known = names.iter().find(|(known, _)| *known == id);
        let name = known.map_or_else(|| id.to_string(), |(_, name)| name.clone());
        (id, name)
    };
    ids.into_iter().map(name).collect()
}

fn call(call: weir_model::keys::KeyCall) -> CallView {
    CallView {
        at: call.at.to_string(),
        route: format!("{} {}", call.method, call.route),
        address: call.address.unwrap_or_default(),
    }
}

#[cfg(feature = "ssr")]
fn shown(
    found: weir_service::keys::KeyOverview,
    names: &Names,
    now: weir_model::Timestamp,
) -> KeyView {
    let weir_service::keys::KeyOverview { key, previous, usage } = found;
    let refused = usage.refused_lately(now);
    let holds = |scope| key.scopes.iter().any(|held| held.covers(scope));
    let refusals = usage.refused.into_iter().map(|refused| RefusalView {
        scope: refused.scope.to_string(),
        held: holds(refused.scope),
        call: call(refused.call),
    });
    let organizations = key.scoped_organizations.iter().map(ToString::to_string).collect();
    let projects = key.scoped_teams.iter().map(|id| id.0).collect();
    // For keys that are older than the record of calls, only the hour is known.
    let noted_hour = key.last_used_at.map(|time| CallView {
        at: time.to_string(),
        route: String::new(),
        address: String::new(),
    });
    KeyView {
        refusals: refusals.collect(),
        refused,
        organizations: named(organizations, &names.organizations),
        projects: named(projects, &names.projects),
        id: key.id.0,
        label: key.label,
        mask: key.mask_value.unwrap_or_default(),
        scopes: key.scopes.iter().map(ToString::to_string).collect(),
        created_at: key.created_at.to_string(),
        last: usage.last.map(call).or(noted_hour),
        expired: key.expires_at.is_some_and(|end| end <= now),
        expires_at: key.expires_at.map(|time| time.to_string()),
        previous: previous.map(|previous| PreviousView {
            mask: previous.mask,
            until: previous.until.to_string(),
            used_at: previous.used_at.map(|time| time.to_string()),
        }),
    }
}

/// Lists the keys of the user.
#[server(prefix = "/_fn", endpoint = "list_keys")]
pub(crate) async fn list_keys() -> Result<Vec<KeyView>, UiError> {
    let (services, ctx) = enter()?;
    let found = services.keys.overview(&ctx).await.map_err(ui_error)?;
    let names = names(&services, &ctx).await?;
    Ok(found.into_iter().map(|key| shown(key, &names, ctx.now)).collect())
}

/// Returns one key.
#[server(prefix = "/_fn", endpoint = "get_key")]
pub(crate) async fn get_key(id: String) -> Result<KeyView, UiError> {
    let (services, ctx) = enter()?;
    let id = weir_model::KeyId(id);
    let found = services.keys.overview_of(&ctx, &id).await.map_err(ui_error)?;
    let names = names(&services, &ctx).await?;
    Ok(shown(found, &names, ctx.now))
}

/// Gives a key a new value and redirects to the page that shows it. The old value stays
/// valid during the overlap.
#[server(prefix = "/_fn", endpoint = "rotate_key")]
pub(crate) async fn rotate_key(id: String, overlap: String) -> Result<(), UiError> {
    use weir_model::keys::Overlap;

    let (services, ctx, token) = enter_with_token()?;
    let overlap = Overlap::parse(&overlap).map_err(UiError::Field)?;
    let id = weir_model::KeyId(id);
    let key = services.keys.rotate(&ctx, &id, overlap).await.map_err(ui_error)?;
    reveal(&services, &ctx, &token, key).await
}

/// Redirects to the page that shows a new value once.
#[cfg(feature = "ssr")]
pub(super) async fn reveal(
    services: &Services,
    ctx: &Ctx,
    token: &str,
    key: PersonalKey,
) -> Result<(), UiError> {
    let value = key.value.unwrap_or_default();
    services.identity.put_flash(ctx, token, FLASH, &value).await.map_err(ui_error)?;
    go("/account/keys/reveal");
    Ok(())
}

/// Ends the previous value of a key.
#[server(prefix = "/_fn", endpoint = "end_old_value")]
pub(crate) async fn end_old_value(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.keys.end_previous(&ctx, &weir_model::KeyId(id)).await.map_err(ui_error)?;
    notice("The old value no longer works.");
    Ok(())
}

/// Adds the scope that a refused call lacked to a key.
#[server(prefix = "/_fn", endpoint = "add_key_scope")]
pub(crate) async fn add_key_scope(id: String, scope: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let wanted = scope
        .parse::<weir_model::scopes::Scope>()
        .map_err(|detail| UiError::field("scope", "invalid_input", &detail))?;
    let id = weir_model::KeyId(id);
    services.keys.add_scope(&ctx, &id, wanted).await.map_err(ui_error)?;
    notice(&format!("The key has the scope {scope} now."));
    Ok(())
}

/// Returns the new value on the first call only.
#[server(prefix = "/_fn", endpoint = "reveal_key")]
pub(crate) async fn reveal_key() -> Result<Revealed, UiError> {
    let (services, ctx, token) = enter_with_token()?;
    let (_, visit) = anyone()?;
    let value = services.identity.take_flash(&ctx, &token, FLASH).await.map_err(ui_error)?;
    let mut keys = Vec::new();
    if value.is_none() {
        let own = services.keys.list(&ctx).await.map_err(ui_error)?;
        keys = own.into_iter().map(|key| (key.id.0, key.label)).collect();
    }
    Ok(Revealed { value, host: visit.origin, keys })
}

/// Revokes a key and redirects to the list.
#[server(prefix = "/_fn", endpoint = "revoke_key")]
pub(crate) async fn revoke_key(id: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.keys.delete(&ctx, &weir_model::KeyId(id)).await.map_err(ui_error)?;
    notice("The key is revoked.");
    go("/account/keys");
    Ok(())
}
