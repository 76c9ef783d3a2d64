//! The sessions of a site and their numbers (QRY-61 to QRY-64).

use std::collections::BTreeMap;
use std::ops::Range;

use super::sessions::{Session, SessionEvent, sessions};
use crate::query::WebView;

/// An event of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebEvent {
    /// Its time.
    pub time: i64,
    /// A number that stands for its `$session_id`.
    pub session: Option<u64>,
    /// Whether it is a view.
    pub is_view: bool,
    /// Whether it is a view that satisfies the filters of views.
    pub is_counted: bool,
    /// Whether the library noticed a click or another action.
    pub is_autocapture: bool,
    /// The filters of sessions that it satisfies, as bits.
    pub filters: u32,
}

/// Which sessions count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebRules {
    /// The range in which they begin.
    pub times: Range<i64>,
    /// The filters that the first view must satisfy.
    pub of_first: u32,
    /// The filters that the last view must satisfy.
    pub of_last: u32,
}

/// A session that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSession {
    /// When it began.
    pub start: i64,
    /// From its first event to its last one, in microseconds.
    pub duration: i64,
    /// Whether the visitor left after the first view.
    pub is_bounce: bool,
    /// The position of its first view.
    pub first: usize,
    /// The position of its last view.
    pub last: usize,
    /// The positions of its views that satisfy the filters of views: at least one.
    pub views: Vec<usize>,
}

/// The sessions of a person with these events, sorted by time and arrival, that count: those
/// that begin in the range, have a view that satisfies the filters of views, and satisfy the
/// filters of sessions. In the order in which they begin.
pub fn web_sessions(events: &[WebEvent], rules: &WebRules) -> Vec<WebSession> {
    /// What is known of a session beside its bounds.
    #[derive(Default)]
    struct Details {
        /// The first view and the last one.
        ends: Option<(usize, usize)>,
        views: usize,
        counted: Vec<usize>,
        has_autocapture: bool,
    }
    let event = |event: &WebEvent| SessionEvent { time: event.time, session: event.session };
    let (found, numbers) = sessions(&events.iter().map(event).collect::<Vec<_>>());
    let mut details: Vec<Details> = found.iter().map(|_| Details::default()).collect();
    for (at, (event, number)) in events.iter().zip(numbers).enumerate() {
        let Some(details) = details.get_mut(number) else { continue };
        details.has_autocapture |= event.is_autocapture;
        if event.is_view {
            details.views += 1;
            details.ends = Some((details.ends.map_or(at, |(first, _)| first), at));
        }
        if event.is_counted {
            details.counted.push(at);
        }
    }
    let satisfies = |at: usize, filters: u32| {
        events.get(at).is_some_and(|event| event.filters & filters == filters)
    };
    let counted = |(session, details): (&Session, Details)| {
        let (first, last) = details.ends?;
        let counts = rules.times.contains(&session.start)
            && !details.counted.is_empty()
            && satisfies(first, rules.of_first)
            && satisfies(last, rules.of_last);
        counts.then(|| WebSession {
            start: session.start,
            duration: session.duration(),
            is_bounce: session.is_bounce(details.views, details.has_autocapture),
            first,
            last,
            views: details.counted,
        })
    };
    found.iter().zip(details).filter_map(counted).collect()
}

/// The numbers of sessions. Those of several persons can be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebTotals {
    /// Different persons.
    pub visitors: u64,
    /// Views that satisfy the filters.
    pub views: u64,
    /// Sessions.
    pub sessions: u64,
    /// Sessions that are bounces.
    pub bounces: u64,
    /// The length of all sessions together, in microseconds.
    pub duration: i128,
}

impl WebTotals {
    /// Those of sessions of one person. There may be none.
    pub fn of_person(sessions: &[WebSession]) -> Self {
        let mut totals = Self { visitors: u64::from(!sessions.is_empty()), ..Self::default() };
        for session in sessions {
            totals.views += session.views.len() as u64;
            totals.add_session(session);
        }
        totals
    }

    fn add_session(&mut self, session: &WebSession) {
        self.sessions += 1;
        self.bounces += u64::from(session.is_bounce);
        self.duration += i128::from(session.duration);
    }

    /// Adds those of other persons.
    pub fn merge(&mut self, other: &Self) {
        self.visitors += other.visitors;
        self.views += other.views;
        self.sessions += other.sessions;
        self.bounces += other.bounces;
        self.duration += other.duration;
    }

    /// The share of bounces, from 0 to 1. `None`: there is no session.
    pub fn bounce_rate(&self) -> Option<f64> {
        (self.sessions > 0).then(|| self.bounces as f64 / self.sessions as f64)
    }

    /// The average length of a session in seconds. `None`: there is no session.
    pub fn average_duration(&self) -> Option<f64> {
        (self.sessions > 0).then(|| self.duration as f64 / 1e6 / self.sessions as f64)
    }
}

