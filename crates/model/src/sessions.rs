//! Sessions: the events of one visit, as the client library grouped them by `$session_id`
//! (ING-54).
//!
//! What belongs here: computing a session from its events, and which sessions count.
//! Nothing is stored for a session: it consists of its events. What does not: finding the
//! events (`weir-store`); the sign-in sessions of the web app.

use std::fmt;

use uuid::Uuid;

use crate::time::Timestamp;

/// Longest time from the creation of a session id to its last event, in microseconds.
const LONGEST: i64 = 24 * 3_600 * 1_000_000;
/// A visit of at least this time is not a bounce, in microseconds.
const STAYED: i64 = 10 * 1_000_000;

/// The fields of an event that a session is computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// Event name.
    pub event: String,
    /// Distinct id of the user.
    pub distinct_id: String,
    /// Event time, corrected for the sender's clock.
    pub timestamp: Timestamp,
    /// Arrival number: the order of events of the same time.
    pub arrival: u64,
    /// `$current_url`, if it is a text.
    pub current_url: Option<String>,
    /// `$screen_name`, if it is a text.
    pub screen_name: Option<String>,
}

/// The first and the last value of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// The value of the first event that has one.
    pub entry: String,
    /// The value of the last event that has one.
    pub exit: String,
}

/// Number of events by the names that describe a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCounts {
    /// `$pageview`
    pub pageviews: u64,
    /// `$screen`
    pub screens: u64,
    /// `$autocapture`
    pub autocaptures: u64,
    /// All events.
    pub all: u64,
}

/// A session that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id: a UUID v7 that the client library created.
    pub id: Uuid,
    /// Distinct ids of its events, in order of appearance: more than one if the user was
    /// identified during the session.
    pub distinct_ids: Vec<String>,
    /// Time of the first event.
    pub start: Timestamp,
    /// Time of the last event.
    pub end: Timestamp,
    /// URLs of pages; `None` if no event has one.
    pub urls: Option<Ends>,
    /// Names of screens; `None` if no event has one.
    pub screens: Option<Ends>,
    /// Number of events by name.
    pub counts: EventCounts,
}

/// Why the events with a session id are not a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotCounted {
    /// There is no event.
    Empty,
    /// The id is not a UUID v7.
    NotUuidV7,
    /// The id was created after the first event: by a wrong clock, or for other events.
    MadeAfterFirstEvent,
    /// The last event is more than 24 hours after the id was created.
    TooLong,
}

impl NotCounted {
    /// Stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NotUuidV7 => "not_uuid_v7",
            Self::MadeAfterFirstEvent => "made_after_first_event",
            Self::TooLong => "too_long",
        }
    }
}

impl fmt::Display for NotCounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Session {
    /// Computes the session `id` from all its events, in any order.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn of(id: &str, mut events: Vec<SessionEvent>) -> Result<Self, NotCounted> {
        let (id, made) = made_at(id).ok_or(NotCounted::NotUuidV7)?;
        events.sort_by_key(|event| (event.timestamp, event.arrival));
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return Err(NotCounted::Empty);
        };
        let (start, end) = (first.timestamp, last.timestamp);
        if made > start.micros() {
            return Err(NotCounted::MadeAfterFirstEvent);
        }
        if end.micros() - made > LONGEST {
            return Err(NotCounted::TooLong);
        }
        let mut session = Self {
            id,
            distinct_ids: Vec::new(),
            start,
            end,
            urls: None,
            screens: None,
            counts: EventCounts::default(),
        };
        for event in events {
            session.counts.add(&event.event);
            extend(&mut session.urls, event.current_url);
            extend(&mut session.screens, event.screen_name);
            if !session.distinct_ids.contains(&event.distinct_id) {
                session.distinct_ids.push(event.distinct_id);
            }
        }
        Ok(session)
    }

    /// Seconds from the first to the last event.
    #[expect(clippy::cast_precision_loss, reason = "at most a day")]
    pub fn seconds(&self) -> f64 {
        self.micros() as f64 / 1e6
    }

    /// Whether the visit is a bounce: one page view (or one screen of an app), no
    /// `$autocapture`, and less than 10 seconds from the first to the last event. A
    /// session without a view is not a bounce.
    pub fn is_bounce(&self) -> bool {
        let EventCounts { pageviews, screens, autocaptures, .. } = self.counts;
        pageviews + screens == 1 && autocaptures == 0 && self.micros() < STAYED
    }

    fn micros(&self) -> i64 {
        self.end.micros() - self.start.micros()
    }
}

impl EventCounts {
    fn add(&mut self, event: &str) {
        self.all += 1;
        match event {
            "$pageview" => self.pageviews += 1,
            "$screen" => self.screens += 1,
            "$autocapture" => self.autocaptures += 1,
            _ => {}
        }
    }
}

/// A session id and its time of creation, to the millisecond; `None` if it is not a UUID
/// v7. A session that counts has no earlier event.
pub fn made(id: &str) -> Option<Timestamp> {
    made_at(id).map(|(_, micros)| Timestamp::from_micros(micros))
}

fn made_at(id: &str) -> Option<(Uuid, i64)> {
    let id = Uuid::parse_str(id).ok()?;
    let is_v7 = id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122;
    // The first 48 bits are milliseconds since 1970: they always fit.
    let millis = i64::try_from(id.as_u128() >> 80).ok()?;
    is_v7.then_some((id, millis * 1_000))
}

