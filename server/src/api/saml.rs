//! `/api/saml/metadata/`: this instance as a SAML service provider, for identity providers
//! that read it. It is XML, and no part of the API document.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;

use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::pagination::Params;
use crate::http::visitor::Visitor;

filters! {
    /// For which identity provider the metadata is.
    MetadataFilters {
        "domain": Uuid, "The domain whose certificate for signed requests the metadata has.";
    }
}

/// The metadata of this instance.
pub struct Metadata(String);

/// The metadata that an administrator gives to an identity provider.
pub async fn get_metadata(
    visitor: Visitor,
    State(app): State<App>,
    params: Params<MetadataFilters>,
) -> ApiResult<Metadata> {
    let domain = params.param("domain").and_then(|domain| domain.parse().ok());
    Ok(Metadata(app.services.providers.metadata(&visitor.origin, domain).await?))
}

impl IntoResponse for Metadata {
    fn into_response(self) -> Response {
        let headers = [(header::CONTENT_TYPE, "application/samlmetadata+xml")];
        (headers, self.0).into_response()
    }
}
