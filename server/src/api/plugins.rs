//! `/api/organizations/{organization_id}/pipeline_destinations/`,
//! `…/pipeline_frontend_apps/` and `…/pipeline_import_apps/` (PLG-6).
//!
//! All three list plugins. The capabilities of a plugin decide which of them lists it.

pub mod answers;
mod groups;

use axum::Json;
use serde_json::{Map, Value, json};
use weir_model::errors::FieldError;
use weir_model::pagination::Paged;
use weir_model::plugin_configs::PluginConfig;
use weir_model::plugins::address::{self, CodeSource};
use weir_model::plugins::{
    self as model, ARCHIVE_MAX, DESCRIPTION_MAX, Group, ICON_MAX, NAME_MAX, Plugin, PluginInput,
    PluginPatch, PluginType, SentArchive, SourceChange, TAG_MAX, URL_MAX, schema,
};
use weir_model::{Patch, validate};
use weir_service::OrgCtx;
use weir_service::plugins::{Checked, Source};

use crate::api::NoContent;
use crate::api::activity::Numbered;
use crate::app::App;
use crate::filters;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, PathParams};
use crate::http::input::{Fields, Input, no_object, no_text};
use crate::http::pagination::{Listing, Params};
use answers::{
    PluginActivityPage, PluginCatalogue, PluginCheck, PluginConfigsOf, PluginSource, Shaped,
    UnusedPlugins,
};
pub use groups::{destinations, frontend_apps, import_apps};

/// The path parameter with the id of a plugin.
const ID: &str = "plugin_id";
/// The form field with an archive of source files.
const ARCHIVE: &str = "archive";
/// Bytes of a form in addition to its archive.
const FORM_ROOM: usize = 64 << 10;

filters! {
    /// Selects the form of the answer.
    RawFilter {
        "raw": OtherForm, "`true`: without the fields of a plugin record.";
    }
}

filters! {
    /// Selects the form of a list. A bare array has no links, so a page is large.
    RawListFilter, pages of 1_000 {
        "raw": OtherForm, "`true`: the results of the page alone, as an array.";
    }
}

filters! {
    /// Filters for audit entries, and their form.
    ActivityFilters {
        "limit": Number, "Entries per page, 1 to 1,000; 10 without it. Invalid values are ignored.";
        "offset": Number, "Entries to pass over, in place of `page`.";
        "page": Number, "The page, from 1. Invalid values are ignored.";
        "raw": OtherForm, "`true`: without the fields of a plugin record.";
    }
}

fn is_raw(raw: Option<&str>) -> bool {
    matches!(raw, Some("true" | "1"))
}

/// The plugin is checked first: a missing plugin is reported before an invalid field.
async fn update(
    app: &App,
    org: &OrgCtx,
    group: Group,
    path: &PathParams,
    body: &ApiJson<PluginPatch>,
) -> ApiResult<Json<Plugin>> {
    let plugins = &app.services.plugins;
    let names_global = body.has("is_global");
    let changeable = plugins.changeable(org, group, path.get(ID)?, names_global).await?;
    Ok(Json(plugins.update(org, changeable, body.checked()?).await?))
}

async fn delete(app: &App, org: &OrgCtx, group: Group, path: &PathParams) -> ApiResult<NoContent> {
    let plugins = &app.services.plugins;
    let changeable = plugins.changeable(org, group, path.get(ID)?, false).await?;
    plugins.delete(org, changeable).await?;
    Ok(NoContent)
}

async fn check(
    app: &App,
    org: &OrgCtx,
    group: Group,
    path: &PathParams,
    params: &Params<RawFilter>,
) -> ApiResult<Shaped<PluginCheck>> {
    let checked = app.services.plugins.check_for_updates(org, group, path.get(ID)?).await?;
    let Checked { plugin, fault } = checked;
    let answer = PluginCheck { record: plugin.clone(), plugin, update_error: fault };
    Ok(Shaped::of(answer, is_raw(params.param("raw"))))
}

async fn source(
    app: &App,
    org: &OrgCtx,
    group: Group,
    path: &PathParams,
    params: &Params<RawFilter>,
) -> ApiResult<Shaped<PluginSource>> {
    let source = app.services.plugins.source(org, group, path.get(ID)?).await?;
    Ok(Shaped::of(with_files(source), is_raw(params.param("raw"))))
}

