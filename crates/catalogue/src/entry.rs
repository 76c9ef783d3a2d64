//! What an entry of the catalogue says of itself.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::config::{Config, ConfigError};
use crate::event::{Flow, StepEvent};
use crate::locate::Locate;

/// What the addresses of our plugins begin with; the id follows.
pub const URL: &str = "inline:";
/// Who looks after our plugins, as the list of the catalogue shows it.
pub const MAINTAINER: &str = "official";

/// What a plugin does with events, in the words of the list of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It brings or completes data.
    In,
    /// It sends events elsewhere.
    Out,
    /// It changes events or drops them before they are stored.
    Filtering,
    /// It runs on the pages of visitors.
    Frontend,
}

impl Direction {
    /// The word on the wire.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::In => "data_in",
            Self::Out => "data_out",
            Self::Filtering => "ingestion_filtering",
            Self::Frontend => "frontend",
        }
    }
}

/// What the value of a setting may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A text.
    Text,
    /// One of these.
    Choice(&'static [&'static str]),
    /// JSON, or its text.
    Json,
}

/// A setting (PLG-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Its name in the config.
    pub key: &'static str,
    /// What people read.
    pub name: &'static str,
    /// What it may be.
    pub kind: ItemKind,
    /// What a new config gets, and what a missing value means; empty for nothing.
    pub default: &'static str,
    /// One sentence of help.
    pub hint: &'static str,
    /// Whether a config that is enabled must have it.
    pub required: bool,
    /// Whether it is never shown.
    pub secret: bool,
}

impl Item {
    /// A text.
    pub(crate) const fn text(key: &'static str, name: &'static str, hint: &'static str) -> Self {
        let kind = ItemKind::Text;
        Self { key, name, kind, default: "", hint, required: false, secret: false }
    }

    /// JSON.
    pub(crate) const fn json(key: &'static str, name: &'static str, hint: &'static str) -> Self {
        Self { kind: ItemKind::Json, ..Self::text(key, name, hint) }
    }

    /// One of some words.
    pub(crate) const fn choice(
        key: &'static str,
        name: &'static str,
        choices: &'static [&'static str],
        default: &'static str,
        hint: &'static str,
    ) -> Self {
        Self { kind: ItemKind::Choice(choices), default, ..Self::text(key, name, hint) }
    }

    /// Yes or no.
    pub(crate) const fn yes_no(
        key: &'static str,
        name: &'static str,
        default: &'static str,
        hint: &'static str,
    ) -> Self {
        Self::choice(key, name, &["Yes", "No"], default, hint)
    }

    /// The same with a default.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// The same, but it must be there.
    pub(crate) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The same, but never shown.
    pub(crate) const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    fn to_json(self) -> Value {
        let mut item = Map::new();
        let mut put = |name: &str, value: Value| item.insert(name.to_owned(), value);
        put("key", json!(self.key));
        put("name", json!(self.name));
        match self.kind {
            ItemKind::Text => put("type", json!("string")),
            ItemKind::Json => put("type", json!("json")),
            ItemKind::Choice(choices) => {
                put("choices", json!(choices));
                put("type", json!("choice"))
            }
        };
        put("hint", json!(self.hint));
        if !self.default.is_empty() {
            put("default", json!(self.default));
        }
        put("required", json!(self.required));
        put("secret", json!(self.secret));
        Value::Object(item)
    }
}

/// One thing that happens to every event.
pub trait Step: Send + Sync {
    /// Changes the event or drops it.
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow;
}

/// What steps need of their host.
#[derive(Clone, Default)]
pub struct Means {
    /// Where addresses are; nothing where the operator has no such database.
    pub locate: Option<Arc<dyn Locate>>,
}

