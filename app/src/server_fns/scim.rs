//! Provisioning of a domain: the token of its identity provider, and the levels of groups.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
#[cfg(feature = "ssr")]
use weir_service::{OrgCtx, Services};

#[cfg(feature = "ssr")]
use crate::context::{anyone, enter_organization, enter_with_token, go, notice, ui_error};
use crate::error::UiError;

/// The key under which a new token is kept for the page that shows it.
const FLASH: &str = "new scim token";
/// Most groups that the page shows.
#[cfg(feature = "ssr")]
const GROUPS: u64 = 200;

/// Provisioning as the page of the domain shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScimView {
    /// The URL for the identity provider.
    pub(crate) url: String,
    pub(crate) token: Option<TokenView>,
    /// The groups that the identity provider has sent.
    pub(crate) groups: Vec<GroupView>,
    /// Number of all groups.
    pub(crate) group_count: u64,
    /// Whether the caller may make tokens and set levels.
    pub(crate) may_provision: bool,
}

/// A token without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenView {
    /// First and last characters of the value.
    pub(crate) mask: String,
    /// Address of the user who made it.
    pub(crate) made_by: Option<String>,
    /// When it was made.
    pub(crate) created_at: String,
    /// When it was last used.
    pub(crate) used_at: Option<String>,
}

/// A group of the identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupView {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Number of its members.
    pub(crate) members: u64,
    /// The level that its members get, as a number; `None`: it changes no level.
    pub(crate) level: Option<i64>,
}

/// A new token, to be shown once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RevealedToken {
    /// The value. `None` if it was already shown.
    pub(crate) value: Option<String>,
    /// The URL for the identity provider.
    pub(crate) url: String,
}

/// Provisioning of a domain.
#[cfg(feature = "ssr")]
pub(super) async fn view(
    services: &Services,
    org: &OrgCtx,
    domain: &str,
) -> Result<ScimView, UiError> {
    use weir_model::pagination::Page;
    use weir_service::policy::Action;

    let (_, visit) = anyone()?;
    let found = services.scim.of_domain(org, domain).await.map_err(ui_error)?;
    let page = Page { limit: GROUPS, offset: 0 };
    let groups = services.scim.list_groups(org, domain, page).await.map_err(ui_error)?;
    let group = |group: weir_model::scim::ScimGroup| GroupView {
        id: group.id.to_string(),
        name: group.display_name,
        members: group.member_count,
        level: group.level.map(i64::from),
    };
    Ok(ScimView {
        url: format!("{}{}", visit.origin, found.path),
        token: found.token.map(|token| TokenView {
            mask: token.mask_value,
            made_by: token.created_by,
            created_at: token.created_at.to_string(),
            used_at: token.last_used_at.map(|time| time.to_string()),
        }),
        groups: groups.results.into_iter().map(group).collect(),
        group_count: groups.count,
        may_provision: org.level >= Action::ManageProvisioning.level(),
    })
}

/// Makes a token and redirects to the page that shows it once.
#[server(prefix = "/_fn", endpoint = "create_scim_token")]
pub(crate) async fn create_scim_token(id: String, domain: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let (_, ctx, session) = enter_with_token()?;
    let changeable = services.scim.provisionable(&org, &domain).await.map_err(ui_error)?;
    let token = services.scim.create_token(&org, changeable).await.map_err(ui_error)?;
    let value = token.value.unwrap_or_default();
    services.identity.put_flash(&ctx, &session, FLASH, &value).await.map_err(ui_error)?;
    go(&format!("/organizations/{id}/domains/{domain}/token"));
    Ok(())
}

/// Returns the new token on the first call only.
#[server(prefix = "/_fn", endpoint = "reveal_scim_token")]
pub(crate) async fn reveal_scim_token(
    id: String,
    domain: String,
) -> Result<RevealedToken, UiError> {
    let (services, org) = enter_organization(&id).await?;
    let (_, ctx, session) = enter_with_token()?;
    let (_, visit) = anyone()?;
    let found = services.scim.of_domain(&org, &domain).await.map_err(ui_error)?;
    let value = services.identity.take_flash(&ctx, &session, FLASH).await.map_err(ui_error)?;
    Ok(RevealedToken { value, url: format!("{}{}", visit.origin, found.path) })
}

/// Revokes the token.
#[server(prefix = "/_fn", endpoint = "revoke_scim_token")]
pub(crate) async fn revoke_scim_token(id: String, domain: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let changeable = services.scim.changeable(&org, &domain).await.map_err(ui_error)?;
    services.scim.revoke_token(&org, changeable).await.map_err(ui_error)?;
    notice("The token is revoked.");
    Ok(())
}

/// Sets the level that the members of a group get.
#[server(prefix = "/_fn", endpoint = "set_scim_level")]
pub(crate) async fn set_scim_level(
    id: String,
    domain: String,
    group: String,
    #[server(default)] group_level: String,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::organizations::Level;
    use weir_model::scim::{LEVELS, ScimGroupPatch};

    let (services, org) = enter_organization(&id).await?;
    let level = match group_level.as_str() {
        "" => Patch::Clear,
        text => {
            let level = text.parse().ok().filter(|level| LEVELS.contains(level));
            let level = level.and_then(|level: i64| Level::try_from(level).ok());
            let wrong = || UiError::field("group_level", "invalid_choice", "Choose a level.");
            Patch::Set(level.ok_or_else(wrong)?)
        }
    };
    let changeable = services.scim.provisionable(&org, &domain).await.map_err(ui_error)?;
    let patch = ScimGroupPatch { level };
    let changed = services.scim.update_group(&org, changeable, &group, patch).await;
    let name = changed.map_err(ui_error)?.display_name;
    notice(&format!("The level of {name} is saved."));
    Ok(())
}