/// The numbers of each value, of the sessions of one person. `value` has that of the view at a
/// position. `view` says to which values a session belongs with its visitor and its views,
/// and `of_bounces` to which it belongs as a bounce or none.
pub fn web_values<V: Copy + Ord>(
    sessions: &[WebSession],
    view: WebView,
    of_bounces: WebView,
    value: impl Fn(usize) -> V,
) -> BTreeMap<V, WebTotals> {
    let values = |session: &WebSession, view: WebView| {
        let mut counts: BTreeMap<V, u64> = BTreeMap::new();
        let whole = session.views.len() as u64;
        match view {
            WebView::Each => {
                for at in &session.views {
                    *counts.entry(value(*at)).or_default() += 1;
                }
            }
            WebView::First => _ = counts.insert(value(session.first), whole),
            WebView::Last => _ = counts.insert(value(session.last), whole),
        }
        counts
    };
    let mut totals: BTreeMap<V, WebTotals> = BTreeMap::new();
    for session in sessions {
        let own = values(session, view);
        for (value, views) in &own {
            let totals = totals.entry(*value).or_default();
            totals.visitors = 1;
            totals.views += views;
        }
        let of_bounces = if of_bounces == view { own } else { values(session, of_bounces) };
        for value in of_bounces.into_keys() {
            totals.entry(value).or_default().add_session(session);
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn view(time: i64, session: u64) -> WebEvent {
        WebEvent {
            time: time * SECOND,
            session: Some(session),
            is_view: true,
            is_counted: true,
            ..WebEvent::default()
        }
    }

    fn other(time: i64, session: u64) -> WebEvent {
        WebEvent { is_view: false, is_counted: false, ..view(time, session) }
    }

    fn rules() -> WebRules {
        WebRules { times: 0..1_000 * SECOND, of_first: 0, of_last: 0 }
    }

    fn numbers(events: &[WebEvent], rules: &WebRules) -> WebTotals {
        WebTotals::of_person(&web_sessions(events, rules))
    }

    #[test]
    fn a_session_counts_where_it_begins() {
        // One began before the range, and one lasts longer.
        let events = [view(-5, 1), view(5, 1), view(900, 2), view(1_100, 2), view(1_200, 3)];
        let found = numbers(&events, &rules());
        let duration = i128::from(200 * SECOND);
        assert_eq!(found, WebTotals { visitors: 1, views: 2, sessions: 1, bounces: 0, duration });
        assert_eq!(numbers(&[], &rules()), WebTotals::default());
    }

    #[test]
    fn a_session_has_a_view_that_satisfies_the_filters() {
        let hidden = |time, session| WebEvent { is_counted: false, ..view(time, session) };
        // The other view still ends the bounce.
        let events = [hidden(1, 1), view(2, 1), hidden(3, 2), other(4, 3)];
        let found = web_sessions(&events, &rules());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].first, found[0].last, &found[0].views[..]), (0, 1, &[1][..]));
        assert!(!found[0].is_bounce);
    }

    #[test]
    fn filters_of_sessions_are_about_the_first_or_the_last_view() {
        let with = |event: WebEvent, filters| WebEvent { filters, ..event };
        let events = [
            with(other(0, 1), 0),
            with(view(1, 1), 0b01),
            with(view(2, 1), 0b10),
            with(view(3, 2), 0b11),
        ];
        let sessions = |of_first, of_last| {
            web_sessions(&events, &WebRules { of_first, of_last, ..rules() }).len()
        };
        assert_eq!(sessions(0, 0), 2);
        assert_eq!(sessions(0b01, 0b10), 2);
        assert_eq!(sessions(0b10, 0), 1);
        assert_eq!(sessions(0, 0b01), 1);
        assert_eq!(sessions(0b100, 0), 0);
    }

    #[test]
    fn bounces_have_one_view_and_are_short() {
        let clicked = WebEvent { is_autocapture: true, ..other(2, 2) };
        let events =
            [view(0, 1), other(9, 1), view(1, 2), clicked, view(3, 3), other(13, 3), view(20, 4)];
        let mut sorted = events;
        sorted.sort_by_key(|event| event.time);
        let found = numbers(&sorted, &rules());
        assert_eq!((found.sessions, found.bounces, found.visitors), (4, 2, 1));
        assert_eq!(found.bounce_rate(), Some(0.5));
        assert_eq!(found.average_duration(), Some((9.0 + 1.0 + 10.0) / 4.0));
        assert_eq!(WebTotals::default().bounce_rate(), None);
        assert_eq!(WebTotals::default().average_duration(), None);
    }

    #[test]
    fn a_session_belongs_to_the_values_of_its_views() {
        // From "a" over "b" twice to "c", and then "a" alone.
        let events = [view(0, 1), view(1, 1), view(2, 1), view(3, 1), view(50, 2)];
        let values = ["a", "b", "b", "c", "a"];
        let found = web_sessions(&events, &rules());
        let of = |view, of_bounces| {
            let totals = web_values(&found, view, of_bounces, |at| values[at]);
            let numbers = |(value, of): (&str, WebTotals)| {
                (value.to_owned(), [of.visitors, of.views, of.sessions, of.bounces])
            };
            totals.into_iter().map(numbers).collect::<Vec<_>>()
        };
        let row = |value: &str, numbers: [u64; 4]| (value.to_owned(), numbers);
        let each = [row("a", [1, 2, 2, 1]), row("b", [1, 2, 1, 0]), row("c", [1, 1, 1, 0])];
        assert_eq!(of(WebView::Each, WebView::Each), each);
        let pages = [row("a", [1, 2, 2, 1]), row("b", [1, 2, 0, 0]), row("c", [1, 1, 0, 0])];
        assert_eq!(of(WebView::Each, WebView::First), pages);
        assert_eq!(of(WebView::First, WebView::First), [row("a", [1, 5, 2, 1])]);
        let last = [row("a", [1, 1, 1, 1]), row("c", [1, 4, 1, 0])];
        assert_eq!(of(WebView::Last, WebView::Last), last);
    }
}
