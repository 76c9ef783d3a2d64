//! `/api/users/@me/` (management-api 5.4): who the key acts for.

use axum::Json;
use axum::extract::State;
use weir_model::Patch;
use weir_model::errors::FieldError;
use weir_model::users::Me;
use weir_model::{OrganizationId, ProjectId};
use weir_service::Error as ServiceError;
use weir_service::users::{MePatch, NAME_MAX, THEMES};

use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, PathParams};
use crate::http::guards::{UserRead, UserWrite};
use crate::http::input::{Fields, Input};

/// What callers hear who ask for anybody else.
const ONLY_ME: &str = "As a non-staff user you're only allowed to access the `@me` user instance.";
/// Longest text of a reference, in characters.
const REFERENCE_MAX: usize = 64;

/// The caller.
pub async fn get_user(
    auth: Authorized<UserRead>,
    path: PathParams,
    State(app): State<App>,
) -> ApiResult<Json<Me>> {
    only_me(&path)?;
    Ok(Json(app.services.users.me(&auth.ctx).await?))
}

/// Change one's own settings, and what one looks at.
pub async fn update_user(
    auth: Authorized<UserWrite>,
    path: PathParams,
    State(app): State<App>,
    body: ApiJson<UserChange>,
) -> ApiResult<Json<Me>> {
    only_me(&path)?;
    let change = body.checked()?;
    let users = &app.services.users;
    // First what can still be refused: all other fields are checked already.
    users.set_current(&auth.ctx, change.organization, change.project).await?;
    Ok(Json(users.update_me(&auth.ctx, change.settings).await?))
}

/// The rule stands before the look-up, so that it reveals nobody.
fn only_me(path: &PathParams) -> ApiResult<()> {
    if path.get("user_id")? == "@me" {
        Ok(())
    } else {
        Err(ServiceError::Forbidden(ONLY_ME.to_owned()).into())
    }
}

/// The body of PATCH.
#[derive(Debug)]
pub struct UserChange {
    settings: MePatch,
    organization: Option<OrganizationId>,
    project: Option<ProjectId>,
}

impl Input for UserChange {
    fn read(fields: &Fields) -> Result<Self, FieldError> {
        Ok(Self {
            settings: MePatch {
                first_name: fields.text("first_name", NAME_MAX)?,
                last_name: fields.optional_text("last_name", NAME_MAX)?,
                theme_mode: theme(fields)?,
            },
            organization: reference(fields, "set_current_organization")?,
            project: reference(fields, "set_current_team")?,
        })
    }
}

fn theme(fields: &Fields) -> Result<Patch<String>, FieldError> {
    let theme = fields.nullable_text("theme_mode", REFERENCE_MAX)?;
    match &theme {
        Patch::Set(word) if !THEMES.contains(&word.as_str()) => Err(FieldError::new(
            "theme_mode",
            "invalid_choice",
            format!("\"{word}\" is not a valid choice."),
        )),
        Patch::Set(_) | Patch::Clear | Patch::Keep => Ok(theme),
    }
}

/// An id of something that must exist. A malformed id names nothing.
fn reference<T: std::str::FromStr>(fields: &Fields, name: &str) -> Result<Option<T>, FieldError> {
    match fields.text(name, REFERENCE_MAX)? {
        Patch::Keep | Patch::Clear => Ok(None),
        Patch::Set(text) => text.parse().map(Some).map_err(|_| {
            let detail = format!("Object with id={text} does not exist.");
            FieldError::new(name, "does_not_exist", detail)
        }),
    }
}
