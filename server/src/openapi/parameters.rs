//! Parameters of paths and queries in the API document.

use serde_json::{Value, json};

use super::document::Defect;
use super::operation::Description;
use crate::http::pagination::{Parameter, ParameterKind};

/// The form of an id in a path.
#[derive(Debug, Clone, Copy)]
enum Id {
    Uuid,
    Integer,
    /// A text, or an id that a word can replace. `anyOf` would be more exact, but
    /// generated clients cannot write such a value into a path.
    Text,
}

/// An id in a path: the collection before it, its form, and a description.
struct PathId(&'static str, Id, &'static str);

const PATH_IDS: &[PathId] = &[
    PathId(
        "organizations",
        Id::Text,
        "The organization: its UUID, or `@current` for the current one of the caller.",
    ),
    PathId(
        "projects",
        Id::Text,
        "The project: its number, or `@current` for the current one of the caller.",
    ),
    PathId("users", Id::Text, "The user: their UUID, or `@me`, the caller."),
    PathId(
        "members",
        Id::Text,
        "The user that the membership is of: their UUID, or `@me`, the caller.",
    ),
    PathId(
        "personal_api_keys",
        Id::Text,
        "The key: its id, or `@current` for the one that the request is sent with.",
    ),
    PathId("persons", Id::Uuid, "The person, also one that was merged into it."),
    PathId("invites", Id::Uuid, "The invite."),
    PathId("signup", Id::Text, "The token of the invite's link."),
    PathId("reset", Id::Uuid, "The user that the link was mailed to."),
    PathId("domains", Id::Uuid, "The domain."),
    PathId("groups", Id::Uuid, "The group of the identity provider."),
    PathId("roles", Id::Uuid, "The role."),
    PathId("role_memberships", Id::Uuid, "The member's place in the role."),
    PathId("batch_exports", Id::Uuid, "The batch export."),
    PathId("backfills", Id::Uuid, "The backfill."),
    PathId("runs", Id::Uuid, "The run."),
    PathId("query", Id::Text, "The question: the `client_query_id` that it was sent with."),
    PathId("pipeline_destinations", Id::Integer, "The plugin record."),
    PathId("pipeline_frontend_apps", Id::Integer, "The plugin record."),
    PathId("pipeline_import_apps", Id::Integer, "The plugin record."),
    PathId("pipeline_transformations", Id::Integer, "The plugin record."),
    PathId("pipeline_transformation_configs", Id::Integer, "The config."),
    PathId("insights", Id::Text, "The insight: its number or its short id."),
    PathId("dashboards", Id::Integer, "The dashboard."),
    PathId("annotations", Id::Integer, "The annotation."),
    PathId("alerts", Id::Integer, "The alert."),
    PathId("subscriptions", Id::Integer, "The subscription."),
    PathId("share_links", Id::Integer, "The share link."),
    PathId("shared_dashboards", Id::Text, "The token of the share link."),
];

/// The parameters of a path and of a query.
pub(super) fn of(path: &str, description: &Description) -> Result<Vec<Value>, Defect> {
    let mut parameters = in_path(path)?;
    if let Some((usual, most)) = description.paged {
        let default = usual.min(most);
        let about = format!("Results per page, 1 to {most}. Invalid values are ignored.");
        parameters.push(json!({
            "name": "limit", "in": "query", "required": false,
            "description": about,
            "schema": {"type": "integer", "minimum": 1, "default": default},
        }));
        parameters.push(json!({
            "name": "offset", "in": "query", "required": false,
            "description": "Results to pass over. Invalid values are ignored.",
            "schema": {"type": "integer", "minimum": 0, "default": 0},
        }));
    }
    parameters.extend(description.filters.iter().filter_map(in_query));
    Ok(parameters)
}

fn in_path(path: &str) -> Result<Vec<Value>, Defect> {
    let mut parameters = Vec::new();
    let mut collection = "";
    for segment in path.split('/') {
        let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = name {
            let known = PATH_IDS.iter().find(|PathId(known, ..)| *known == collection);
            let Some(PathId(_, id, description)) = known else {
                return Err(Defect::UnknownPathId { path: path.to_owned() });
            };
            parameters.push(json!({
                "name": name, "in": "path", "required": true, "description": description,
                "schema": schema(*id),
            }));
        }
        collection = segment;
    }
    Ok(parameters)
}

fn schema(id: Id) -> Value {
    match id {
        Id::Uuid => json!({"type": "string", "format": "uuid"}),
        Id::Integer => json!({"type": "integer"}),
        Id::Text => json!({"type": "string", "minLength": 1}),
    }
}

fn in_query(parameter: &Parameter) -> Option<Value> {
    let schema = match parameter.kind {
        ParameterKind::Text => json!({"type": "string"}),
        ParameterKind::RequiredText => json!({"type": "string", "minLength": 1}),
        ParameterKind::Uuid => json!({"type": "string", "format": "uuid"}),
        ParameterKind::Time => json!({"type": "string", "format": "date-time"}),
        ParameterKind::Number => json!({"type": "integer", "minimum": 1}),
        ParameterKind::OneOf(words) | ParameterKind::RequiredOneOf(words) => {
            json!({"type": "string", "enum": words})
        }
        ParameterKind::OtherForm => return None,
    };
    Some(json!({
        "name": parameter.name, "in": "query", "description": parameter.description,
        "required": parameter.kind.is_required(), "schema": schema,
    }))
}
