//! Calls of scripts to the host while they run (PLG-28).
//!
//! What belongs here: the effect of each call, and its bounds. What does not: whether a
//! script may make a call, which the sandbox decides by its grants.
//!
//! Errors are messages for the author of the script.

mod cache;
mod fetch;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use weir_model::plugin_configs::{JOB_MAX, JOBS_MAX, LogLevel, LogSource};
use weir_model::{PluginConfigId, Timestamp};
use weir_sandbox::{HostCall, MetricOp, Program, ScriptHost};
use weir_store::ids;
use weir_store::plugin_configs::jobs::{self, Added, JobRow};
use weir_store::plugin_runtime::storage::{self, Bounds, KEY_MAX};

use crate::Shared;
use crate::registry::Active;
use crate::report::Joined;
use crate::services::Captured;

use cache::Cache;
pub(crate) use fetch::{SendError, send};

/// Concurrent requests of one config.
const FETCHING: usize = 10;
/// Events that a config may capture in a burst.
const BURST: f64 = 10_000.0;
/// Events that a config may capture per second.
const STEADY: f64 = 200.0;
/// The longest delay of a job, in milliseconds: ten years.
const LATEST: f64 = 10.0 * 365.0 * 86_400_000.0;
/// Key prefix of cursors in the storage.
const CURSOR: &str = "$cursor:";
/// The property with the config that captured the event. The event is not delivered to
/// the same config, which could otherwise capture further events for ever.
pub(crate) const MADE_BY: &str = "$plugin_config_id";

/// State of a config in memory that survives a change of the config.
pub(crate) struct ConfigState {
    cache: Mutex<Cache>,
    fetching: Semaphore,
    captures: Mutex<Bucket>,
}

/// A token bucket: the events that may be captured now.
struct Bucket {
    left: f64,
    at: Duration,
}

