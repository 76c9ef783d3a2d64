//! Running the steps that are written in Rust.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use weir_catalogue::{Flow, Step, StepEvent};
use weir_ingest::transform::Invalid;
use weir_model::{PluginConfigId, Timestamp};

use super::in_progress::EventInProgress;
use super::{TimedVerdict, Verdict, panicked};
use crate::shape;

/// The result of a step for an event.
enum StepResult {
    Same,
    /// The new properties; other fields are unchanged.
    Properties(String),
    /// The new event.
    Other(String),
    Nothing,
    /// The step cannot read the event.
    Unreadable,
}

/// The message for an event that a step cannot read.
const UNREADABLE: &str = "The properties of the event could not be read.";

/// Runs a step for events, one after another.
pub(crate) fn run(
    step: &dyn Step,
    config: PluginConfigId,
    name: &str,
    events: &mut [EventInProgress],
) -> Vec<TimedVerdict> {
    events.iter_mut().map(|event| run_on(step, config, name, event)).collect()
}

fn run_on(
    step: &dyn Step,
    config: PluginConfigId,
    name: &str,
    in_progress: &mut EventInProgress,
) -> TimedVerdict {
    let absent = TimedVerdict::of(Verdict::Absent);
    let Some(event) = in_progress.event() else { return absent };
    let began = Instant::now();
    let made = catch_unwind(AssertUnwindSafe(|| {
        let time = Timestamp::from_micros(event.timestamp);
        let (title, id) = (event.event.as_str(), event.distinct_id.as_str());
        // Capture has validated the properties, so this is a defect. A step that must run
        // has not run then.
        let Ok(mut seen) = StepEvent::new(title, id, None, time, &event.properties) else {
            return StepResult::Unreadable;
        };
        match step.apply(&mut seen) {
            Flow::Drop => StepResult::Nothing,
            Flow::Keep if !seen.is_changed() => StepResult::Same,
            Flow::Keep if seen.name() == title && seen.distinct_id() == id => {
                StepResult::Properties(seen.properties_text().into_owned())
            }
            Flow::Keep => StepResult::Other(shape::rebuilt(
                seen.name(),
                seen.distinct_id(),
                event.timestamp,
                &seen.properties_text(),
            )),
        }
    }));
    let took = began.elapsed();
    let failed = |message: String, event: Option<&weir_capture::AcceptedEvent>| TimedVerdict {
        took,
        sample: event.map(|event| {
            shape::rebuilt(&event.event, &event.distinct_id, event.timestamp, &event.properties)
        }),
        ..TimedVerdict::of(Verdict::Failed(message))
    };
    let taken = |taken: Result<(), Invalid>, in_progress: &EventInProgress| match taken {
        Ok(()) => TimedVerdict { took, ..TimedVerdict::of(Verdict::Succeeded) },
        Err(invalid) => failed(invalid.to_string(), in_progress.event()),
    };
    let verdict = match made {
        Ok(StepResult::Same) => Verdict::Succeeded,
        // Not a fault of the step: events of a sender must not disable it.
        Ok(StepResult::Unreadable) => Verdict::NotRun(UNREADABLE.to_owned()),
        Ok(StepResult::Nothing) => {
            in_progress.drop_by(config, name);
            Verdict::Dropped
        }
        Ok(StepResult::Properties(text)) => {
            return taken(in_progress.change_properties(&text), in_progress);
        }
        Ok(StepResult::Other(text)) => return taken(in_progress.change(&text), in_progress),
        Err(panic) => return failed(panicked(&*panic), in_progress.event()),
    };
    TimedVerdict { took, ..TimedVerdict::of(verdict) }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use weir_capture::AcceptedEvent;
    use weir_ingest::transform::{TransformInput, Transformed};

    use super::*;

    /// A step that acts according to the name of the event.
    struct Named;

    impl Step for Named {
        fn apply(&self, event: &mut StepEvent<'_>) -> Flow {
            match event.name() {
                "drop" => return Flow::Drop,
                "change" => event.set_distinct_id("bob".to_owned()),
                "add" => event.properties_mut().set_raw("b", "1"),
                "break" => event.properties_mut().set_raw("b", "NaN"),
                "spoil" => event.set_distinct_id(" ".to_owned()),
                "panic" => panic!("a defect"),
                _ => {}
            }
            Flow::Keep
        }
    }

    fn event(name: &str) -> EventInProgress {
        with_properties(name, r#"{"n":12345678901234567890}"#)
    }

    fn with_properties(name: &str, properties: &str) -> EventInProgress {
        let event = AcceptedEvent {
            uuid: Uuid::from_u128(1),
            event: name.to_owned(),
            distinct_id: "ada".to_owned(),
            timestamp: 1_780_000_000_000_001,
            properties: properties.to_owned(),
            elements_chain: String::new(),
            warnings: Vec::new(),
        };
        EventInProgress::new(TransformInput::single(event, 1_780_000_000_000_002))
    }

    #[test]
    fn each_event_has_its_verdict() {
        let names = ["keep", "change", "drop", "spoil", "panic"];
        let mut events: Vec<EventInProgress> = names.into_iter().map(event).collect();
        let rulings = run(&Named, PluginConfigId(12), "Named", &mut events);
        let verdicts: Vec<&Verdict> = rulings.iter().map(|ruling| &ruling.verdict).collect();
        assert!(matches!(
            verdicts[..],
            [
                Verdict::Succeeded,
                Verdict::Succeeded,
                Verdict::Dropped,
                Verdict::Failed(_),
                Verdict::Failed(_)
            ]
        ));
        assert!(rulings[3].sample.as_ref().is_some_and(|sample| sample.contains("spoil")));
        let ended: Vec<Transformed> = events.into_iter().map(EventInProgress::end).collect();
        let Transformed::Changed(changed) = &ended[1] else { panic!("{:?}", ended[1]) };
        assert_eq!(changed.event().distinct_id, "bob");
        assert_eq!(changed.event().timestamp, 1_780_000_000_000_001);
        assert_eq!(changed.event().properties, r#"{"n":12345678901234567890}"#);
        let dropped = Transformed::Dropped { config: PluginConfigId(12), name: "Named".to_owned() };
        assert_eq!(ended[2], dropped);
        for untouched in [0, 3, 4] {
            assert_eq!(ended[untouched], Transformed::Unchanged, "as it was before the step");
        }
    }

    #[test]
    fn only_properties_change() {
        let mut events = vec![event("add"), event("break")];
        let rulings = run(&Named, PluginConfigId(12), "Named", &mut events);
        assert_eq!(rulings[0].verdict, Verdict::Succeeded);
        assert!(matches!(rulings[1].verdict, Verdict::Failed(_)), "{:?}", rulings[1]);
        // A second run changes nothing.
        assert_eq!(run(&Named, PluginConfigId(13), "Again", &mut events[..1]).len(), 1);
        let ended: Vec<Transformed> = events.into_iter().map(EventInProgress::end).collect();
        let Transformed::Changed(changed) = &ended[0] else { panic!("{:?}", ended[0]) };
        let before = event("add");
        let properties = r#"{"n":12345678901234567890,"b":1}"#.to_owned();
        let expected = AcceptedEvent { properties, ..before.event().unwrap().clone() };
        assert_eq!(changed.event(), &expected);
        assert_eq!(ended[1], Transformed::Unchanged, "what is no JSON is not taken over");
    }

    #[test]
    fn an_event_that_cannot_be_read_has_not_passed_the_step() {
        for properties in ["", "[]", "7", r#"{"a""#] {
            let mut events = vec![with_properties("keep", properties)];
            let rulings = run(&Named, PluginConfigId(12), "Named", &mut events);
            assert!(matches!(rulings[0].verdict, Verdict::NotRun(_)), "{properties} {rulings:?}");
            assert!(rulings[0].is_omitted(), "a step that must run drops the event");
            assert_eq!(rulings[0].sample, None);
        }
    }

    #[test]
    fn what_was_dropped_comes_to_no_other_step() {
        let mut events = vec![event("drop")];
        drop(run(&Named, PluginConfigId(1), "One", &mut events));
        let rulings = run(&Named, PluginConfigId(2), "Other", &mut events);
        assert_eq!(rulings[0].verdict, Verdict::Absent);
    }
}
