//! SCIM 2.0 (RFC 7643, RFC 7644): what an identity provider sends about its users and
//! groups, and what it reads of them.
//!
//! What belongs here: the shapes of resources, filters, paths, changes by PATCH, and the
//! documents with which a provider discovers this server. What does not: which users there
//! are and what a change means (`weir-service`), HTTP (the server).
//!
//! Names of attributes are compared without regard to case (RFC 7643, 2.1). A value that no
//! attribute here keeps is ignored: identity providers send more than they need to.

mod fault;
mod filter;
mod list;
mod patch;
mod path;
mod resource_type;
mod resources;
mod schemas;
mod search;
mod selection;

pub use fault::{Fault, FaultKind};
pub use filter::{FILTER_MAX, Filter};
pub use patch::{OPERATIONS_MAX, apply};
pub use path::Path;
pub use resource_type::{GROUP, ResourceType, USER};
pub use resources::{
    Address, Group, GroupInput, Member, Membership, Meta, Name, Resource, User, UserInput,
    is_same_address,
};
pub use schemas::{resource_types, schemas, service_provider_config};
pub use search::SearchRequest;
pub use selection::Selection;

/// Schema of an error.
pub const ERROR: &str = "urn:ietf:params:scim:api:messages:2.0:Error";
/// Schema of a list.
pub const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";
/// The media type.
pub const MEDIA_TYPE: &str = "application/scim+json";
/// Most resources of a page.
pub const PAGE_MAX: usize = 200;
/// Most bytes of a body.
pub const BODY_MAX: usize = 1 << 20;
/// Most members of a group.
pub const MEMBERS_MAX: usize = 5_000;

/// A member of a JSON object, whatever the case of its name.
pub(crate) fn member<'a>(
    value: &'a serde_json::Value,
    name: &str,
) -> Option<&'a serde_json::Value> {
    let members = value.as_object()?;
    if let Some(found) = members.get(name) {
        return Some(found);
    }
    members.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
