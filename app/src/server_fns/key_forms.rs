//! Forms of personal API keys: creating and editing.
//!
//! What does not belong here: the list and other actions (`keys`).

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use super::keys::reveal;
#[cfg(feature = "ssr")]
use crate::context::{enter, enter_with_token, ui_error};
use crate::error::UiError;

/// Name of the value that the form compares for concurrent edits: the key as a whole.
pub(crate) const KEY: &str = "key";

/// A choice of the lifetime of a new key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Expiry {
    /// Number of days. 0: the key does not expire.
    pub(crate) days: u16,
    /// The last day, such as 18 Feb 2027.
    pub(crate) until: Option<String>,
}

/// Data for the form of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeyOffer {
    /// Choices of the lifetime.
    pub(crate) expiries: Vec<Expiry>,
    /// The first valid expiry day, such as 2027-02-18.
    pub(crate) today: String,
    /// Organizations to choose from: id and name.
    pub(crate) organizations: Vec<(String, String)>,
    /// Projects to choose from: number, name, name of the organization.
    pub(crate) projects: Vec<(i64, String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KeyLimits {
    /// `organizations`, `projects`, or empty for everything that the user can access.
    pub(crate) kind: String,
    /// Ids of organizations.
    pub(crate) organizations: Vec<String>,
    /// Numbers of projects.
    pub(crate) projects: Vec<i64>,
}

/// Returns the data for the form of a key. Requires a recent sign-in before the form is
/// shown, so that typed values are not lost later.
#[server(prefix = "/_fn", endpoint = "get_key_offer")]
pub(crate) async fn get_key_offer() -> Result<KeyOffer, UiError> {
    use weir_model::pagination::{MAX_LIMIT, Page};

    let (services, ctx) = enter()?;
    weir_service::policy::recent_person_only(&ctx).map_err(ui_error)?;
    let until = |days: i64| ctx.now.plus_seconds(days * 24 * 60 * 60).to_chrono();
    let offer = |days: u16| Expiry {
        days,
        until: (days > 0).then(|| until(days.into()).format("%-d %b %Y").to_string()),
    };
    let page = Page { limit: MAX_LIMIT, offset: 0 };
    let found = services.organizations.list(&ctx, page).await.map_err(ui_error)?.results;
    let mut projects = Vec::new();
    for organization in &found {
        let of = |project: &weir_model::projects::ProjectBrief| {
            (project.id.0, project.name.clone(), organization.row.name.clone())
        };
        projects.extend(organization.teams.iter().map(of));
    }
    Ok(KeyOffer {
        expiries: [7, 30, 90, 365, 0].into_iter().map(offer).collect(),
        today: ctx.now.day_text(),
        organizations: found
            .into_iter()
            .map(|one| (one.row.id.to_string(), one.row.name))
            .collect(),
        projects,
    })
}

/// Creates a key and redirects to the page that shows its value.
#[server(prefix = "/_fn", endpoint = "create_key")]
pub(crate) async fn create_key(
    label: String,
    preset: String,
    // One value per object. Empty for no access.
    #[server(default)] scopes: Vec<String>,
    #[server(default)] reach: KeyLimits,
    days: String,
    #[server(default)] last_day: String,
) -> Result<(), UiError> {
    use weir_service::keys::check_input;

    let (services, ctx, token) = enter_with_token()?;
    let KeyLimits { projects, organizations, .. } = limits(reach)?;
    let expires_at = end(&days, &last_day, ctx.now)?;
    let scopes = of_preset(&preset, scopes);
    let input = check_input(&label, &scopes, &projects, &organizations, expires_at)
        .map_err(UiError::Field)?;
    let key = services.keys.create(&ctx, input).await.map_err(|error| at_field(ui_error(error)))?;
    reveal(&services, &ctx, &token, key).await
}

/// Changes the label, scopes and limits of a key.
#[server(prefix = "/_fn", endpoint = "update_key")]
pub(crate) async fn update_key(
    id: String,
    #[server(default)] seen: String,
    label: String,
    preset: String,
    #[server(default)] scopes: Vec<String>,
    #[server(default)] reach: KeyLimits,
) -> Result<(), UiError> {
    use weir_model::keys::PersonalKeyPatch;
    use weir_service::keys::check_input;

    use crate::edits::{FormFingerprints, changed_elsewhere, fingerprint};

    let (services, ctx) = enter()?;
    // The scopes and limits are one value: parts of two concurrent edits are not
    // combined.
    let now = super::keys::get_key(id.clone()).await?.edited();
    if FormFingerprints::read(&seen).print(KEY).is_some_and(|print| print != fingerprint(&now)) {
        let detail = "The form shows the current key. Make your change again.";
        return Err(changed_elsewhere(detail));
    }
    let KeyLimits { projects, organizations, .. } = limits(reach)?;
    let scopes = of_preset(&preset, scopes);
    let input =
        check_input(&label, &scopes, &projects, &organizations, None).map_err(UiError::Field)?;
    let patch = PersonalKeyPatch {
        label: Some(input.label),
        scopes: Some(input.scopes),
        scoped_teams: Some(input.scoped_teams),
        scoped_organizations: Some(input.scoped_organizations),
    };
    let id = weir_model::KeyId(id);
    services.keys.update(&ctx, &id, patch).await.map_err(|error| at_field(ui_error(error)))?;
    Ok(())
}

/// The scopes of a preset. `custom` returns the chosen scopes.
fn of_preset(preset: &str, chosen: Vec<String>) -> Vec<String> {
    use weir_model::scopes::{Scope, ScopeObject};

    use crate::key_words::access_of;

    if preset == "all" {
        return vec![Scope::All.to_string()];
    }
    match access_of(preset) {
        Some(access) => ScopeObject::OFFERED
            .iter()
            .zip(access)
            .filter_map(|(object, action)| Some(Scope::On(*object, action?).to_string()))
            .collect(),
        None => chosen.into_iter().filter(|scope| !scope.is_empty()).collect(),
    }
}

/// The chosen limits. Hidden fields of the form are ignored.
fn limits(reach: KeyLimits) -> Result<KeyLimits, UiError> {
    let none = |what: &str| {
        UiError::field("reach", "required", &format!("Choose at least one {what}, or all."))
    };
    match reach.kind.as_str() {
        "organizations" if reach.organizations.is_empty() => Err(none("organization")),
        "organizations" => Ok(KeyLimits { projects: Vec::new(), ..reach }),
        "projects" if reach.projects.is_empty() => Err(none("project")),
        "projects" => Ok(KeyLimits { organizations: Vec::new(), ..reach }),
        _ => Ok(KeyLimits::default()),
    }
}

/// The expiry of a key: after a number of days, at the end of a day, or never.
fn end(
    days: &str,
    last_day: &str,
    now: weir_model::Timestamp,
) -> Result<Option<weir_model::Timestamp>, UiError> {
    use weir_model::Timestamp;

    let wrong = |detail: &str| UiError::field("last_day", "invalid_input", detail);
    if days == "date" {
        let end = Timestamp::parse(&format!("{last_day}T23:59:59Z"));
        let end = end.ok_or_else(|| wrong("Choose the last day."))?;
        return if end > now { Ok(Some(end)) } else { Err(wrong("This day is over.")) };
    }
    match days.parse::<u16>() {
        Ok(0) => Ok(None),
        Ok(days) => Ok(Some(now.plus_seconds(i64::from(days) * 24 * 60 * 60))),
        Err(_) => Err(UiError::field("days", "invalid_input", "Choose how long the key works.")),
    }
}

/// Moves an error to the field that shows it.
fn at_field(error: UiError) -> UiError {
    match error {
        UiError::Field(fault)
            if matches!(fault.attr.as_deref(), Some("scoped_teams" | "scoped_organizations")) =>
        {
            UiError::field("reach", &fault.code, &fault.detail)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use weir_model::Timestamp;

    use super::{KeyLimits, end, limits, of_preset};

    #[test]
    fn presets_become_scopes() {
        let chosen = || vec![String::new(), "event:read".to_owned()];
        assert_eq!(of_preset("all", chosen()), ["*"]);
        assert_eq!(of_preset("custom", chosen()), ["event:read"]);
        assert!(of_preset("read", chosen()).iter().all(|scope| scope.ends_with(":read")));
        let members = of_preset("members", chosen());
        assert_eq!(members, ["organization:read", "organization_member:write"]);
    }

    #[test]
    fn ends() {
        let now = Timestamp::parse("2026-08-21T12:00:00Z").unwrap();
        let text = |days: &str, day: &str| {
            end(days, day, now).map(|end| end.map(|end| end.to_string())).ok()
        };
        assert_eq!(text("0", ""), Some(None));
        assert_eq!(text("7", ""), Some(Some("2026-08-28T12:00:00Z".to_owned())));
        assert_eq!(text("date", "2026-08-21"), Some(Some("2026-08-21T23:59:59Z".to_owned())));
        for (days, day) in [("date", "2026-08-20"), ("date", ""), ("date", "soon"), ("x", "")] {
            assert_eq!(text(days, day), None, "{days} {day}");
        }
    }

    #[test]
    fn limits_match_the_form() {
        let chosen = |kind: &str| {
            let (organizations, projects) = (vec!["a".to_owned()], vec![1]);
            limits(KeyLimits { kind: kind.to_owned(), organizations, projects }).unwrap()
        };
        assert_eq!(chosen(""), KeyLimits::default());
        assert_eq!(
            (chosen("organizations").organizations.len(), chosen("projects").projects),
            (1, vec![1])
        );
        assert!(chosen("organizations").projects.is_empty());
        assert!(chosen("projects").organizations.is_empty());
        let none = KeyLimits { kind: "projects".to_owned(), ..KeyLimits::default() };
        assert_eq!(limits(none).unwrap_err().attr(), Some("reach"));
    }
}