fn extend(ends: &mut Option<Ends>, value: Option<String>) {
    let Some(value) = value else { return };
    match ends {
        Some(ends) => ends.exit = value,
        None => *ends = Some(Ends { entry: value.clone(), exit: value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-06-01T10:00:00Z
    const MADE: i64 = 1_780_308_000_000_000;
    const SECOND: i64 = 1_000_000;
    const DAY: i64 = 86_400 * SECOND;

    fn id_of(micros: i64) -> String {
        let millis = u128::try_from(micros / 1_000).unwrap();
        Uuid::from_u128((millis << 80) | (7 << 76) | (2 << 62) | 5).to_string()
    }

    /// An event at this time after the id was created.
    fn event(name: &str, after: i64) -> SessionEvent {
        SessionEvent {
            event: name.to_owned(),
            distinct_id: "ada".to_owned(),
            timestamp: Timestamp::from_micros(MADE + after),
            arrival: 0,
            current_url: None,
            screen_name: None,
        }
    }

    fn at(url: &str, event: SessionEvent) -> SessionEvent {
        SessionEvent { current_url: Some(url.to_owned()), ..event }
    }

    fn session(events: &[SessionEvent]) -> Session {
        Session::of(&id_of(MADE), events.to_vec()).unwrap()
    }

    #[test]
    fn facts_do_not_depend_on_the_order_of_events() {
        let named =
            |event: SessionEvent| SessionEvent { distinct_id: "anonymous-1".to_owned(), ..event };
        let screen = SessionEvent { screen_name: Some("Cart".to_owned()), ..event("$screen", 9) };
        let mut events = vec![
            named(event("opened", 0)),
            named(at("/in", event("$pageview", SECOND))),
            event("$identify", 2 * SECOND),
            at("/middle", event("$autocapture", 3 * SECOND)),
            at("/out", event("$pageview", 62 * SECOND + 500_000)),
            event("paid", 62 * SECOND + 500_000),
            SessionEvent { timestamp: Timestamp::from_micros(MADE + 4 * SECOND), ..screen },
        ];
        let found = session(&events);
        assert_eq!(found.id.to_string(), id_of(MADE));
        assert_eq!(found.distinct_ids, ["anonymous-1", "ada"]);
        assert_eq!((found.start.micros(), found.seconds()), (MADE, 62.5));
        assert_eq!(found.end.micros(), MADE + 62 * SECOND + 500_000);
        let urls = found.urls.clone().unwrap();
        assert_eq!((urls.entry.as_str(), urls.exit.as_str()), ("/in", "/out"));
        let screens = found.screens.clone().unwrap();
        assert_eq!((screens.entry.as_str(), screens.exit.as_str()), ("Cart", "Cart"));
        let counts = EventCounts { pageviews: 2, screens: 1, autocaptures: 1, all: 7 };
        assert_eq!(found.counts, counts);
        events.reverse();
        assert_eq!(session(&events), found);
    }

    #[test]
    fn events_of_one_time_are_in_order_of_arrival() {
        let of = |url: &str, arrival| SessionEvent { arrival, ..at(url, event("$pageview", 0)) };
        let urls = session(&[of("/second", 8), of("/first", 7)]).urls.unwrap();
        assert_eq!((urls.entry.as_str(), urls.exit.as_str()), ("/first", "/second"));
    }

    #[test]
    fn a_bounce_is_one_view_without_a_click_in_less_than_ten_seconds() {
        let view = event("$pageview", 0);
        for (events, expected) in [
            (vec![view.clone()], true),
            (vec![event("$screen", 0)], true),
            (vec![view.clone(), event("$pageleave", 10 * SECOND - 1)], true),
            (vec![view.clone(), event("$pageleave", 10 * SECOND)], false),
            (vec![view.clone(), event("$pageview", SECOND)], false),
            (vec![view.clone(), event("$screen", SECOND)], false),
            (vec![view, event("$autocapture", SECOND)], false),
            (vec![event("paid", 0)], false),
        ] {
            assert_eq!(session(&events).is_bounce(), expected, "{events:?}");
        }
    }

    #[test]
    fn only_a_uuid_v7_is_a_session_id() {
        for id in [
            "",
            "session-1",
            "7",
            // version 4, and a version 7 of another variant
            "0197c2f4-1c10-4d20-8e30-4f5061728394",
            "0197c2f4-1c10-7d20-ce30-4f5061728394",
        ] {
            let found = Session::of(id, vec![event("a", 0)]);
            assert_eq!((found, made(id)), (Err(NotCounted::NotUuidV7), None), "{id}");
        }
        assert_eq!(made(&id_of(MADE)).unwrap().micros(), MADE);
        assert_eq!(Session::of(&id_of(MADE), Vec::new()), Err(NotCounted::Empty));
    }

    #[test]
    fn the_events_lie_within_a_day_from_the_making_of_the_id() {
        for (events, expected) in [
            (vec![event("a", 0), event("b", DAY)], Ok(())),
            (vec![event("a", -1), event("b", 0)], Err(NotCounted::MadeAfterFirstEvent)),
            (vec![event("a", 0), event("b", DAY + 1)], Err(NotCounted::TooLong)),
            (vec![event("a", DAY)], Ok(())),
            (vec![event("a", -2 * DAY), event("b", 2 * DAY)], Err(NotCounted::MadeAfterFirstEvent)),
        ] {
            assert_eq!(Session::of(&id_of(MADE), events).map(drop), expected);
        }
    }
}
