//! The documents that describe the service (RFC 7643, 5 to 7).

use serde_json::{Value, json};

use crate::kind::{GROUP, Kind, USER};
use crate::patch::OPERATIONS_MAX;
use crate::{BODY_MAX, PAGE_MAX};

const RESOURCE_TYPE: &str = "urn:ietf:params:scim:schemas:core:2.0:ResourceType";
const SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Schema";
const CONFIG: &str = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig";

/// What the service can do. `base` is the URL before `/Users`.
pub fn service_provider_config(base: &str) -> Value {
    json!({
        "schemas": [CONFIG],
        "documentationUri": format!("{}/help/provisioning", origin(base)),
        "patch": {"supported": true},
        "bulk": {"supported": false, "maxOperations": OPERATIONS_MAX, "maxPayloadSize": BODY_MAX},
        "filter": {"supported": true, "maxResults": PAGE_MAX},
        "changePassword": {"supported": false},
        "sort": {"supported": false},
        "etag": {"supported": true},
        "authenticationSchemes": [{
            "type": "oauthbearertoken",
            "name": "Bearer token",
            "description": "The SCIM token of the domain, in the header Authorization.",
            "primary": true,
        }],
        "meta": {
            "resourceType": "ServiceProviderConfig",
            "location": format!("{base}/ServiceProviderConfig"),
        },
    })
}

/// The kinds of resources.
pub fn resource_types(base: &str) -> Vec<Value> {
    let shown = |kind: &Kind, description: &str| {
        json!({
            "schemas": [RESOURCE_TYPE],
            "id": kind.name,
            "name": kind.name,
            "endpoint": kind.endpoint,
            "description": description,
            "schema": kind.schema,
            "meta": {
                "resourceType": "ResourceType",
                "location": format!("{base}/ResourceTypes/{}", kind.name),
            },
        })
    };
    vec![
        shown(&USER, "Members of the organization with an address of the domain"),
        shown(&GROUP, "Groups of such members"),
    ]
}

/// The schemas of the resources.
pub fn schemas(base: &str) -> Vec<Value> {
    let shown = |kind: &Kind, description: &str, attributes: Vec<Value>| {
        json!({
            "schemas": [SCHEMA],
            "id": kind.schema,
            "name": kind.name,
            "description": description,
            "attributes": attributes,
            "meta": {
                "resourceType": "Schema",
                "location": format!("{base}/Schemas/{}", kind.schema),
            },
        })
    };
    vec![
        shown(&USER, "User Account", user_attributes()),
        shown(&GROUP, "Group", group_attributes()),
    ]
}

fn user_attributes() -> Vec<Value> {
    vec![
        Text::new(
            "userName",
            "A mail address of the domain, or another name beside such an address in emails.",
        )
        .required()
        .unique()
        .shown(),
        Text::new("externalId", "What the identity provider calls the user.").exact().shown(),
        complex(
            "name",
            "The name of the user.",
            false,
            "readWrite",
            vec![
                Text::new("formatted", "First and last name together.").read_only().shown(),
                Text::new("familyName", "Last name.").shown(),
                Text::new("givenName", "First name.").shown(),
            ],
        ),
        Text::new("displayName", "The name that the identity provider shows.").shown(),
        boolean("active", "Whether the user may sign in to the organization."),
        complex(
            "emails",
            "The mail address, which is one of the domain. It is userName if that is such an address.",
            true,
            "readWrite",
            vec![
                Text::new("value", "The address.").shown(),
                Text::new("type", "The kind of the address.").words(&["work"]).shown(),
                boolean("primary", "Whether it is the main address."),
            ],
        ),
        complex(
            "groups",
            "The groups of the user.",
            true,
            "readOnly",
            vec![
                Text::new("value", "Id of the group.").read_only().exact().shown(),
                reference("Group", "readOnly", "URL of the group."),
                Text::new("display", "Name of the group.").read_only().shown(),
                Text::new("type", "How the user is a member.")
                    .read_only()
                    .words(&["direct"])
                    .shown(),
            ],
        ),
    ]
}

fn group_attributes() -> Vec<Value> {
    vec![
        Text::new("displayName", "The name of the group.").required().shown(),
        Text::new("externalId", "What the identity provider calls the group.").exact().shown(),
        complex(
            "members",
            "The members of the group, which are users.",
            true,
            "readWrite",
            vec![
                Text::new("value", "Id of the user.").immutable().exact().shown(),
                reference("User", "immutable", "URL of the user."),
                Text::new("type", "The kind of the member.").immutable().words(&["User"]).shown(),
            ],
        ),
    ]
}

/// A text attribute.
struct Text {
    name: &'static str,
    description: &'static str,
    required: bool,
    exact: bool,
    mutability: &'static str,
    uniqueness: &'static str,
    words: Vec<&'static str>,
}

impl Text {
    fn new(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            required: false,
            exact: false,
            mutability: "readWrite",
            uniqueness: "none",
            words: Vec::new(),
        }
    }

    fn required(self) -> Self {
        Self { required: true, ..self }
    }

    fn exact(self) -> Self {
        Self { exact: true, ..self }
    }

    fn unique(self) -> Self {
        Self { uniqueness: "server", ..self }
    }

    fn read_only(self) -> Self {
        Self { mutability: "readOnly", ..self }
    }

    fn immutable(self) -> Self {
        Self { mutability: "immutable", ..self }
    }

    fn words(self, words: &[&'static str]) -> Self {
        Self { words: words.to_vec(), ..self }
    }

    fn shown(self) -> Value {
        let mut shown = json!({
            "name": self.name,
            "type": "string",
            "multiValued": false,
            "description": self.description,
            "required": self.required,
            "caseExact": self.exact,
            "mutability": self.mutability,
            "returned": "default",
            "uniqueness": self.uniqueness,
        });
        if let (false, Some(members)) = (self.words.is_empty(), shown.as_object_mut()) {
            members.insert("canonicalValues".to_owned(), Value::from(self.words));
        }
        shown
    }
}

fn boolean(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "type": "boolean",
        "multiValued": false,
        "description": description,
        "required": false,
        "mutability": "readWrite",
        "returned": "default",
    })
}

fn reference(to: &str, mutability: &str, description: &str) -> Value {
    json!({
        "name": "$ref",
        "type": "reference",
        "referenceTypes": [to],
        "multiValued": false,
        "description": description,
        "required": false,
        "caseExact": true,
        "mutability": mutability,
        "returned": "default",
        "uniqueness": "none",
    })
}

fn complex(
    name: &str,
    description: &str,
    is_list: bool,
    mutability: &str,
    parts: Vec<Value>,
) -> Value {
    json!({
        "name": name,
        "type": "complex",
        "multiValued": is_list,
        "description": description,
        "required": false,
        "mutability": mutability,
        "returned": "default",
        "subAttributes": parts,
    })
}

/// Scheme and host of a URL.
fn origin(base: &str) -> &str {
    base.find("/scim/").and_then(|end| base.get(..end)).unwrap_or(base)
}