/// Makes a step, or tells what is wrong with its config.
pub(crate) type Make = fn(&Config<'_>, &Means) -> Result<Box<dyn Step>, ConfigError>;
/// Tells what is wrong with a config.
pub(crate) type Check = fn(&Config<'_>) -> Result<(), ConfigError>;

/// A file of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name, as in `index.ts`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// What an entry consists of.
#[derive(Debug, Clone, Copy)]
pub enum Code {
    /// A step in Rust.
    Native(Native),
    /// JavaScript.
    Source(Source),
}

/// A step in Rust.
#[derive(Debug, Clone, Copy)]
pub struct Native(pub(crate) Make);

/// JavaScript, and what its configs must be.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The files.
    pub files: &'static [SourceFile],
    /// The functions that it exports for the server, as analysing it would find.
    pub methods: &'static [&'static str],
    pub(crate) check: Check,
}

/// A plugin that Weir ships.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its word in addresses, in [`Entry::url`], and the name of its page.
    pub id: &'static str,
    /// What people read.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub description: &'static str,
    /// A symbol of the app's sprite.
    pub icon: Option<&'static str>,
    /// What it does with events.
    pub direction: Direction,
    /// What can be configured, in the order of forms.
    pub items: &'static [Item],
    /// What it consists of.
    pub code: Code,
}

impl Entry {
    /// The address of the plugin.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{URL}{}", self.id)
    }

    /// The page about it, from the root of the checkout.
    #[must_use]
    pub fn page(&self) -> String {
        format!("docs/catalogue/{}.md", self.id)
    }

    /// What can be configured, as a list of items (PLG-2).
    #[must_use]
    pub fn config_schema(&self) -> Value {
        self.items.iter().map(|item| item.to_json()).collect()
    }

    /// What its code can do (PLG-3).
    #[must_use]
    pub fn capabilities(&self) -> Value {
        match self.code {
            Code::Native(_) => {
                json!({"methods": ["processEvent"], "scheduled_tasks": [], "jobs": []})
            }
            // Without any key it counts as an app for pages (PLG-6).
            Code::Source(Source { methods: [], .. }) => json!({}),
            Code::Source(Source { methods, .. }) => {
                json!({"methods": methods, "scheduled_tasks": [], "jobs": []})
            }
        }
    }

    /// Whether it takes something out of events that must not be stored: an event that
    /// it cannot be run on is dropped unless the config says otherwise.
    #[must_use]
    pub fn protects(&self) -> bool {
        crate::PROTECTING.contains(&self.id)
    }

    /// Whether it can make connections.
    #[must_use]
    pub const fn connects(&self) -> bool {
        matches!(self.code, Code::Source(_))
    }

    /// The files, where it is JavaScript.
    #[must_use]
    pub const fn files(&self) -> &'static [SourceFile] {
        match self.code {
            Code::Native(_) => &[],
            Code::Source(Source { files, .. }) => files,
        }
    }

    /// The item that the list of the catalogue shows (PLG-12).
    #[must_use]
    pub fn listed(&self) -> Value {
        json!({
            "name": self.name,
            "url": self.url(),
            "description": self.description,
            "icon": self.icon,
            "verified": true,
            "maintainer": MAINTAINER,
            "displayOnWebsiteLib": true,
            "type": self.direction.text(),
        })
    }

    /// Whether a config is of use. For when it is saved.
    ///
    /// # Errors
    /// The first fault, with the key that has it.
    pub fn check(&self, config: &Map<String, Value>) -> Result<(), ConfigError> {
        let config = Config::new(config, self.items);
        match self.code {
            Code::Native(Native(make)) => make(&config, &Means::default()).map(drop),
            Code::Source(Source { check, .. }) => check(&config),
        }
    }

    /// The step with this config; nothing where it is JavaScript.
    ///
    /// # Errors
    /// The first fault of the config, with the key that has it.
    pub fn step(
        &self,
        config: &Map<String, Value>,
        means: &Means,
    ) -> Result<Option<Box<dyn Step>>, ConfigError> {
        match self.code {
            Code::Native(Native(make)) => make(&Config::new(config, self.items), means).map(Some),
            Code::Source(_) => Ok(None),
        }
    }
}
