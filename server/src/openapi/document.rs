//! The document: info, paths with their operations, and components.

use http::Method;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema as _, ToSchema as _};
use weir_model::errors::ErrorBody;
use weir_model::scopes::Scope;

use super::operation::{Body, Description, Good};
use super::responses::{self, Facts};
use super::schemas::{self, Schemas};
use super::{example, generators, parameters};
use crate::router::{PublicRoute, Route};

/// Why there is no document. All of these are mistakes in the program, which tests find.
#[derive(Debug, thiserror::Error)]
pub enum Defect {
    /// A path names an id after a collection that `parameters.rs` does not know.
    #[error("server/src/openapi/parameters.rs does not say what the id in {path} is")]
    UnknownPathId {
        /// The path.
        path: String,
    },
    /// The example of a body is not accepted.
    #[error("the example of the body of {operation} is refused: {fault}")]
    BadExample {
        /// Id of the operation.
        operation: String,
        /// The fault of the example.
        fault: String,
    },
    /// Two types have the same name in the document.
    #[error("two types are called {name} in the API document; give one `#[schema(as = …)]`")]
    TwoSchemas {
        /// The name.
        name: String,
    },
    /// A schema cannot be written as JSON.
    #[error("a schema cannot be written")]
    Unwritable(#[source] serde_json::Error),
}

const INTRODUCTION: &str = "The management API of Weir. It speaks the protocol of PostHog's \
    management API, so that its clients work unchanged.\n\n\
    Send a personal API key as `Authorization: Bearer phx_…`; every operation names the scope \
    that the key needs. Times are ISO 8601 in UTC. Lists take `limit` and `offset` and answer \
    `{count, next, previous, results}`. Bodies are JSON; forms of the same fields are taken too. \
    Numbers are taken for texts, words such as `yes` for booleans; unknown and read-only fields \
    are ignored. Errors have one form: `type`, `code`, `detail` for people, and `attr`, the field \
    at fault. The slash at the end of a path is optional.";

/// Begins the id of a `PUT` that is the same as the `PATCH` of its path.
pub(super) const SHARED: &str = "put_";

/// An operation of either route table.
struct Operation<'a> {
    method: &'a Method,
    path: &'static str,
    name: &'static str,
    /// Scopes of an operation that needs a key.
    scopes: Option<&'static [Scope]>,
    description: Description,
}

impl Operation<'_> {
    /// The function's name, which is unique among operations.
    fn id(&self) -> &'static str {
        self.name.rsplit("::").next().unwrap_or(self.name)
    }

    /// The module of the handler: its resource.
    fn tag(&self) -> String {
        let module = self.name.split("::").next().unwrap_or(self.name);
        sentence(module)
    }
}

/// The document of these tables.
///
/// # Errors
/// [`Defect`] if the program has a mistake.
pub fn of(routes: &[Route], public: &[PublicRoute]) -> Result<Value, Defect> {
    let guarded = routes.iter().map(|route| Operation {
        method: &route.method,
        path: route.path,
        name: route.name,
        scopes: Some(route.scopes),
        description: (route.describe)(),
    });
    let open = public.iter().map(|route| Operation {
        method: &route.method,
        path: route.path,
        name: route.name,
        scopes: None,
        description: (route.describe)(),
    });
    let operations: Vec<Operation<'_>> =
        guarded.chain(open).filter(|operation| !operation.description.hidden).collect();

    let mut schemas = schemas_of(&operations)?;
    schemas.settle();
    for operation in &operations {
        if let Some(fields) = fields(operation)? {
            let answer = answered(operation);
            let body = schemas.body(fields, answer);
            schemas.insert(body_name(operation.id()), body);
        }
    }
    let mut paths: Map<String, Value> = Map::new();
    let mut tags: Vec<String> = Vec::new();
    for operation in &operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        let method = operation.method.as_str().to_ascii_lowercase();
        let mut item = item(operation, &schemas)?;
        schemas.settle_one(&mut item);
        path[method] = item;
        if !tags.contains(&operation.tag()) {
            tags.push(operation.tag());
        }
    }
    paths.values_mut().for_each(share_patch);
    let tags: Vec<Value> = tags.iter().map(|tag| json!({"name": tag})).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Weir management API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This instance"}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A personal API key (`phx_…`), made in the web app.",
            }},
            "headers": responses::headers(),
            "responses": responses::components(),
            "schemas": schemas.into_map(),
        },
    });
    generators::fit(&mut document);
    Ok(document)
}

/// Adds the `PUT` that the router answers like the `PATCH` of a path.
fn share_patch(path: &mut Value) {
    let Some(patch) = path.get("patch").filter(|_| path.get("put").is_none()) else { return };
    let mut put = patch.clone();
    let text = |name: &str| patch[name].as_str().unwrap_or_default();
    put["operationId"] = json!(format!("{SHARED}{}", text("operationId")));
    put["summary"] = json!(format!("{} (PUT)", text("summary")));
    put["description"] = json!(format!("The same as `PATCH`. {}", text("description")));
    path["put"] = put;
}

