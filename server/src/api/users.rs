//! `/api/users/@me/` (API-29): the user of the key.

use axum::Json;
use axum::extract::State;
use serde_json::json;
use weir_model::Patch;
use weir_model::errors::FieldError;
use weir_model::users::Me;
use weir_model::{OrganizationId, ProjectId, validate};
use weir_service::users::{MePatch, NAME_MAX, THEMES};

use crate::api::refuse_key;
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{ApiJson, Authorized, PathParams};
use crate::http::guards::{AnyKey, UserRead, UserWrite};
use crate::http::input::{Fields, Input};

/// Fields that a user signs in with. A key cannot change them, because the change would
/// outlast the key. They are refused and not ignored: otherwise a script would believe
/// that it has changed the password.
const CREDENTIALS: [&str; 3] = ["email", "password", "current_password"];
/// Longest text of an id, in characters.
const REFERENCE_MAX: usize = 64;

/// The user of the key.
pub async fn get_user(
    auth: Authorized<UserRead>,
    path: PathParams,
    State(app): State<App>,
) -> ApiResult<Json<Me>> {
    app.services.users.enter(&auth.ctx, path.get("user_id")?).await?;
    Ok(Json(app.services.users.me(&auth.ctx).await?))
}

/// Change the caller's settings, current organization or current project.
pub async fn update_user(
    auth: Authorized<UserWrite>,
    path: PathParams,
    State(app): State<App>,
    body: ApiJson<UserChange>,
) -> ApiResult<Json<Me>> {
    let users = &app.services.users;
    users.enter(&auth.ctx, path.get("user_id")?).await?;
    if CREDENTIALS.iter().any(|name| body.has(name)) {
        return Err(refuse_key(&auth.ctx));
    }
    let change = body.checked()?;
    // This can still be refused, so it comes first. All other fields are checked already.
    users.set_current(&auth.ctx, change.organization, change.project).await?;
    Ok(Json(users.update_me(&auth.ctx, change.settings).await?))
}

/// Delete the user. Always refused for keys; use the web app.
pub async fn delete_user(auth: Authorized<AnyKey>) -> ApiError {
    refuse_key(&auth.ctx)
}

/// The body of PATCH: changed settings, current organization and project.
#[derive(Debug)]
pub struct UserChange {
    settings: MePatch,
    organization: Option<OrganizationId>,
    project: Option<ProjectId>,
}

impl Input for UserChange {
    const EXAMPLE: &'static str = r#"{"first_name": "Ada", "theme_mode": "dark"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let first_name = fields.text("first_name", NAME_MAX)?;
        let last_name = fields.optional_text("last_name", NAME_MAX)?;
        refuse_notifications(fields)?;
        Ok(Self {
            settings: MePatch { first_name, last_name, theme_mode: theme(fields)? },
            organization: reference(fields, "set_current_organization")?,
            project: reference(fields, "set_current_team")?,
        })
    }
}

/// There are no notification mails yet that a user could turn off.
fn refuse_notifications(fields: &Fields) -> Result<(), FieldError> {
    if fields.has("notification_settings") {
        let detail = "Notifications cannot be set: this instance sends none.";
        return Err(FieldError::new("notification_settings", "invalid_input", detail));
    }
    Ok(())
}

fn theme(fields: &Fields) -> Result<Patch<String>, FieldError> {
    let theme = fields.nullable_text("theme_mode", REFERENCE_MAX)?;
    fields.refine("theme_mode", || {
        let words = THEMES.iter().map(|word| Some(*word)).chain([None]);
        json!({"enum": words.collect::<Vec<_>>()})
    });
    match &theme {
        Patch::Set(word) if !THEMES.contains(&word.as_str()) => {
            Err(validate::invalid_choice("theme_mode", word))
        }
        Patch::Set(_) | Patch::Clear | Patch::Keep => Ok(theme),
    }
}

/// An id of something that must exist. A malformed id is treated as unknown.
fn reference<T: std::str::FromStr>(fields: &Fields, name: &str) -> Result<Option<T>, FieldError> {
    match fields.text(name, REFERENCE_MAX)? {
        Patch::Keep | Patch::Clear => Ok(None),
        Patch::Set(text) => text.parse().map(Some).map_err(|_| {
            let detail = format!("Object with id={text} does not exist.");
            FieldError::new(name, "does_not_exist", detail)
        }),
    }
}
