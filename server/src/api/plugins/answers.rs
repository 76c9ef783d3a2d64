//! The answers of plugin operations. Existing clients expect a plugin record from each
//! operation. Other data is in additional fields, under names that no field of the record
//! has. With `raw=true` the answer is only the other data, in the form of the service
//! that the clients were written for (PLG-7).

use std::collections::BTreeMap;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use weir_model::PluginId;
use weir_model::pagination::Envelope;
use weir_model::plugin_configs::PluginConfig;
use weir_model::plugins::overview::{CatalogueEntry, PluginActivity};
use weir_model::plugins::{Plugin, PluginShape};

/// An answer: a record with additional fields, or only the additional data.
#[derive(Debug)]
pub enum Shaped<T> {
    /// The record with the additional fields.
    Whole(T),
    /// Only the additional data.
    Raw(Value),
}

/// The additional data of an answer.
pub trait Rest {
    /// The data in the form that `raw=true` asks for.
    fn rest(self) -> Value;
}

impl<T: Rest> Shaped<T> {
    /// The answer in the form that the caller requested.
    pub(super) fn of(answer: T, is_raw: bool) -> Self {
        if is_raw { Self::Raw(answer.rest()) } else { Self::Whole(answer) }
    }
}

impl<T: Serialize> IntoResponse for Shaped<T> {
    fn into_response(self) -> Response {
        match self {
            Self::Whole(answer) => Json(answer).into_response(),
            Self::Raw(rest) => Json(rest).into_response(),
        }
    }
}

/// The result of a check for a newer version.
#[derive(Debug, Serialize, ToSchema)]
pub struct PluginCheck {
    /// The plugin, as fields of the answer.
    #[serde(flatten)]
    pub record: Plugin,
    /// The same plugin as an object.
    pub plugin: Plugin,
    /// Why the check failed; null when it succeeded, and for a plugin without versions.
    pub update_error: Option<String>,
}

impl Rest for PluginCheck {
    fn rest(self) -> Value {
        match self.update_error {
            None => json!({"plugin": self.plugin}),
            Some(fault) => json!({"plugin": self.plugin, "update_error": fault}),
        }
    }
}

/// A plugin with its source files. Each file is a field with the file's name, which has a
/// dot.
#[derive(Debug, Serialize, ToSchema)]
pub struct PluginSource {
    /// The plugin, as fields of the answer.
    #[serde(flatten)]
    pub record: Plugin,
    /// Errors in source files: a sentence for each file name.
    pub source_errors: BTreeMap<String, String>,
    /// The text of each file.
    #[serde(flatten)]
    pub files: BTreeMap<String, String>,
}

impl Rest for PluginSource {
    fn rest(self) -> Value {
        json!(self.files)
    }
}

/// A page of the activity log of plugins.
#[derive(Debug, Serialize, ToSchema)]
pub struct PluginActivityPage {
    /// The plugin that the newest entry is about, or else the newest plugin.
    #[serde(flatten)]
    pub record: PluginShape,
    /// The entries, newest first.
    pub results: Vec<PluginActivity>,
    /// Link to the next page; null on the last one.
    #[schema(format = "uri")]
    pub next: Option<String>,
    /// Link to the previous page; null on the first.
    #[schema(format = "uri")]
    pub previous: Option<String>,
    /// Total number of entries.
    pub count: u64,
    /// The same as `count`.
    pub total_count: u64,
}

impl Rest for PluginActivityPage {
    fn rest(self) -> Value {
        json!({
            "results": self.results, "next": self.next, "previous": self.previous,
            "total_count": self.total_count,
        })
    }
}

/// Answers with a record and a page of a list. `raw=true` returns only the results.
macro_rules! pages {
    ($($(#[$doc:meta])* $name:ident of $item:ty, $(#[$record:meta])* record;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Serialize, ToSchema)]
        pub struct $name {
            $(#[$record])*
            #[serde(flatten)]
            pub record: PluginShape,
            /// The results of this page.
            pub results: Vec<$item>,
            /// Link to the next page; null on the last one.
            #[schema(format = "uri")]
            pub next: Option<String>,
            /// Link to the previous page; null on the first.
            #[schema(format = "uri")]
            pub previous: Option<String>,
            /// Total number of results.
            pub count: u64,
        }

        impl $name {
            pub(super) fn new(record: PluginShape, page: Envelope<$item>) -> Self {
                let Envelope { count, next, previous, results } = page;
                Self { record, results, next, previous, count }
            }
        }

        impl Rest for $name {
            fn rest(self) -> Value {
                json!(self.results)
            }
        }
    )+};
}

pages! {
    /// Enabled configs of plugins with an effect.
    PluginConfigsOf of PluginConfig,
    /// The plugin of the first config of the page, or else the newest plugin.
    record;

    /// Plugins that can be installed.
    PluginCatalogue of CatalogueEntry,
    /// The newest plugin of the group.
    record;

    /// Ids of plugins that no config uses.
    UnusedPlugins of PluginId,
    /// The first plugin of the page, or else the newest plugin of the group.
    record;
}