fn schemas_of(operations: &[Operation<'_>]) -> Result<Schemas, Defect> {
    let mut schemas = Schemas::default();
    let mut errors = Vec::new();
    ErrorBody::schemas(&mut errors);
    errors.push((ErrorBody::name().into_owned(), ErrorBody::schema()));
    schemas.add(&errors)?;
    for operation in operations {
        schemas.add(&operation.description.schemas)?;
        if let (Some(fields), Some(resource)) = (fields(operation)?, answered(operation)) {
            schemas.written(resource, fields);
        }
    }
    Ok(schemas)
}

/// The fields of the body, after its example was accepted.
fn fields<'a>(
    operation: &'a Operation<'_>,
) -> Result<Option<&'a [crate::http::input::InputField]>, Defect> {
    let Some(Body { fields, .. }) = &operation.description.body else { return Ok(None) };
    match fields {
        Ok(fields) => Ok(Some(fields)),
        Err(fault) => {
            Err(Defect::BadExample { operation: operation.id().to_owned(), fault: fault.clone() })
        }
    }
}

/// Name of the resource that an operation returns.
fn answered<'a>(operation: &'a Operation<'_>) -> Option<&'a str> {
    let Some(Good { schema: Some(utoipa::openapi::RefOr::Ref(reference)), .. }) =
        &operation.description.answer
    else {
        return None;
    };
    reference.ref_location.rsplit('/').next()
}

/// `update_project` becomes `UpdateProjectInput`. Generators of clients make the names
/// `…Body`, `…Request` and `…Data` themselves.
fn body_name(id: &str) -> String {
    let words = id.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{}{rest}", first.to_ascii_uppercase())
    });
    format!("{}Input", words.collect::<String>())
}

/// `list_api_keys` becomes "List API keys".
fn sentence(name: &str) -> String {
    let mut text = name.replace('_', " ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    for (word, written) in [(" api ", " API "), (" sso ", " SSO "), ("groups types", "group types")]
    {
        text = text.replace(word, written);
    }
    text
}

fn item(operation: &Operation<'_>, schemas: &Schemas) -> Result<Value, Defect> {
    let Operation { method, path, scopes, description, .. } = operation;
    let mut item = json!({
        "operationId": operation.id(),
        "summary": sentence(operation.id()),
        "description": rights(*scopes, description),
        "tags": [operation.tag()],
        "security": security(*scopes),
        "parameters": parameters::of(path, description)?,
    });
    if let Some(scopes) = scopes {
        let words: Vec<String> = scopes.iter().map(Scope::to_string).collect();
        item["x-required-scopes"] = json!(words);
    }
    let mut sent = None;
    if let Some(body) = &description.body {
        let name = body_name(operation.id());
        let example: Value = serde_json::from_str(body.example).map_err(Defect::Unwritable)?;
        let required = schemas.get(&name).is_some_and(|schema| schema.get("required").is_some());
        item["requestBody"] = json!({
            "required": required,
            "content": {"application/json": {
                "schema": one_or_many(schemas::reference(&name), body.or_many),
                "example": example,
            }},
        });
        sent = Some(example);
    }
    let facts = Facts { method, path, guarded: scopes.is_some(), description };
    let mut answers = responses::refusals(&facts);
    if let Some(good) = &description.answer {
        let mut answer = good_answer(good, sent.as_ref(), schemas)?;
        for media in description.media {
            answer["content"][*media] = json!({"schema": {"type": "string"}});
        }
        answers.insert(good.status.to_string(), answer);
    }
    item["responses"] = Value::Object(answers);
    Ok(item)
}

fn good_answer(good: &Good, sent: Option<&Value>, schemas: &Schemas) -> Result<Value, Defect> {
    let headers = json!({"x-request-id": {"$ref": "#/components/headers/RequestId"}});
    let Some(schema) = &good.schema else {
        // A schema of null alone would be a type that generators have no name for.
        let description =
            if good.status == 204 { "Without a body." } else { "The body is `null`." };
        return Ok(json!({"description": description, "headers": headers}));
    };
    let mut schema = schemas::plain(schema)?;
    schemas.settle_one(&mut schema);
    let mut example = example::of(&schema, "", schemas);
    // The example answer shows the values of the example body.
    if let (Some(shown), Some(sent)) = (example.as_object_mut(), sent.and_then(Value::as_object)) {
        for (name, value) in sent {
            // An object may contain secrets, which answers do not show. An answer can have an
            // object where the body has its number.
            let shown = shown.get_mut(name).filter(|shown| !shown.is_object());
            if let Some(shown) = shown.filter(|_| !value.is_object()) {
                *shown = value.clone();
            }
        }
    }
    let schema = one_or_many(schema, good.or_many);
    let description = if good.status == 201 { "Created." } else { "Good." };
    Ok(json!({
        "description": description,
        "headers": headers,
        "content": {"application/json": {"schema": schema, "example": example}},
    }))
}

fn one_or_many(schema: Value, or_many: bool) -> Value {
    if or_many { json!({"oneOf": [schema, {"type": "array", "items": schema}]}) } else { schema }
}

/// The rights that the caller needs, as text.
fn rights(scopes: Option<&[Scope]>, description: &Description) -> String {
    let scopes = match scopes {
        None => "Needs no key.".to_owned(),
        Some([]) => "Needs a valid key, whatever its scopes.".to_owned(),
        Some(scopes) => {
            let words: Vec<String> = scopes.iter().map(|scope| format!("`{scope}`")).collect();
            format!("Needs the scope {}.", words.join(" or "))
        }
    };
    if description.answer.is_none() {
        format!("{scopes} Always refused: this is done in the web app, never with a key.")
    } else {
        scopes
    }
}

fn security(scopes: Option<&[Scope]>) -> Value {
    match scopes {
        None => json!([]),
        Some([]) => json!([{"bearer": []}]),
        Some(scopes) => {
            let alternatives = scopes.iter().map(|scope| json!({"bearer": [scope.to_string()]}));
            Value::Array(alternatives.collect())
        }
    }
}
