//! Trying transformations with an event that is not stored (PLG-20).

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;
use weir_model::Timestamp;
use weir_model::errors::FieldError;
use weir_model::events::EventQuery;
use weir_model::json::JsonText;
use weir_model::plugin_configs::{DryRun, DryRunInput};
use weir_store::events;
use weir_store::ids;
use weir_store::plugin_runtime::registry::{self, ConfigWithSource};

use super::PluginConfigs;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::plugins::code::DryTrial;
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;

/// The default name of an event without one.
const NAME: &str = "$pageview";
const PERSON: &str = "sample-visitor";
const PAGE: &str = "https://shop.example/tea?utm_source=letter";

/// The event to try.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// The newest event of the project, or an example where it has none.
    Newest,
    /// A stored event.
    Stored(Uuid),
    /// An event, or a part of one.
    Given(Map<String, Value>),
}

/// An event, and the result of transformations.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The event before all transformations.
    pub before: JsonText,
    /// The result of each transformation.
    pub run: DryRun,
}

impl PluginConfigs {
    /// Sends an event through one config, enabled or not, or through all enabled ones.
    /// Returns it before and after.
    ///
    /// # Errors
    /// As [`Self::try_one`]; [`Error::NotFound`] also for an event that is not stored.
    pub async fn compare(
        &self,
        project: &ProjectCtx,
        config: Option<&str>,
        sample: Sample,
    ) -> Result<Tried> {
        let configs = match config {
            Some(config) => self.alone(project, config).await?,
            None => self.all_enabled(project).await?,
        };
        let before = match sample {
            Sample::Newest => self.newest(project).await?,
            Sample::Stored(uuid) => {
                let query = EventQuery { limit: 1, uuid: Some(uuid), ..EventQuery::default() };
                self.stored(project, &query).await?.ok_or(Error::NotFound(NOT_FOUND))?
            }
            Sample::Given(sent) => completed(project, &sent)?,
        };
        let run = self.try_with(project, configs, before.clone()).await?;
        Ok(Tried { before, run })
    }

    /// Sends an event through one config, enabled or not.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::NotFound`]; [`Error::Invalid`] where the
    /// organization is not allowed to configure plugins, or the event is not valid;
    /// [`Error::Unavailable`] when many calls of the caller wait already.
    pub async fn try_one(
        &self,
        project: &ProjectCtx,
        config: &str,
        input: impl Into<Unchecked<'_, DryRunInput>>,
    ) -> Result<DryRun> {
        let configs = self.alone(project, config).await?;
        let event = self.event(project, input.into().read()?).await?;
        self.try_with(project, configs, event).await
    }

    /// Sends an event through all enabled configs of the project, in their order.
    ///
    /// # Errors
    /// As [`Self::try_one`].
    pub async fn try_all(
        &self,
        project: &ProjectCtx,
        input: impl Into<Unchecked<'_, DryRunInput>>,
    ) -> Result<DryRun> {
        let configs = self.all_enabled(project).await?;
        let event = self.event(project, input.into().read()?).await?;
        self.try_with(project, configs, event).await
    }

    async fn alone(&self, project: &ProjectCtx, config: &str) -> Result<Vec<ConfigWithSource>> {
        let config = self.writable(project, config).await?;
        let plugin = self.plugin(&config).await?;
        let files = registry::source(&self.core.store, plugin.id).await?;
        Ok(vec![ConfigWithSource { config, plugin, files }])
    }

    async fn all_enabled(&self, project: &ProjectCtx) -> Result<Vec<ConfigWithSource>> {
        policy::check(&project.org, Action::WritePlugins)?;
        self.require_access(&project.org).await?;
        Ok(registry::running_with_source(&self.core.store, project.project).await?)
    }

    async fn event(&self, project: &ProjectCtx, input: DryRunInput) -> Result<JsonText> {
        match input.event {
            Some(sent) => completed(project, &sent),
            None => self.newest(project).await,
        }
    }

    async fn try_with(
        &self,
        project: &ProjectCtx,
        configs: Vec<ConfigWithSource>,
        event: JsonText,
    ) -> Result<DryRun> {
        let (user, event_before) = (project.org.ctx.user(), event.clone());
        let trial = DryTrial { user, project: project.project, configs, event };
        Ok(DryRun::of(event_before, self.code.dry_run(trial).await?))
    }

    /// The newest event of the project, or an example where it has none.
    async fn newest(&self, project: &ProjectCtx) -> Result<JsonText> {
        let query = EventQuery { limit: 1, ..EventQuery::default() };
        if let Some(stored) = self.stored(project, &query).await? {
            return Ok(stored);
        }
        let mut made_up = Map::new();
        let properties = json!({"$current_url": PAGE, "$ip": "203.0.113.7"});
        made_up.insert("properties".to_owned(), properties);
        completed(project, &made_up)
    }

    /// The first event that a query finds.
    async fn stored(&self, project: &ProjectCtx, query: &EventQuery) -> Result<Option<JsonText>> {
        let (found, _) = events::page(&self.core.store, project.project, query).await?;
        let Some(stored) = found.into_iter().next() else { return Ok(None) };
        let properties = JsonText::read(stored.properties);
        Written {
            uuid: stored.uuid.to_string(),
            event: stored.event,
            distinct_id: stored.distinct_id,
            timestamp: Timestamp::from_micros(stored.timestamp).to_string(),
            properties: properties.ok_or_else(|| broken(&"stored properties are no JSON"))?,
        }
        .text()
        .map(Some)
    }
}

/// An event with all required parts. Further parts that plugins expect are derived from
/// these (PLG-27).
#[derive(Serialize)]
struct Written {
    uuid: String,
    event: String,
    distinct_id: String,
    timestamp: String,
    properties: JsonText,
}

impl Written {
    fn text(&self) -> Result<JsonText> {
        let text = serde_json::to_string(self).map_err(|error| broken(&error))?;
        JsonText::read(text).ok_or_else(|| broken(&"a written event is no JSON"))
    }
}

fn broken(what: &impl fmt::Display) -> Error {
    Error::Internal(what.to_string())
}

/// The sent event, with defaults for missing parts.
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
    Written {
        uuid: text("uuid", ids::time_ordered(now).to_string())?,
        event: text("event", NAME.to_owned())?,
        distinct_id: text("distinct_id", PERSON.to_owned())?,
        timestamp: text("timestamp", now.to_string())?,
        properties: JsonText::read(properties)
            .ok_or_else(|| broken(&"written properties are no JSON"))?,
    }
    .text()
}
