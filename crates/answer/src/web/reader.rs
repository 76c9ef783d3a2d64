//! Reading the sessions of a site: the events that they consist of, person by person.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use weir_questions::evaluate::{
    AUTOCAPTURE, PAGEVIEW, PropertyValue, SESSION_ID, WebEvent, WebRules, WebSession,
    breakdown_text, web_sessions,
};
use weir_questions::query::{
    Breakdown, Filter, FilterGroup, PropertyOwner, Scope, SessionFilter, WebBreakdown, WebScope,
    WebView,
};
use weir_segments::NONE;

use crate::Asked;
use crate::batch::Batch;
use crate::by_person::{ByPerson, Pass, Reading, Record, visit};
use crate::error::Result;
use crate::plan::{Actor, Plan};
use crate::property::PropertyColumn;
use crate::run::Run;
use crate::source::Source;
use crate::span::{Span, with_reach};
use crate::texts::{Texts, name};

/// Bits of an event, by the nodes of the plan.
const IS_VIEW: u32 = 1;
const IS_AUTOCAPTURE: u32 = 1 << 1;
/// A view that satisfies the filters of the question, and those for internal users.
const IS_COUNTED: u32 = 0b11 << 2;
/// The first bit of the filters of sessions.
const FILTERS: u32 = 4;

/// An event. The order is that of persons, times and arrival numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WebRecord {
    person: u32,
    time: i64,
    arrival: u64,
    /// From the text of `$session_id`. 0: it has none.
    session: u64,
    bits: u32,
    /// Of a view: the number of its value in a table.
    pub(super) value: u32,
}

impl Record for WebRecord {
    fn person(&self) -> u32 {
        self.person
    }
}

/// The values of a table.
pub(super) struct Values<'a> {
    breakdown: Breakdown,
    texts: Texts<'a>,
}

impl<'a> Values<'a> {
    pub(super) fn new(run: &Run<'a>, of: WebBreakdown) -> Self {
        let property = of.property().to_owned();
        let texts = Texts::new(run, format!("values of {property}"));
        let owner = PropertyOwner::Event;
        Self { breakdown: Breakdown { owner, property, normalize_url: false, bins: None }, texts }
    }

    /// The text of a number. `None`: it stands for no value.
    pub(super) fn text(&self, number: u32) -> Option<String> {
        self.texts.text(number).map(|text| text.to_string())
    }
}

/// Reads the sessions of a site.
pub(super) struct WebReader<'q, 'a> {
    run: &'q Run<'a>,
    plan: Plan,
    spans: &'q [Span],
    /// The slot of the id of a session.
    session: usize,
    /// The values of a table, with the slot of their property.
    values: Option<(usize, &'q Values<'a>)>,
    /// The filters that the first and the last view of a session must satisfy.
    of_first: u32,
    of_last: u32,
}

impl<'q, 'a> WebReader<'q, 'a> {
    pub(super) fn new(
        run: &'q Run<'a>,
        asked: &Asked<'_>,
        scope: &WebScope,
        spans: &'q [Span],
        values: Option<&'q Values<'a>>,
    ) -> Result<Self> {
        let times = spans.iter().map(|span| with_reach(&span.times)).collect();
        // Also events that no filter is about belong to sessions.
        let mut plan = Plan::new(&Scope::default(), asked, times)?;
        plan.keeps_all = true;
        let all = FilterGroup::default();
        let internal = if scope.views.filter_test_accounts { asked.internal } else { &all };
        plan.add(Some(PAGEVIEW), &all, asked, "properties")?;
        plan.add(Some(AUTOCAPTURE), &all, asked, "properties")?;
        plan.add(Some(PAGEVIEW), &scope.views.properties, asked, "properties")?;
        plan.add(Some(PAGEVIEW), internal, asked, "filterTestAccounts")?;
        let (mut of_first, mut of_last) = (0_u32, 0_u32);
        for (at, SessionFilter { property, of_view }) in (0_u32..).zip(&scope.sessions) {
            let filters = vec![Filter::Property(of_view.clone())];
            let group = FilterGroup { filters, ..FilterGroup::default() };
            plan.add(Some(PAGEVIEW), &group, asked, "properties")?;
            match property.view() {
                WebView::Last => of_last |= 1 << at,
                WebView::First | WebView::Each => of_first |= 1 << at,
            }
        }
        let session = plan.slot(SESSION_ID);
        let values = values.map(|values| (plan.slot(&values.breakdown.property), values));
        Ok(Self { run, plan, spans, session, values, of_first, of_last })
    }