async fn update_source(
    app: &App,
    org: &OrgCtx,
    group: Group,
    path: &PathParams,
    params: &Params<RawFilter>,
    body: &ApiJson<SentSource>,
) -> ApiResult<Shaped<PluginSource>> {
    let plugins = &app.services.plugins;
    let editable = plugins.editable(org, group, path.get(ID)?).await?;
    let SentSource(change) = body.checked()?;
    let source = plugins.update_source(org, editable, change).await?;
    Ok(Shaped::of(with_files(source), is_raw(params.param("raw"))))
}

fn with_files(source: Source) -> PluginSource {
    let Source { plugin, files, faults } = source;
    PluginSource { record: plugin, source_errors: faults, files }
}

async fn activity(
    app: &App,
    org: &OrgCtx,
    group: Group,
    params: &Params<ActivityFilters>,
) -> ApiResult<Shaped<PluginActivityPage>> {
    let numbered = Numbered::of(params);
    let (record, entries) = app.services.plugins.activity(org, group, numbered.page).await?;
    let (next, previous) = numbered.links(params, entries.count);
    let answer = PluginActivityPage {
        record,
        results: entries.results,
        next,
        previous,
        count: entries.count,
        total_count: entries.count,
    };
    Ok(Shaped::of(answer, is_raw(params.param("raw"))))
}

async fn export_configs(
    app: &App,
    org: &OrgCtx,
    group: Group,
    listing: &Listing<RawListFilter>,
) -> ApiResult<Shaped<PluginConfigsOf>> {
    let plugins = &app.services.plugins;
    let (record, found) = plugins.exports_unsubscribe_configs(org, group, listing.page()).await?;
    let Paged { count, results } = found;
    let results = results.into_iter().map(PluginConfig::texts).collect();
    let envelope = listing.envelope(Paged { count, results });
    Ok(Shaped::of(PluginConfigsOf::new(record, envelope), is_raw(listing.param("raw"))))
}

async fn repository(
    app: &App,
    org: &OrgCtx,
    group: Group,
    listing: &Listing<RawListFilter>,
) -> ApiResult<Shaped<PluginCatalogue>> {
    let (record, found) = app.services.plugins.repository(org, group, listing.page()).await?;
    let answer = PluginCatalogue::new(record, listing.envelope(found));
    Ok(Shaped::of(answer, is_raw(listing.param("raw"))))
}

async fn unused(
    app: &App,
    org: &OrgCtx,
    group: Group,
    listing: &Listing<RawListFilter>,
) -> ApiResult<Shaped<UnusedPlugins>> {
    let (record, found) = app.services.plugins.unused(org, group, listing.page()).await?;
    let answer = UnusedPlugins::new(record, listing.envelope(found));
    Ok(Shaped::of(answer, is_raw(listing.param("raw"))))
}

/// The body of `update_source/`: source files by name. A name without a dot is a field of
/// the record and is ignored, so a whole answer may be sent back. The example changes no
/// code, so it fits plugins of every group.
#[derive(Debug)]
pub struct SentSource(SourceChange);

impl Input for SentSource {
    const EXAMPLE: &'static str = r#"{
        "plugin.json": "{\"name\": \"Tea\", \"config\": [{\"key\": \"cups\", \"type\": \"string\"}]}"
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let names = fields.names().filter(|name| model::source::is_file_name(name));
        let file = |name: &str| {
            let sent = fields.value(name, false, || json!({"type": ["string", "null"]}));
            let text = match sent {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(text.clone()),
                Some(_) => return Err(no_text(name)),
            };
            Ok((model::source::file_name(name)?, text))
        };
        names.map(file).collect::<Result<SourceChange, FieldError>>().map(Self)
    }
}

