//! `/api/schema/` and `/api/docs/`: the description of the API, for programs and people.

use http::HeaderMap;

use crate::http::error::ApiResult;
use crate::http::extract::PathParams;
use crate::openapi::Document;
use crate::openapi::pages::Page;

/// The API document.
pub async fn get_schema(headers: HeaderMap) -> ApiResult<Document> {
    Document::accepted_by(&headers)
}

/// The API document as a page.
pub async fn get_docs() -> ApiResult<Page> {
    Page::overview()
}

/// The operations of one resource as a page.
pub async fn get_docs_of_resource(path: PathParams) -> ApiResult<Page> {
    Page::of(path.get("resource")?)
}
