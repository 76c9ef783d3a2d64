//! The schemas in the API document (OpenAPI) that no derive can write.
//!
//! What belongs here: the schemas of types that are one value in JSON, such as ids, times and
//! levels, and of the envelope of a list. What does not: resources, which derive
//! `utoipa::ToSchema` in their modules. Only the server enables the feature `schema`, so that
//! it is not part of the browser code.

use std::borrow::Cow;

use utoipa::openapi::schema::{
    ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Object, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::domains::{SSO_ENFORCEMENT_MAX, SsoEnforcement};
use crate::ids::{
    AlertId, AnnotationId, DashboardId, InsightId, KeyId, PluginConfigId, PluginId, ProjectId,
    SubscriptionId,
};
use crate::organizations::Level;
use crate::pagination::Envelope;
use crate::plugins::PluginsAccess;
use crate::scopes::Scope;
use crate::time::Timestamp;

/// The schema of a text with a format of OpenAPI, such as `date-time`.
fn text(format: Option<&str>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .format(format.map(|format| SchemaFormat::Custom(format.to_owned())))
}

/// The schema of an id that is a UUID.
pub(crate) fn uuid() -> RefOr<Schema> {
    RefOr::T(Schema::Object(Object::from(text(Some("uuid")))))
}

/// The schema of a text that is one of these values.
pub(crate) fn enumeration(values: &'static [&'static str]) -> RefOr<Schema> {
    RefOr::T(Schema::Object(Object::from(text(None).enum_values(Some(values.iter().copied())))))
}

/// Implements [`ToSchema`] for types with a schema that is built here.
macro_rules! schemas {
    ($($name:ident = $schema:expr;)+) => {$(
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                RefOr::T(Schema::Object(Object::from($schema)))
            }
        }

        impl ToSchema for $name {}
    )+};
}

schemas! {
    KeyId = text(None);
    ProjectId = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    PluginId = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    PluginConfigId = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    InsightId = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    DashboardId = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    AnnotationId = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    AlertId = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    SubscriptionId = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Integer));
    Timestamp = text(Some("date-time"));
    Level = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .enum_values(Some([1, 8, 15]));
    PluginsAccess = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .enum_values(Some([0, 3, 6, 9]));
    Scope = text(None);
    // No enumeration: each instance has providers of its own.
    SsoEnforcement = text(None).max_length(Some(SSO_ENFORCEMENT_MAX));
}

impl<T: ToSchema> PartialSchema for Envelope<T> {
    fn schema() -> RefOr<Schema> {
        let link = || {
            OneOfBuilder::new()
                .item(text(Some("uri")))
                .item(ObjectBuilder::new().schema_type(SchemaType::Type(Type::Null)))
        };
        let count = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::Integer))
            .minimum(Some(0))
            .description(Some("Total number of results."));
        let next = link().description(Some("Link to the next page; null on the last one."));
        let previous = link().description(Some("Link to the previous page; null on the first."));
        let item = RefOr::Ref(Ref::from_schema_name(T::name()));
        let results =
            ArrayBuilder::new().items(item).description(Some("The resources of this page."));
        RefOr::T(Schema::Object(Object::from(
            ObjectBuilder::new()
                .property("count", count)
                .required("count")
                .property("next", next)
                .required("next")
                .property("previous", previous)
                .required("previous")
                .property("results", results)
                .required("results"),
        )))
    }
}

impl<T: ToSchema> ToSchema for Envelope<T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}List", T::name()))
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}
