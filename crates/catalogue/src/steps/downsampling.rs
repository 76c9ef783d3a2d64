//! Keeps the events of a fraction of the users.

use sha2::{Digest, Sha256};

use crate::config::{Config, ConfigError};
use crate::entry::{Code, Direction, Entry, Item, Native, Step, StepDependencies};
use crate::event::{Flow, StepEvent};

pub(crate) const ENTRY: Entry = Entry {
    id: "downsampling",
    name: "Downsampling",
    description: "Keeps all events of a percentage of the distinct ids, and drops those of the others.",
    icon: Some("drop"),
    direction: Direction::Filtering,
    items: &[
        Item::text("percentage", "Percentage to keep", "From 0 to 100, also with decimals.")
            .required(),
        Item::text(
            "events",
            "Events",
            "Names that are sampled, separated by commas; all when empty.",
        ),
    ],
    code: Code::Native(Native(make)),
};

fn make(config: &Config<'_>, _: &StepDependencies) -> Result<Box<dyn Step>, ConfigError> {
    let share = config.number("percentage", 0.0, 100.0)? / 100.0;
    Ok(Box::new(Downsampling { share, names: config.list("events")? }))
}

struct Downsampling {
    /// From 0 to 1.
    share: f64,
    /// Empty: all.
    names: Vec<String>,
}

impl Step for Downsampling {
    fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
        if !self.names.is_empty() && !self.names.iter().any(|name| name == event.name()) {
            return Flow::Keep;
        }
        if place(event.distinct_id()) < self.share { Flow::Keep } else { Flow::Drop }
    }
}

/// Maps a distinct id to a number between 0 and 1. The mapping never changes, so that a
/// higher fraction contains the users of a lower one.
fn place(distinct_id: &str) -> f64 {
    let digest = Sha256::digest(distinct_id);
    let number = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // 48 bits fit into a double.
    number as f64 / (1_u64 << 48) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use weir_model::time::Timestamp;

    use crate::event::{Flow, StepEvent};
    use crate::testing::{after_named, fault, step};

    fn kept(config: &Value) -> Vec<String> {
        let step = step("downsampling", config).unwrap();
        let ids = (0..10_000).map(|number| format!("ü{number}"));
        ids.filter(|id| {
            let mut event = StepEvent::new("e", id, None, Timestamp::EPOCH, "{}").unwrap();
            let flow = step.apply(&mut event);
            assert!(!event.is_changed());
            flow == Flow::Keep
        })
        .collect()
    }

    #[test]
    fn a_share_of_the_people_is_kept_always_the_same() {
        let ten = kept(&json!({"percentage": "10"}));
        assert!((900..1100).contains(&ten.len()), "{}", ten.len());
        assert_eq!(ten, kept(&json!({"percentage": 10})));
        let more = kept(&json!({"percentage": "12.5"}));
        assert!(ten.iter().all(|id| more.contains(id)));
        assert_eq!(kept(&json!({"percentage": "0"})).len(), 0);
        assert_eq!(kept(&json!({"percentage": "100"})).len(), 10_000);
    }

    #[test]
    fn other_events_are_not_sampled() {
        let config = json!({"percentage": "0", "events": "scroll"});
        assert_eq!(after_named("downsampling", &config, "scroll", "{}"), None);
        assert!(after_named("downsampling", &config, "signup", "{}").is_some());
    }

    #[test]
    fn faults() {
        for percentage in
            [json!(null), json!(""), json!("x"), json!("-1"), json!("101"), json!("NaN")]
        {
            let key = fault("downsampling", &json!({"percentage": percentage})).0;
            assert_eq!(key, "percentage", "{percentage}");
        }
    }
}
