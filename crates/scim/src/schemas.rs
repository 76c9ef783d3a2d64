//! The documents with which an identity provider discovers what this server supports: its
//! configuration, the resource types and their schemas (RFC 7643, 5 to 7).

use serde_json::{Value, json};

use crate::patch::OPERATIONS_MAX;
use crate::resource_type::{GROUP, ResourceType, USER};
use crate::{BODY_MAX, PAGE_MAX};

const RESOURCE_TYPE: &str = "urn:ietf:params:scim:schemas:core:2.0:ResourceType";
const SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Schema";
const CONFIG: &str = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig";

/// The document `ServiceProviderConfig`: which parts of SCIM this server supports. `base` is
/// the URL before `/Users`.
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

/// The documents `ResourceType` of users and groups. `base` is the URL before `/Users`.
pub fn resource_types(base: &str) -> Vec<Value> {
    let document = |of: &ResourceType, description: &str| {
        json!({
            "schemas": [RESOURCE_TYPE],
            "id": of.name,
            "name": of.name,
            "endpoint": of.endpoint,
            "description": description,
            "schema": of.schema,
            "meta": {
                "resourceType": "ResourceType",
                "location": format!("{base}/ResourceTypes/{}", of.name),
            },
        })
    };
    vec![
        document(&USER, "Members of the organization with an address of the domain"),
        document(&GROUP, "Groups of such members"),
    ]
}

/// The documents `Schema` of users and groups. `base` is the URL before `/Users`.
pub fn schemas(base: &str) -> Vec<Value> {
    let document = |of: &ResourceType, description: &str, attributes: Vec<Value>| {
        json!({
            "schemas": [SCHEMA],
            "id": of.schema,
            "name": of.name,
            "description": description,
            "attributes": attributes,
            "meta": {
                "resourceType": "Schema",
                "location": format!("{base}/Schemas/{}", of.schema),
            },
        })
    };
    vec![document(&USER, "User", user_attributes()), document(&GROUP, "Group", group_attributes())]
}

fn user_attributes() -> Vec<Value> {
    vec![
        TextAttribute::new(
            "userName",
            "A mail address of the domain, or another name beside such an address in emails.",
        )
        .required()
        .unique()
        .json(),
        TextAttribute::new("externalId", "What the identity provider calls the user.")
            .case_exact()
            .json(),
        complex(
            "name",
            "The name of the user.",
            false,
            "readWrite",
            vec![
                TextAttribute::new("formatted", "First and last name together.").read_only().json(),
                TextAttribute::new("familyName", "Last name.").json(),
                TextAttribute::new("givenName", "First name.").json(),
            ],
        ),
        TextAttribute::new("displayName", "The name that the identity provider shows.").json(),
        boolean("active", "Whether the user may sign in to the organization."),
        complex(
            "emails",
            "The mail address, which is one of the domain. It is userName if that is such an address.",
            true,
            "readWrite",
            vec![
                TextAttribute::new("value", "The address.").json(),
                TextAttribute::new("type", "The kind of the address.")
                    .canonical_values(&["work"])
                    .json(),
                boolean("primary", "Whether it is the main address."),
            ],
        ),
        complex(
            "groups",
            "The groups of the user.",
            true,
            "readOnly",
            vec![
                TextAttribute::new("value", "Id of the group.").read_only().case_exact().json(),
                reference("Group", "readOnly", "URL of the group."),
                TextAttribute::new("display", "Name of the group.").read_only().json(),
                TextAttribute::new("type", "How the user is a member.")
                    .read_only()
                    .canonical_values(&["direct"])
                    .json(),
            ],
        ),
    ]
}

fn group_attributes() -> Vec<Value> {
    vec![
        TextAttribute::new("displayName", "The name of the group.").required().json(),
        TextAttribute::new("externalId", "What the identity provider calls the group.")
            .case_exact()
            .json(),
        complex(
            "members",
            "The members of the group, which are users.",
            true,
            "readWrite",
            vec![
                TextAttribute::new("value", "Id of the user.").immutable().case_exact().json(),
                reference("User", "immutable", "URL of the user."),
                TextAttribute::new("type", "The kind of the member.")
                    .immutable()
                    .canonical_values(&["User"])
                    .json(),
            ],
        ),
    ]
}

/// The description of an attribute that is a text.
struct TextAttribute {
    name: &'static str,
    description: &'static str,
    is_required: bool,
    is_case_exact: bool,
    mutability: &'static str,
    uniqueness: &'static str,
    canonical_values: Vec<&'static str>,
}

impl TextAttribute {
    fn new(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            description,
            is_required: false,
            is_case_exact: false,
            mutability: "readWrite",
            uniqueness: "none",
            canonical_values: Vec::new(),
        }
    }

    fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    fn case_exact(self) -> Self {
        Self { is_case_exact: true, ..self }
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

    fn canonical_values(self, values: &[&'static str]) -> Self {
        Self { canonical_values: values.to_vec(), ..self }
    }

    fn json(self) -> Value {
        let mut attribute = json!({
            "name": self.name,
            "type": "string",
            "multiValued": false,
            "description": self.description,
            "required": self.is_required,
            "caseExact": self.is_case_exact,
            "mutability": self.mutability,
            "returned": "default",
            "uniqueness": self.uniqueness,
        });
        if let (false, Some(members)) =
            (self.canonical_values.is_empty(), attribute.as_object_mut())
        {
            members.insert("canonicalValues".to_owned(), Value::from(self.canonical_values));
        }
        attribute
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
