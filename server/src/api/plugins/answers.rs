//! What plugin operations answer. Clients of the protocol expect a plugin
//! record from each of them; what else there is to say stands beside its fields,
//! under names that no field has. With `raw=true` only that is answered, in the
//! form of the service that the clients were made for (PLG-7).

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

/// An answer in the form of a record, or what it says besides.
#[derive(Debug)]
pub enum Shaped<T> {
    /// The record with the rest.
    Whole(T),
    /// The rest alone.
    Raw(Value),
}

/// What an answer says besides the record.
pub trait Rest {
    /// It, in the form that `raw=true` asks for.
    fn rest(self) -> Value;
}

impl<T: Rest> Shaped<T> {
    /// The answer as it was asked for.
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

/// A plugin that was asked for a newer version.
#[derive(Debug, Serialize, ToSchema)]
pub struct PluginCheck {
    /// The plugin.
    #[serde(flatten)]
    pub record: Plugin,
    /// The plugin once more.
    pub plugin: Plugin,
    /// Why nobody knows whether there is a newer version; null when it is known, and of
    /// a plugin that has none.
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

/// A plugin with its source files: each under its name, which has a dot.
#[derive(Debug, Serialize, ToSchema)]
pub struct PluginSource {
    /// The plugin.
    #[serde(flatten)]
    pub record: Plugin,
    /// What is wrong with source files: from the name of a file to a sentence.
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

/// What was done with plugins, a page of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct PluginActivityPage {
    /// The plugin that the newest entry is about, else the newest one.
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
    /// The same.
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

/// Answers with a page of a list beside the record; `raw=true` asks for the results alone.
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
    /// Configs of plugins that cost something.
    PluginConfigsOf of PluginConfig,
    /// The plugin of the first config of the page, else the newest one.
    record;

    /// Plugins that can be installed.
    PluginCatalogue of CatalogueEntry,
    /// The newest plugin of the group.
    record;

    /// Ids of plugins that nothing uses.
    UnusedPlugins of PluginId,
    /// The first of the page, else the newest plugin of the group.
    record;
}