    /// Shows the sessions of each person that count, range by range, with its events, whose
    /// positions they have. Ranges without such a session are not shown.
    pub(super) fn visit<T: Send>(
        &self,
        source: &dyn Source,
        pass: Pass,
        make: impl Fn() -> T + Sync,
        see: impl Fn(&mut T, usize, &[WebSession], &[WebRecord]) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        let mut reading = Reading::new(source, self.run, &self.plan, Actor::Person);
        reading.properties.push(self.session);
        reading.properties.extend(self.values.map(|(slot, _)| slot));
        reading.arrivals = true;
        let kept = reading.read(
            || ByPerson::new(self.run, pass),
            |kept, batch, persons| self.keep(kept, batch, persons),
        )?;
        visit(
            self.run,
            kept,
            |_| {},
            make,
            |state, _, records| {
                for (range, span) in self.spans.iter().enumerate() {
                    let own = within(records, span);
                    let events: Vec<WebEvent> = own.iter().map(event).collect();
                    let (of_first, of_last) = (self.of_first, self.of_last);
                    let rules = WebRules { times: span.times.clone(), of_first, of_last };
                    let sessions = web_sessions(&events, &rules);
                    if !sessions.is_empty() {
                        see(state, range, &sessions, own)?;
                    }
                }
                Ok(())
            },
        )
    }

    /// Keeps the events of a batch.
    fn keep(
        &self,
        kept: &mut ByPerson<'a, WebRecord>,
        batch: &Batch<'_>,
        persons: &[u32],
    ) -> Result<()> {
        let masks = batch.masks();
        let sessions = self.sessions(batch);
        let values = self.values(batch)?;
        batch.kept().ones().try_for_each(|row| {
            kept.push(WebRecord {
                person: persons.get(row).copied().unwrap_or(NONE),
                time: batch.times().get(row).copied().unwrap_or_default(),
                arrival: batch.arrival(row),
                session: sessions.get(row).copied().unwrap_or_default(),
                bits: masks.get(row).map_or(0, |mask| *mask as u32),
                value: values.get(row).copied().unwrap_or(NONE),
            })
        })
    }

    /// The number of the session of each row.
    fn sessions(&self, batch: &Batch<'_>) -> Vec<u64> {
        let mut numbers = vec![0; batch.rows()];
        match batch.property(self.session) {
            Some(PropertyColumn::Codes { codes, values }) => {
                let known: Vec<u64> =
                    values.iter().map(|value| session_number(value.as_property())).collect();
                for (number, code) in numbers.iter_mut().zip(codes) {
                    *number = known.get(*code as usize).copied().unwrap_or_default();
                }
            }
            Some(column) => {
                for row in batch.kept().ones() {
                    numbers[row] = session_number(column.value(row));
                }
            }
            None => {}
        }
        numbers
    }

    /// The number of the value of each row that is a view.
    fn values(&self, batch: &Batch<'_>) -> Result<Vec<u32>> {
        let Some((slot, values)) = self.values else { return Ok(Vec::new()) };
        match (batch.property(slot), batch.nodes().first()) {
            (Some(column), Some(views)) => {
                let text = |value: PropertyValue<'_>| breakdown_text(&values.breakdown, value);
                values.texts.numbers_of(column, views, batch.rows(), text)
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// A number for an id of a session, which a person has with no other id: 64 bits of a hash. A
/// project can have more sessions than texts can be in memory.
fn session_number(id: PropertyValue<'_>) -> u64 {
    let Some(id) = name(id) else { return 0 };
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish().max(1)
}

/// The events that sessions may consist of which begin in a range. They are sorted by time.
fn within<'r>(records: &'r [WebRecord], span: &Span) -> &'r [WebRecord] {
    let times = with_reach(&span.times);
    let first = records.partition_point(|record| record.time < times.start);
    let end = records.partition_point(|record| record.time < times.end);
    records.get(first..end).unwrap_or_default()
}

fn event(record: &WebRecord) -> WebEvent {
    WebEvent {
        time: record.time,
        session: (record.session != 0).then_some(record.session),
        is_view: record.bits & IS_VIEW != 0,
        is_counted: record.bits & IS_COUNTED == IS_COUNTED,
        is_autocapture: record.bits & IS_AUTOCAPTURE != 0,
        filters: record.bits >> FILTERS,
    }
}
