//! Limits of organizations.

#![allow(clippy::too_many_arguments, reason = "the fields of a form")]

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::limits::{InstanceOrganization, OrganizationLimits};

#[cfg(feature = "ssr")]
use crate::context::{enter, enter_organization, redirect_with_notice, ui_error};
use crate::error::UiError;

/// Most organizations on one page.
pub(crate) const MAX_PAGE_SIZE: u32 = 100;

/// A page of all organizations of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceOrganizationsView {
    /// The organizations of the page.
    pub(crate) organizations: Vec<InstanceOrganization>,
    /// The number of all organizations.
    pub(crate) total: u64,
}

/// An organization of the instance with its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstanceOrganizationView {
    pub(crate) organization: InstanceOrganization,
    pub(crate) limits: OrganizationLimits,
}

/// Returns the limits of an organization, for its members.
#[server(prefix = "/_fn", endpoint = "get_organization_limits")]
pub(crate) async fn get_organization_limits(id: String) -> Result<OrganizationLimits, UiError> {
    let (services, org) = enter_organization(&id).await?;
    services.limits.of(&org).await.map_err(ui_error)
}

/// Lists all organizations of the instance. Not found for other users than staff.
#[server(prefix = "/_fn", endpoint = "list_instance_organizations")]
pub(crate) async fn list_instance_organizations(
    limit: u32,
    offset: u32,
) -> Result<InstanceOrganizationsView, UiError> {
    use weir_model::pagination::Page;

    let (services, ctx) = enter()?;
    let page = Page { limit: limit.clamp(1, MAX_PAGE_SIZE).into(), offset: offset.into() };
    let found = services.limits.organizations(&ctx, page).await.map_err(ui_error)?;
    Ok(InstanceOrganizationsView { organizations: found.results, total: found.count })
}

/// Returns any organization of the instance. Not found for other users than staff.
#[server(prefix = "/_fn", endpoint = "get_instance_organization")]
pub(crate) async fn get_instance_organization(
    id: String,
) -> Result<InstanceOrganizationView, UiError> {
    let (services, ctx) = enter()?;
    let (organization, limits) = services.limits.organization(&ctx, &id).await.map_err(ui_error)?;
    Ok(InstanceOrganizationView { organization, limits })
}

/// Chooses limits of an organization.
#[server(prefix = "/_fn", endpoint = "save_limits")]
pub(crate) async fn save_limits(
    id: String,
    #[server(default)] seen: String,
    #[server(default)] events_per_month_action: String,
    #[server(default)] events_per_month_limit: String,
    #[server(default)] events_per_second_action: String,
    #[server(default)] events_per_second_limit: String,
    #[server(default)] disk_bytes_action: String,
    #[server(default)] disk_bytes_limit: String,
    #[server(default)] members_action: String,
    #[server(default)] members_limit: String,
    #[server(default)] exports_action: String,
    #[server(default)] exports_limit: String,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::limits::{
        DEFAULT_WORD, LimitName, LimitPatch, LimitsPatch, NONE_WORD, action_field, number_field,
    };

    use crate::edits::Edits;
    use crate::pages::limits::{action_label, chosen, number_label};

    let (services, ctx) = enter()?;
    let (organization, stored) = services.limits.organization(&ctx, &id).await.map_err(ui_error)?;
    let sent = [
        (LimitName::EventsPerMonth, events_per_month_action, events_per_month_limit),
        (LimitName::EventsPerSecond, events_per_second_action, events_per_second_limit),
        (LimitName::DiskBytes, disk_bytes_action, disk_bytes_limit),
        (LimitName::Members, members_action, members_limit),
        (LimitName::Exports, exports_action, exports_limit),
    ];
    let (mut edits, mut patch) = (Edits::of(&seen), LimitsPatch::default());
    for (name, action, number) in sent {
        let (shown_action, shown_number) = chosen(stored.get(name));
        let (of_action, of_number) = (action_field(name), number_field(name));
        let acts = edits.is_own(&of_action, &action_label(name), &action, shown_action);
        let counts = edits.is_own(&of_number, &number_label(name), &number, &shown_number);
        if acts || counts {
            let limit = limit_of(&of_number, &number)?;
            let has_no_number = [DEFAULT_WORD, NONE_WORD].contains(&action.as_str());
            if counts && has_no_number && limit != Patch::Clear {
                let detail = "Choose what happens beyond the limit, or remove the number.";
                return Err(UiError::field(&of_action, "required", detail));
            }
            *patch.get_mut(name) = LimitPatch { limit, action: Some(action) };
        }
    }
    edits.check()?;
    services.limits.set(&ctx, &id, patch).await.map_err(ui_error)?;
    let page = format!("/instance/organizations/{id}");
    redirect_with_notice(&page, &format!("The limits of {} are saved.", organization.name));
    Ok(())
}

/// The number in a field; empty: none.
#[cfg(feature = "ssr")]
fn limit_of(field: &str, text: &str) -> Result<weir_model::Patch<i64>, UiError> {
    use weir_model::Patch;

    match text.trim() {
        "" => Ok(Patch::Clear),
        text => text
            .parse()
            .map(Patch::Set)
            .map_err(|_| UiError::field(field, "invalid_input", "Enter a whole number.")),
    }
}
