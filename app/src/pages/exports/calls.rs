//! What is done with exports, as requests to the API.

use crate::server_fns::exports::ExportHead;
use crate::ui::api_request::ApiCall;

/// A request about the export; `rest` is what it does, if not by its method.
pub(super) fn call(method: &'static str, found: &ExportHead, rest: &str) -> ApiCall {
    let (organization, export) = (&found.house.id, &found.export.id);
    let path = format!("/api/organizations/{organization}/batch_exports/{export}/{rest}");
    ApiCall::new(method, path, "batch_export:write")
}