/// Fields are checked in the order in which the resource shows them.
impl Input for PluginInput {
    const FORM_MAX: usize = ARCHIVE_MAX + FORM_ROOM;
    const EXAMPLE: &'static str = r#"{
        "plugin_type": "source", "name": "Tea", "description": "Counts cups.",
        "config_schema": {"cups": {"name": "Cups", "type": "string", "default": "1"}}
    }"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let (plugin_type, name, description) = head(fields)?;
        let url = match fields.nullable_text(address::FIELD, URL_MAX)? {
            Patch::Set(text) if !text.is_empty() => Some(CodeSource::read(&text)?),
            Patch::Set(_) | Patch::Keep | Patch::Clear => None,
        };
        let patch = PluginPatch { plugin_type, name, description, ..tail(fields)? };
        let archive = archive(fields)?;
        if url.is_some() && archive.is_some() {
            let detail = "Send an address or an archive, not both.";
            return Err(FieldError::new(ARCHIVE, "invalid_input", detail));
        }
        Ok(Self { url, archive, fields: patch })
    }
}

/// The archive in a form.
fn archive(fields: &Fields) -> Result<Option<SentArchive>, FieldError> {
    let Some(sent) = fields.uploads().iter().find(|upload| upload.field == ARCHIVE) else {
        return Ok(None);
    };
    if sent.contents.len() > ARCHIVE_MAX {
        let detail = format!("Ensure this file has no more than {ARCHIVE_MAX} bytes.");
        return Err(FieldError::new(ARCHIVE, "max_length", detail));
    }
    Ok(Some(SentArchive(sent.contents.to_vec())))
}

impl Input for PluginPatch {
    const EXAMPLE: &'static str = r#"{"name": "Green tea", "tag": "2"}"#;

    fn read(fields: &Fields) -> Result<Self, FieldError> {
        let (plugin_type, name, description) = head(fields)?;
        Ok(Self { plugin_type, name, description, ..tail(fields)? })
    }
}

type Head = (Patch<PluginType>, Patch<String>, Patch<String>);

/// The fields before the address. Only a new plugin has an address.
fn head(fields: &Fields) -> Result<Head, FieldError> {
    Ok((
        plugin_type(fields)?,
        fields.nullable_text("name", NAME_MAX)?,
        fields.nullable_text("description", DESCRIPTION_MAX)?,
    ))
}

/// The fields after the address.
fn tail(fields: &Fields) -> Result<PluginPatch, FieldError> {
    Ok(PluginPatch {
        icon: fields.nullable_text("icon", ICON_MAX)?,
        config_schema: config_schema(fields)?,
        tag: fields.nullable_text("tag", TAG_MAX)?,
        is_global: fields.boolean("is_global")?,
        capabilities: object(fields, "capabilities")?,
        metrics: object(fields, "metrics")?,
        public_jobs: object(fields, "public_jobs")?,
        ..PluginPatch::default()
    })
}

fn plugin_type(fields: &Fields) -> Result<Patch<PluginType>, FieldError> {
    const FIELD: &str = "plugin_type";
    let sent = fields.value(FIELD, false, || {
        let words = PluginType::WORDS.iter().map(|word| json!(word)).chain([Value::Null]);
        json!({"type": ["string", "null"], "enum": words.collect::<Vec<_>>()})
    });
    if sent == Some(&Value::Null) {
        return Ok(Patch::Clear);
    }
    fields
        .word(FIELD, PluginType::WORDS)?
        .try_map(|word| PluginType::of(&word).ok_or_else(|| validate::invalid_choice(FIELD, &word)))
}

fn config_schema(fields: &Fields) -> Result<Patch<Map<String, Value>>, FieldError> {
    let sent = fields.value(
        schema::FIELD,
        false,
        || json!({"type": ["object", "array", "null"], "items": {"type": "object"}}),
    );
    match sent {
        None => Ok(Patch::Keep),
        Some(Value::Null) => Ok(Patch::Clear),
        Some(sent) => schema::read(schema::FIELD, sent).map(Patch::Set),
    }
}

/// An object with the client's keys, or null.
fn object(fields: &Fields, name: &str) -> Result<Patch<Map<String, Value>>, FieldError> {
    match fields.value(name, false, || json!({"type": ["object", "null"]})) {
        None => Ok(Patch::Keep),
        Some(Value::Null) => Ok(Patch::Clear),
        Some(Value::Object(sent)) => model::object(name, sent.clone()).map(Patch::Set),
        Some(other) => Err(no_object(name, other)),
    }
}
