//! The resource types of SCIM: which attributes of users and groups are kept.

/// The form of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One value.
    Single,
    /// One object.
    Complex,
    /// A list of objects.
    Many,
}

#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) is_read_only: bool,
    pub(crate) is_required: bool,
}

impl Attribute {
    const fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, is_read_only: false, is_required: false }
    }

    const fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

/// A resource type.
#[derive(Debug)]
pub struct ResourceType {
    /// Its name, such as `User`.
    pub name: &'static str,
    /// The path of its resources, such as `/Users`.
    pub endpoint: &'static str,
    /// The URN of its schema.
    pub schema: &'static str,
    attributes: &'static [Attribute],
}

/// Users.
pub const USER: ResourceType = ResourceType {
    name: "User",
    endpoint: "/Users",
    schema: "urn:ietf:params:scim:schemas:core:2.0:User",
    attributes: &[
        Attribute::new("schemas", Shape::Single).read_only(),
        Attribute::new("id", Shape::Single).read_only(),
        Attribute::new("meta", Shape::Complex).read_only(),
        Attribute::new("groups", Shape::Many).read_only(),
        Attribute::new("userName", Shape::Single).required(),
        Attribute::new("externalId", Shape::Single),
        Attribute::new("name", Shape::Complex),
        Attribute::new("displayName", Shape::Single),
        Attribute::new("active", Shape::Single),
        Attribute::new("emails", Shape::Many),
    ],
};

/// Groups.
pub const GROUP: ResourceType = ResourceType {
    name: "Group",
    endpoint: "/Groups",
    schema: "urn:ietf:params:scim:schemas:core:2.0:Group",
    attributes: &[
        Attribute::new("schemas", Shape::Single).read_only(),
        Attribute::new("id", Shape::Single).read_only(),
        Attribute::new("meta", Shape::Complex).read_only(),
        Attribute::new("displayName", Shape::Single).required(),
        Attribute::new("externalId", Shape::Single),
        Attribute::new("members", Shape::Many),
    ],
};

impl ResourceType {
    /// The attribute of this name; `None`: it is not kept.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'static Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.eq_ignore_ascii_case(name))
    }
}
