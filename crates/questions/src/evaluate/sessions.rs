//! The sessions of a person (QRY-20, QRY-62).

use std::collections::HashMap;

/// Events without `$session_id` that are this far apart are in different sessions: 30 minutes.
pub const SESSION_GAP: i64 = 30 * 60 * 1_000_000;
/// Events that are farther from a range than this are not part of the sessions that begin in
/// it: a day.
pub const SESSION_REACH: i64 = 24 * 3_600_000_000;
/// The property with the id of a session.
pub const SESSION_ID: &str = "$session_id";
/// The event of a view.
pub const PAGEVIEW: &str = "$pageview";
/// The event of a click or another action that the library noticed.
pub const AUTOCAPTURE: &str = "$autocapture";
/// A bounce is shorter than this: ten seconds.
const BOUNCE_MAX: i64 = 10 * 1_000_000;

/// An event of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEvent {
    /// Its time.
    pub time: i64,
    /// A number that stands for its `$session_id`.
    pub session: Option<u64>,
}

/// A session of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// The time of its first event.
    pub start: i64,
    /// The time of its last event.
    pub end: i64,
    /// The position of its first event.
    pub first: usize,
    /// The position of its last event.
    pub last: usize,
    /// How many events it has.
    pub events: usize,
}

impl Session {
    /// From its first event to its last one, in microseconds.
    pub fn duration(&self) -> i64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the visitor left after the first view, by how many views the session has.
    pub fn is_bounce(&self, views: usize, has_autocapture: bool) -> bool {
        views == 1 && !has_autocapture && self.duration() < BOUNCE_MAX
    }
}

/// The sessions of a person with these events, sorted by time and arrival, in the order of
/// their first events, and for each event the number of its session.
///
/// Events with the same `$session_id` are one session, also if those of another one are in
/// between. An event without it belongs to the session of the event without it before, unless
/// 30 minutes or more have passed.
pub fn sessions(events: &[SessionEvent]) -> (Vec<Session>, Vec<usize>) {
    let mut sessions: Vec<Session> = Vec::new();
    let mut numbers = Vec::with_capacity(events.len());
    let mut by_id: HashMap<u64, usize> = HashMap::new();
    let mut without_id: Option<usize> = None;
    for (at, event) in events.iter().enumerate() {
        let known = match event.session {
            Some(id) => by_id.get(&id).copied(),
            None => without_id.filter(|number| {
                let end = sessions.get(*number).map_or(i64::MIN, |session| session.end);
                event.time.saturating_sub(end) < SESSION_GAP
            }),
        };
        let number = known.unwrap_or(sessions.len());
        match event.session {
            Some(id) => _ = by_id.insert(id, number),
            None => without_id = Some(number),
        }
        match sessions.get_mut(number) {
            Some(session) => {
                session.end = event.time;
                session.last = at;
                session.events += 1;
            }
            None => {
                let (start, end) = (event.time, event.time);
                sessions.push(Session { start, end, first: at, last: at, events: 1 });
            }
        }
        numbers.push(number);
    }
    (sessions, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60 * 1_000_000;

    fn found(events: &[(i64, Option<u64>)]) -> (Vec<Session>, Vec<usize>) {
        let event = |(minute, session): &(i64, Option<u64>)| SessionEvent {
            time: minute * MINUTE,
            session: *session,
        };
        sessions(&events.iter().map(event).collect::<Vec<_>>())
    }

    #[test]
    fn a_pause_of_half_an_hour_ends_a_session() {
        let (sessions, numbers) = found(&[(0, None), (29, None), (58, None), (88, None)]);
        assert_eq!(numbers, [0, 0, 0, 1]);
        let first = Session { start: 0, end: 58 * MINUTE, first: 0, last: 2, events: 3 };
        assert_eq!(sessions[0], first);
        assert_eq!((sessions[1].start, sessions[1].events), (88 * MINUTE, 1));
    }

    #[test]
    fn events_with_the_same_id_are_one_session() {
        let events =
            [(0, Some(7)), (1, Some(8)), (2, None), (90, Some(7)), (91, None), (92, Some(8))];
        let (sessions, numbers) = found(&events);
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1]);
        assert_eq!((sessions[0].first, sessions[0].last, sessions[0].events), (0, 3, 2));
    }

    #[test]
    fn a_short_session_with_one_view_is_a_bounce() {
        let session = |end: i64| Session { start: 5, end, first: 0, last: 1, events: 2 };
        let short = session(5 + BOUNCE_MAX - 1);
        assert!(short.is_bounce(1, false));
        assert!(!short.is_bounce(0, false));
        assert!(!short.is_bounce(2, false));
        assert!(!short.is_bounce(1, true));
        assert!(!session(5 + BOUNCE_MAX).is_bounce(1, false));
    }

    #[test]
    fn no_events_have_no_session() {
        assert_eq!(found(&[]), (Vec::new(), Vec::new()));
        let far = [
            SessionEvent { time: i64::MIN, session: None },
            SessionEvent { time: i64::MAX, session: None },
        ];
        assert_eq!(sessions(&far).0.len(), 2);
    }
}
