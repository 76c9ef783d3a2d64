//! The health of configs, which answers about them contain (PLG-18).

use std::collections::HashMap;

use weir_model::json::JsonText;
use weir_model::plugin_configs::{ConfigError, ConfigFault, PluginConfig, Texted};
use weir_model::{PluginConfigId, Timestamp};
use weir_store::plugin_runtime::health::{self as rows, Fault, Health};

use crate::{Core, Result};

/// Length of an hour, in microseconds.
const HOUR: i64 = 3_600_000_000;
/// How many hours the rate covers, with the present one.
const HOURS: i64 = 24;

/// The results of a config in the last 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// The number of events that it passed on without a fault; dropped events are not
    /// included.
    pub succeeded: u64,
    /// The number of events that it failed for.
    pub failed: u64,
    /// The number of events that it dropped on purpose.
    pub dropped: u64,
}

/// The results of configs in the last 24 hours. Configs without results are skipped.
pub(super) async fn numbers(
    core: &Core,
    configs: &[PluginConfigId],
) -> Result<HashMap<PluginConfigId, Numbers>> {
    let found = rows::health(&core.store, configs, since(core.clock.now())).await?;
    let of = |health: Health| Numbers {
        succeeded: health.succeeded,
        failed: health.failed,
        dropped: health.dropped,
    };
    Ok(found.into_iter().map(|(config, health)| (config, of(health))).collect())
}

/// Adds the last fault and the success rate of the last 24 hours to configs.
pub(super) async fn tell(core: &Core, configs: &mut [PluginConfig]) -> Result<()> {
    let ids: Vec<PluginConfigId> = configs.iter().map(|config| config.id).collect();
    let mut found = rows::health(&core.store, &ids, since(core.clock.now())).await?;
    for config in configs {
        let health = found.remove(&config.id).unwrap_or_default();
        config.fields.delivery_rate_24h = rate(&health).map(Texted::Value);
        config.fields.error = health.fault.map(|fault| ConfigError::Whole(shown(fault)));
    }
    Ok(())
}

/// A fault as the API shows it.
fn shown(fault: Fault) -> ConfigFault {
    let Fault { message, at, sample } = fault;
    ConfigFault { message, time: at, event: sample.and_then(event) }
}

/// The event of a sample, or its text where it was cut.
fn event(sample: String) -> Option<JsonText> {
    JsonText::read(sample.clone()).or_else(|| JsonText::read(weir_json::quoted(&sample)))
}

/// The first hour that counts.
fn since(now: Timestamp) -> i64 {
    now.micros().div_euclid(HOUR) - (HOURS - 1)
}

/// The part of events without a fault; `None`: there were no events.
fn rate(health: &Health) -> Option<f64> {
    let tried = health.succeeded.saturating_add(health.failed);
    // Counts of a day are far below the bound of exact numbers.
    (tried > 0).then(|| health.succeeded as f64 / tried as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_a_part_of_what_was_tried() {
        let rate =
            |succeeded, failed, dropped| rate(&Health { fault: None, succeeded, failed, dropped });
        assert_eq!(rate(0, 0, 5), None);
        assert_eq!(rate(3, 1, 0), Some(0.75));
        assert_eq!(rate(0, 1, 0), Some(0.0));
    }

    #[test]
    fn a_sample_that_was_cut_is_a_text() {
        let event = |sample: &str| event(sample.to_owned()).unwrap().text().to_owned();
        assert_eq!(event(r#"{"n":12345678901234567890123}"#), r#"{"n":12345678901234567890123}"#);
        assert_eq!(event(r#"{"n":"x"#), r#""{\"n\":\"x""#);
    }

    #[test]
    fn a_day_has_24_hours() {
        let at = |hour: i64| since(Timestamp::from_micros(hour * HOUR + 5));
        assert_eq!(at(100), 77);
    }
}
