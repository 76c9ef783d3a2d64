//! The facts of a handler's signature about its operation: the arguments are what it
//! reads, the type of its answer is what it sends.
//!
//! A new argument type gets an [`Argument`], a new answer type an [`Answer`], next to the
//! others below.

use std::future::Future;

use axum::Json;
use axum::extract::State;
use http::HeaderMap;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use weir_model::invites::Invite;
use weir_model::plugin_configs::PluginConfigFrontend;

use crate::api::invites::Invited;
use crate::api::persons::{Exported, LINES};
use crate::api::plugin_configs::{Frontend, MODULE};
use crate::api::plugins::answers::Shaped;
use crate::api::saml::Metadata;
use crate::api::streamed::Streamed;
use crate::api::{Accepted, Created, NoContent, Nothing};
use crate::app::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{ApiItems, ApiJson, Authorized, PathParams, PathTarget};
use crate::http::guards::Guard;
use crate::http::input::{Fields, Input, InputField};
use crate::http::pagination::{Filters, Listing, Parameter, Params};
use crate::http::visitor::{Opened, Visitor};
use crate::openapi::Document;
use crate::openapi::pages::Page;

/// The facts about an operation.
#[derive(Default)]
pub struct Description {
    /// Results of a page, usual and at most, if it takes `limit` and `offset`.
    pub paged: Option<(u64, u64)>,
    /// Further query parameters.
    pub filters: &'static [Parameter],
    /// The body that it reads.
    pub body: Option<Body>,
    /// Its success answer; `None` if the operation is always refused.
    pub answer: Option<Good>,
    /// Media types other than JSON, for callers that ask for them.
    pub media: &'static [&'static str],
    /// Whether the operation returns the document itself, and is omitted from it.
    pub hidden: bool,
    /// Schemas that the answer refers to, by name.
    pub schemas: Vec<(String, RefOr<Schema>)>,
}

/// The body of a request.
#[derive(Debug)]
pub struct Body {
    /// The fields, or the fault of the example.
    pub fields: Result<Vec<InputField>, String>,
    /// A body that is accepted, as JSON text.
    pub example: &'static str,
    /// Whether a list of such bodies is accepted too.
    pub or_many: bool,
}

/// The success answer of an operation.
pub struct Good {
    /// The HTTP status code.
    pub status: u16,
    /// Its success answer; `None` if the operation is always refused.
    pub schema: Option<RefOr<Schema>>,
    /// Whether a list of bodies is answered with a list of answers.
    pub or_many: bool,
}

/// An argument of a handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what it reads, so it cannot be an argument of a handler",
    note = "implement `Argument` for it in server/src/openapi/operation.rs; see docs/adding-an-endpoint.md"
)]
pub trait Argument {
    /// Adds the data that it reads.
    fn describe(description: &mut Description);
}

/// The answer type of a handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what is sent, so a handler cannot answer it",
    note = "answer `ApiResult` of `Json<T>`, `Created<T>` or `NoContent`, where `T` derives `utoipa::ToSchema`; see docs/adding-an-endpoint.md"
)]
pub trait Answer {
    /// Adds the data that is sent.
    fn describe(description: &mut Description);
}

/// A handler that describes itself.
#[diagnostic::on_unimplemented(
    message = "the handler `{Self}` does not describe itself",
    note = "every argument must be an `Argument` and the answer an `Answer` (server/src/openapi/operation.rs); see docs/adding-an-endpoint.md"
)]
pub trait Operation<T> {
    /// The facts in its signature.
    fn describe() -> Description;
}

macro_rules! operations {
    ($(($($argument:ident),*))+) => {$(
        impl<F, Fut, M, $($argument),*> Operation<(M, $($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut,
            Fut: Future,
            Fut::Output: Answer,
            $($argument: Argument,)*
        {
            fn describe() -> Description {
                let mut description = Description::default();
                $($argument::describe(&mut description);)*
                Fut::Output::describe(&mut description);
                description
            }
        }
    )+};
}

operations! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) }

impl<S: Guard, W: PathTarget> Argument for Authorized<S, W> {
    fn describe(_description: &mut Description) {}
}

impl Argument for State<App> {
    fn describe(_description: &mut Description) {}
}

/// The path itself contains its parameters.
impl Argument for PathParams {
    fn describe(_description: &mut Description) {}
}

