//! Trying transformations with an event that is not stored (plugins 9, "test with a
//! sample event").

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::events::EventQuery;
use weir_model::json::JsonText;
use weir_model::plugin_configs::{DryRun, DryRunInput};
use weir_store::events;
use weir_store::ids;
use weir_store::plugin_runtime::registry::{self, Enabled};

use super::PluginConfigs;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::error::Error;
use crate::plugins::code::DryTrial;
use crate::policy::{self, Action};

/// What stands for the parts of an event that are not there.
const NAME: &str = "$pageview";
const PERSON: &str = "sample-visitor";
const PAGE: &str = "https://shop.example/tea?utm_source=letter";

impl PluginConfigs {
    /// Sends an event through one config, enabled or not.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`] where the
    /// organization may not configure plugins, or the event is none;
    /// [`Error::Unavailable`] where nothing runs.
    pub async fn try_one(
        &self,
        project: &ProjectCtx,
        config: &str,
        input: DryRunInput,
    ) -> Result<DryRun> {
        let config = self.writable(project, config).await?;
        let plugin = self.plugin(&config).await?;
        let files = registry::source(&self.core.store, plugin.id).await?;
        self.try_with(project, vec![Enabled { config, plugin, files }], input).await
    }

    /// Sends an event through all enabled configs of the project, in their order.
    ///
    /// # Errors
    /// As [`Self::try_one`].
    pub async fn try_all(&self, project: &ProjectCtx, input: DryRunInput) -> Result<DryRun> {
        policy::check(&project.org, Action::WritePlugins)?;
        self.require_access(&project.org).await?;
        let configs = registry::enabled_of(&self.core.store, project.project).await?;
        self.try_with(project, configs, input).await
    }

    async fn try_with(
        &self,
        project: &ProjectCtx,
        configs: Vec<Enabled>,
        input: DryRunInput,
    ) -> Result<DryRun> {
        let nobody = || Error::Unavailable("plugins do not run here");
        let code = self.core.plugin_code.get().ok_or_else(nobody)?;
        let event = match input.event {
            Some(sent) => completed(project, &sent)?,
            None => self.newest(project).await?,
        };
        let trial = DryTrial { project: project.project, configs, event: event.clone() };
        Ok(DryRun::of(event, code.dry_run(trial).await))
    }

    /// The newest event of the project, or a made-up one where it has none.
    async fn newest(&self, project: &ProjectCtx) -> Result<JsonText> {
        let query = EventQuery { limit: 1, ..EventQuery::default() };
        let (found, _) = events::page(&self.core.store, project.project, &query).await?;
        let Some(stored) = found.into_iter().next() else {
            let mut made_up = Map::new();
            let properties = json!({"$current_url": PAGE, "$ip": "203.0.113.7"});
            made_up.insert("properties".to_owned(), properties);
            return completed(project, &made_up);
        };
        let properties = JsonText::read(stored.properties);
        Sample {
            uuid: stored.uuid.to_string(),
            event: stored.event,
            distinct_id: stored.distinct_id,
            timestamp: Timestamp::from_micros(stored.timestamp).to_string(),
            properties: properties.ok_or_else(|| broken(&"stored properties are no JSON"))?,
        }
        .text()
    }
}

/// An event with all parts that one must have. What else plugins expect of it is made
/// of these (plugins 6.3).
#[derive(Serialize)]
struct Sample {
    uuid: String,
    event: String,
    distinct_id: String,
    timestamp: String,
    properties: JsonText,
}

impl Sample {
    fn text(&self) -> Result<JsonText> {
        let text = serde_json::to_string(self).map_err(|error| broken(&error))?;
        JsonText::read(text).ok_or_else(|| broken(&"a written event is no JSON"))
    }
}

fn broken(what: &impl fmt::Display) -> Error {
    Error::Internal(what.to_string())
}

/// What was sent, with what it lacks.
fn completed(project: &ProjectCtx, sent: &Map<String, Value>) -> Result<JsonText> {
    let now = project.org.ctx.now;
    let wrong = |name: &str, detail: &str| {
        FieldError::new(&format!("event__{name}"), "invalid_input", detail)
    };
    let text = |name: &str, otherwise: String| match sent.get(name) {
        None | Some(Value::Null) => Ok(otherwise),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(wrong(name, "Not a valid string.")),
    };
    let properties = match sent.get("properties") {
        None | Some(Value::Null) => json!({}).to_string(),
        Some(Value::Object(properties)) => json!(properties).to_string(),
        Some(_) => return Err(wrong("properties", "Expected an object.").into()),
    };
    Sample {
        uuid: text("uuid", ids::time_ordered(now).to_string())?,
        event: text("event", NAME.to_owned())?,
        distinct_id: text("distinct_id", PERSON.to_owned())?,
        timestamp: text("timestamp", now.to_string())?,
        properties: JsonText::read(properties)
            .ok_or_else(|| broken(&"written properties are no JSON"))?,
    }
    .text()
}
