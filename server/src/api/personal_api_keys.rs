//! `/api/personal_api_keys/` (API-17). A key may read itself, whatever its scopes. Other
//! operations are refused: keys are created in the web app, never with another key.

use axum::Json;
use axum::extract::State;
use weir_model::KeyId;
use weir_model::keys::PersonalKey;

use crate::api::refuse_key;
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Authorized, PathParams};
use crate::http::guards::AnyKey;

/// The key of the request (`@current`), or one key by its id.
pub async fn get_personal_api_key(
    auth: Authorized<AnyKey>,
    path: PathParams,
    State(app): State<App>,
) -> ApiResult<Json<PersonalKey>> {
    let key = match path.get("id")? {
        "@current" => app.services.keys.current(&auth.ctx).await?,
        id => app.services.keys.get(&auth.ctx, &KeyId(id.to_owned())).await?,
    };
    Ok(Json(key))
}

/// List personal API keys. Always refused for keys; use the web app.
pub async fn list_personal_api_keys(auth: Authorized<AnyKey>) -> ApiError {
    refuse_key(&auth.ctx)
}

/// Create a personal API key. Always refused for keys; use the web app.
pub async fn create_personal_api_key(auth: Authorized<AnyKey>) -> ApiError {
    refuse_key(&auth.ctx)
}

/// Change a personal API key. Always refused for keys; use the web app.
pub async fn update_personal_api_key(auth: Authorized<AnyKey>) -> ApiError {
    refuse_key(&auth.ctx)
}

/// Delete a personal API key. Always refused for keys; use the web app.
pub async fn delete_personal_api_key(auth: Authorized<AnyKey>) -> ApiError {
    refuse_key(&auth.ctx)
}

/// Replace a personal API key. Always refused for keys; use the web app.
pub async fn roll_personal_api_key(auth: Authorized<AnyKey>) -> ApiError {
    refuse_key(&auth.ctx)
}