impl Argument for HeaderMap {
    fn describe(_description: &mut Description) {}
}

/// A session is not a credential of the API. The request may have one.
impl Argument for Visitor {
    fn describe(_description: &mut Description) {}
}

impl<F: Filters> Argument for Listing<F> {
    fn describe(description: &mut Description) {
        description.paged = Some((F::USUAL, F::MOST));
        description.filters = F::PARAMETERS;
    }
}

impl<F: Filters> Argument for Params<F> {
    fn describe(description: &mut Description) {
        description.filters = F::PARAMETERS;
    }
}

impl<T: Input> Argument for ApiJson<T> {
    fn describe(description: &mut Description) {
        let fields = Fields::fields_of::<T>().map_err(|fault| format!("{fault:?}"));
        description.body = Some(Body { fields, example: T::EXAMPLE, or_many: false });
    }
}

/// A list of such bodies is accepted too.
impl<T: Input> Argument for ApiItems<T> {
    fn describe(description: &mut Description) {
        ApiJson::<T>::describe(description);
        if let Some(body) = &mut description.body {
            body.or_many = true;
        }
    }
}

impl<R: Answer> Answer for ApiResult<R> {
    fn describe(description: &mut Description) {
        R::describe(description);
    }
}

impl<T: ToSchema> Answer for Json<T> {
    fn describe(description: &mut Description) {
        describe_body::<T>(200, description);
    }
}

impl<T: ToSchema> Answer for Streamed<T> {
    fn describe(description: &mut Description) {
        describe_body::<T>(200, description);
    }
}

impl<T: ToSchema> Answer for Created<T> {
    fn describe(description: &mut Description) {
        describe_body::<T>(201, description);
    }
}

impl<T: ToSchema> Answer for Accepted<T> {
    fn describe(description: &mut Description) {
        describe_body::<T>(202, description);
    }
}

/// A caller that asks for JSON lines gets these.
impl<T: ToSchema> Answer for Exported<T> {
    fn describe(description: &mut Description) {
        describe_body::<T>(200, description);
        description.media = LINES;
    }
}

impl<T: ToSchema, const STATUS: u16> Answer for Opened<T, STATUS> {
    fn describe(description: &mut Description) {
        describe_body::<T>(STATUS, description);
    }
}

/// A list is answered with a list of invites.
impl Answer for Invited {
    fn describe(description: &mut Description) {
        describe_body::<Invite>(200, description);
        if let Some(answer) = &mut description.answer {
            answer.or_many = true;
        }
    }
}

/// Describes the usual form. `raw=true` asks for another one, which is not documented.
impl<T: ToSchema> Answer for Shaped<T> {
    fn describe(description: &mut Description) {
        describe_body::<T>(200, description);
    }
}

/// A caller that asks for JavaScript gets the module alone.
impl Answer for Frontend {
    fn describe(description: &mut Description) {
        describe_body::<PluginConfigFrontend>(200, description);
        description.media = MODULE;
    }
}

impl Answer for NoContent {
    fn describe(description: &mut Description) {
        description.answer = Some(Good { status: 204, schema: None, or_many: false });
    }
}

impl Answer for Nothing {
    fn describe(description: &mut Description) {
        description.answer = Some(Good { status: 200, schema: None, or_many: false });
    }
}

/// The operation is always refused.
impl Answer for ApiError {
    fn describe(_description: &mut Description) {}
}

impl Answer for Metadata {
    fn describe(description: &mut Description) {
        description.hidden = true;
    }
}

impl Answer for Document {
    fn describe(description: &mut Description) {
        description.hidden = true;
    }
}

impl Answer for Page {
    fn describe(description: &mut Description) {
        description.hidden = true;
    }
}

fn describe_body<T: ToSchema>(status: u16, description: &mut Description) {
    T::schemas(&mut description.schemas);
    let schema = match T::schema() {
        // It gets a name, so that generated clients have a type for it.
        whole @ RefOr::T(Schema::Object(_) | Schema::AllOf(_)) => {
            let name = T::name().into_owned();
            description.schemas.push((name.clone(), whole));
            RefOr::Ref(utoipa::openapi::schema::Ref::from_schema_name(name))
        }
        other => other,
    };
    description.answer = Some(Good { status, schema: Some(schema), or_many: false });
}