impl Bucket {
    fn take(&mut self, now: Duration) -> bool {
        let gone = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.left = (self.left + gone * STEADY).min(BURST);
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

impl Shared {
    fn belongings(&self, config: PluginConfigId) -> Arc<ConfigState> {
        let mut all = self.belongings.lock();
        let own = all.entry(config).or_insert_with(|| {
            Arc::new(ConfigState {
                cache: Mutex::default(),
                fetching: Semaphore::new(FETCHING),
                captures: Mutex::new(Bucket { left: BURST, at: self.services.uptime() }),
            })
        });
        Arc::clone(own)
    }

    /// Removes the state of configs that are not enabled.
    pub(crate) fn forget_belongings(&self) {
        self.belongings.lock().retain(|config, _| self.registry.config(*config).is_some());
    }
}

#[async_trait]
impl ScriptHost for Shared {
    async fn call(&self, program: &Program, call: HostCall) -> Result<Value, String> {
        let config = PluginConfigId(program.key.config);
        match call {
            HostCall::Log { level, message } => {
                let now = self.services.now();
                self.report.line(config, LogSource::Console, level_of(level), &message, now);
                Ok(Value::Null)
            }
            HostCall::Metric { name, op, value } => {
                let joined = match op {
                    MetricOp::Increment => Joined::Sum,
                    MetricOp::Min => Joined::Least,
                    MetricOp::Max => Joined::Most,
                };
                self.report.metric(config, &name, joined, value);
                Ok(Value::Null)
            }
            HostCall::Geoip { ip } => {
                let address: Option<IpAddr> = ip.trim().parse().ok();
                let record = address.and_then(|address| self.locations.as_ref()?.record(address));
                Ok(record.unwrap_or_default())
            }
            HostCall::Fetch { url, method, headers, body } => {
                let own = self.belongings(config);
                let _slot = own.fetching.acquire().await.map_err(|error| error.to_string())?;
                fetch::fetch(&self.egress, &url, &method, &headers, body).await
            }
            call => {
                let active = self.registry.config(config);
                let active = active.ok_or_else(|| "the config is not enabled".to_owned())?;
                self.call_of(&active, call).await
            }
        }
    }
}

impl Shared {
    /// Runs calls that depend on the config.
    async fn call_of(&self, active: &Active, call: HostCall) -> Result<Value, String> {
        match call {
            HostCall::StorageGet { key } => self.stored(active, &key).await,
            HostCall::StorageSet { key, value } => self.put(active, &key, &value).await,
            HostCall::StorageDel { key } => {
                storage::remove(&self.store, active.id(), key_of(&key)?).await.map_err(failed)?;
                Ok(Value::Null)
            }
            HostCall::CursorInit { key, value } => {
                self.put(active, &format!("{CURSOR}{key}"), &whole(value)?.into()).await
            }
            HostCall::CursorIncrement { key, by } => {
                let (key, by) = (format!("{CURSOR}{key}"), whole(by)?);
                let next = storage::increment(&self.store, active.id(), key_of(&key)?, by).await;
                next.map(Value::from).map_err(failed)
            }
            HostCall::Capture { event, distinct_id, timestamp, properties } => {
                let Value::Object(properties) = properties else {
                    return Err("the properties of an event are an object".to_owned());
                };
                self.capture(active, event, distinct_id, timestamp, properties).await
            }
            HostCall::JobEnqueue { name, payload, after_ms } => {
                self.enqueue(active, name, &payload, after_ms).await
            }
            call => self.cached(active, call),
        }
    }

    async fn stored(&self, active: &Active, key: &str) -> Result<Value, String> {
        let found = storage::get(&self.store, active.id(), key_of(key)?).await.map_err(failed)?;
        Ok(found.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    async fn put(&self, active: &Active, key: &str, value: &Value) -> Result<Value, String> {
        let (project, config) = (active.project(), active.id());
        let (key, text) = (key_of(key)?, value.to_string());
        match storage::set(&self.store, project, config, key, &text, Bounds::USUAL).await {
            Ok(true) => Ok(Value::Null),
            Ok(false) => {
                Err("the storage of a config holds at most 1000 keys and 1 MiB".to_owned())
            }
            Err(error) => Err(failed(error)),
        }
    }

    async fn capture(
        &self,
        active: &Active,
        event: String,
        distinct_id: String,
        timestamp: Option<String>,
        mut properties: Map<String, Value>,
    ) -> Result<Value, String> {
        if !self.belongings(active.id()).captures.lock().take(self.services.uptime()) {
            return Err("a config may capture 200 events a second".to_owned());
        }
        properties.insert(MADE_BY.to_owned(), active.id().0.into());
        let captured = Captured {
            project: active.project(),
            event,
            distinct_id,
            timestamp,
            properties,
            historical: active.capabilities.imports,
        };
        self.services.capture(captured).await.map(|()| Value::Null)
    }

    async fn enqueue(
        &self,
        active: &Active,
        name: String,
        payload: &Value,
        after_ms: f64,
    ) -> Result<Value, String> {
        if name.chars().nth(JOB_MAX).is_some() {
            return Err("the name of a job has at most 200 characters".to_owned());
        }
        let now = self.services.now();
        let after_ms = if after_ms.is_finite() { after_ms.clamp(0.0, LATEST) } else { 0.0 };
        let run_at = now.micros().saturating_add((after_ms * 1_000.0) as i64);
        let job = JobRow {
            id: ids::time_ordered(now),
            config: active.id(),
            kind: name,
            payload: payload.to_string(),
            created_at: now,
            run_at: Some(Timestamp::from_micros(run_at)),
        };
        match jobs::add(&self.store, active.project(), &job, JOBS_MAX, &[]).await {
            Ok(Added::Yes) => Ok(Value::Null),
            Ok(Added::TooMany) => Err("at most 100 jobs of a config may wait".to_owned()),
            Ok(Added::NoConfig) => Err("the config was deleted meanwhile".to_owned()),
            Err(error) => Err(failed(error)),
        }
    }

    fn cached(&self, active: &Active, call: HostCall) -> Result<Value, String> {
        let own = self.belongings(active.id());
        let (mut cache, now) = (own.cache.lock(), self.services.uptime());
        let done = match call {
            HostCall::CacheGet { key } => Ok(cache.get(&key, now)),
            HostCall::CacheSet { key, value, ttl } => {
                cache.set(&key, value, ttl, now).map(|()| Value::Null)
            }
            HostCall::CacheIncr { key } => cache.increment(&key, now),
            HostCall::CacheExpire { key, ttl } => Ok(cache.expire(&key, ttl, now).into()),
            HostCall::CacheLpush { key, values } => cache.push(&key, values, now).map(Value::from),
            HostCall::CacheLrange { key, start, end } => {
                cache.range(&key, start, end, now).map(Value::from)
            }
            HostCall::CacheLlen { key } => cache.length(&key, now).map(Value::from),
            HostCall::CacheLpop { key, count } => cache.pop(&key, count, now).map(Value::from),
            HostCall::CacheLrem { key, count, value } => {
                cache.remove(&key, count, &value, now).map(Value::from)
            }
            _ => return Err("there is no such call".to_owned()),
        };
        done.map_err(|fault| fault.to_string())
    }
}

pub(crate) fn level_of(level: weir_sandbox::LogLevel) -> LogLevel {
    match level {
        weir_sandbox::LogLevel::Debug => LogLevel::Debug,
        weir_sandbox::LogLevel::Log => LogLevel::Log,
        weir_sandbox::LogLevel::Info => LogLevel::Info,
        weir_sandbox::LogLevel::Warn => LogLevel::Warn,
        weir_sandbox::LogLevel::Error => LogLevel::Error,
    }
}

fn key_of(key: &str) -> Result<&str, String> {
    if key.is_empty() || key.chars().nth(KEY_MAX).is_some() {
        return Err("a key of the storage has 1 to 200 characters".to_owned());
    }
    Ok(key)
}

fn whole(number: f64) -> Result<i64, String> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let is_whole = number.is_finite() && number.trunc().to_bits() == number.to_bits();
    if !is_whole || number.abs() > LARGEST {
        return Err("a cursor is a whole number".to_owned());
    }
    Ok(number as i64)
}

/// The message for members when the store failed. It contains no details.
fn failed(error: weir_store::Error) -> String {
    tracing::error!(%error, "a call of a plugin failed");
    "this cannot be stored or read at this time".to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BURST, Bucket, key_of, whole};

    #[test]
    fn captures_have_a_burst_and_a_rate() {
        let at = Duration::from_secs(5);
        let mut bucket = Bucket { left: BURST, at };
        let taken = (0..20_000).filter(|_| bucket.take(at)).count();
        assert_eq!(taken, 10_000);
        let later = at + Duration::from_secs(2);
        let taken = (0..20_000).filter(|_| bucket.take(later)).count();
        assert_eq!(taken, 400);
    }

    #[test]
    fn cursors_are_whole_and_keys_short() {
        assert_eq!((whole(5.0), whole(-3.0)), (Ok(5), Ok(-3)));
        for bad in [0.5, f64::NAN, f64::INFINITY, 1e300] {
            assert!(whole(bad).is_err(), "{bad}");
        }
        assert!(key_of("").is_err() && key_of(&"x".repeat(201)).is_err());
        assert!(key_of(&"ä".repeat(200)).is_ok());
    }
}
