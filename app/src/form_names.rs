//! Names that forms and the server agree on.

/// Prefix of the names of fields whose values are not kept when a form fails. The form
/// has a hidden field with the prefixed name.
pub const SECRET_MARK: &str = "secret:";
/// Name under which the typed values of a form carry the path of its server function.
pub const FUNCTION: &str = "__path";
/// Query parameter of the page whose form was not saved because the user had to sign in
/// first.
pub const KEPT: &str = "__kept";
/// Query parameter with the path of the server function whose form was carried out.
pub const DONE: &str = "__done";
/// Query parameter with the path of the server function whose form failed.
pub const FAILED: &str = "__path";
/// Query parameter with the error of that form, as JSON.
pub const ERROR: &str = "__err";
