//! Descriptions of the entries of the catalogue.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::config::{Config, ConfigError};
use crate::event::{Flow, StepEvent};
use crate::locate::Locate;

/// Prefix of the addresses of catalogue plugins, before the id.
pub const URL: &str = "inline:";
/// The maintainer of catalogue plugins in the list of the catalogue.
pub const MAINTAINER: &str = "official";

/// The effect of a plugin on events, with the words of the list of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It imports or completes data.
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
    pub const fn text(self) -> &'static str {
        match self {
            Self::In => "data_in",
            Self::Out => "data_out",
            Self::Filtering => "ingestion_filtering",
            Self::Frontend => "frontend",
        }
    }
}

/// The type of the value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// JSON, or a text that contains JSON.
    Json,
}

/// A setting (PLG-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Its name in the config.
    pub key: &'static str,
    /// Display name.
    pub name: &'static str,
    /// Type of the value.
    pub kind: ItemKind,
    /// The default value; empty for none.
    pub default: &'static str,
    /// Help text, one sentence.
    pub hint: &'static str,
    /// Whether an enabled config must have a value.
    pub required: bool,
    /// Whether it is a secret, which is never returned.
    pub secret: bool,
}

impl Item {
    /// A text setting.
    pub(crate) const fn text(key: &'static str, name: &'static str, hint: &'static str) -> Self {
        let kind = ItemKind::Text;
        Self { key, name, kind, default: "", hint, required: false, secret: false }
    }

    /// A JSON setting.
    pub(crate) const fn json(key: &'static str, name: &'static str, hint: &'static str) -> Self {
        Self { kind: ItemKind::Json, ..Self::text(key, name, hint) }
    }

    /// A setting with a choice of words.
    pub(crate) const fn choice(
        key: &'static str,
        name: &'static str,
        choices: &'static [&'static str],
        default: &'static str,
        hint: &'static str,
    ) -> Self {
        Self { kind: ItemKind::Choice(choices), default, ..Self::text(key, name, hint) }
    }

    /// A boolean setting.
    pub(crate) const fn yes_no(
        key: &'static str,
        name: &'static str,
        default: &'static str,
        hint: &'static str,
    ) -> Self {
        Self::choice(key, name, &["Yes", "No"], default, hint)
    }

    /// Sets the default.
    pub(crate) const fn or(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// Makes it required.
    pub(crate) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Makes it a secret.
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

/// A transformation that runs for every event.
pub trait Step: Send + Sync {
    /// Changes the event or drops it.
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow;
}

/// Dependencies of steps.
#[derive(Clone, Default)]
pub struct StepDependencies {
    /// Locations of IP addresses; `None` if the operator has supplied no database.
    pub locate: Option<Arc<dyn Locate>>,
}

/// Creates a step, or returns the fault of its config.
pub(crate) type Make = fn(&Config<'_>, &StepDependencies) -> Result<Box<dyn Step>, ConfigError>;
/// Returns the fault of a config.
pub(crate) type Check = fn(&Config<'_>) -> Result<(), ConfigError>;

/// A file of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name, as in `index.ts`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The code of an entry.
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

/// JavaScript, and the check of its configs.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The files.
    pub files: &'static [SourceFile],
    /// The functions that it exports for the server, as inspecting the code would find.
    pub methods: &'static [&'static str],
    pub(crate) check: Check,
}

/// A plugin that Weir ships.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its id in addresses ([`Entry::url`]), and the name of its documentation page.
    pub id: &'static str,
    /// Display name.
    pub name: &'static str,
    /// Description in one sentence.
    pub description: &'static str,
    /// The name of an icon in the sprite of the app.
    pub icon: Option<&'static str>,
    /// The effect on events.
    pub direction: Direction,
    /// Its settings, in the order of forms.
    pub items: &'static [Item],
    /// Its code.
    pub code: Code,
}

impl Entry {
    /// The address of the plugin.
    pub fn url(&self) -> String {
        format!("{URL}{}", self.id)
    }

    /// The documentation page, as a path from the root of the repository.
    pub fn page(&self) -> String {
        format!("docs/catalogue/{}.md", self.id)
    }

    /// Its settings as a list of items (PLG-2).
    pub fn config_schema(&self) -> Value {
        self.items.iter().map(|item| item.to_json()).collect()
    }

    /// Its capabilities (PLG-3).
    pub fn capabilities(&self) -> Value {
        match self.code {
            Code::Native(_) => {
                json!({"methods": ["processEvent"], "scheduled_tasks": [], "jobs": []})
            }
            // An object without keys marks an app for pages (PLG-6).
            Code::Source(Source { methods: [], .. }) => json!({}),
            Code::Source(Source { methods, .. }) => {
                json!({"methods": methods, "scheduled_tasks": [], "jobs": []})
            }
        }
    }

    /// Whether it removes data from events that must not be stored. If it cannot run, the
    /// event is dropped by default.
    pub fn protects(&self) -> bool {
        crate::PROTECTING.contains(&self.id)
    }

    /// Whether it can send requests.
    pub const fn connects(&self) -> bool {
        matches!(self.code, Code::Source(_))
    }

    /// The source files; empty for a step in Rust.
    pub const fn files(&self) -> &'static [SourceFile] {
        match self.code {
            Code::Native(_) => &[],
            Code::Source(Source { files, .. }) => files,
        }
    }

    /// The item in the list of the catalogue (PLG-12).
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

    /// Checks a config before it is saved.
    ///
    /// # Errors
    /// The first fault, with the key of its setting.
    pub fn check(&self, config: &Map<String, Value>) -> Result<(), ConfigError> {
        let config = Config::new(config, self.items);
        match self.code {
            Code::Native(Native(make)) => make(&config, &StepDependencies::default()).map(drop),
            Code::Source(Source { check, .. }) => check(&config),
        }
    }

    /// The step with this config; `None` if the entry is JavaScript.
    ///
    /// # Errors
    /// The first fault of the config, with the key of its setting.
    pub fn step(
        &self,
        config: &Map<String, Value>,
        dependencies: &StepDependencies,
    ) -> Result<Option<Box<dyn Step>>, ConfigError> {
        match self.code {
            Code::Native(Native(make)) => {
                make(&Config::new(config, self.items), dependencies).map(Some)
            }
            Code::Source(_) => Ok(None),
        }
    }
}
