//! Sessions, which are derived from the events of each person (QRY-20, QRY-57).

use weir_query::{Select, Value};
use weir_questions::evaluate::{AUTOCAPTURE, PAGEVIEW, SESSION_ID, SessionEvent, sessions};
use weir_questions::query::{FilterGroup, Scope};
use weir_segments::NONE;

use super::Context;
use super::plan::session_times;
use super::sort::Tie;
use super::stage::{Sink, Stage};
use super::tables::Feeder;
use crate::by_person::{ByPerson, Reading, Record, in_passes, visit};
use crate::error::Result;
use crate::plan::{Actor, Plan};
use crate::texts::{Texts, name};

/// The property with the address of a page.
const URL: &str = "$current_url";
/// What is shown of the first event of a session with an address, in the order of the columns.
const ENTRY: [&str; 7] =
    [URL, "$referrer", "utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"];
/// Bits of an event, by the nodes of the plan.
const IS_VIEW: u8 = 1;
const IS_AUTOCAPTURE: u8 = 2;

/// An event of a session. The order is that of persons, times and arrival numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SessionRecord {
    person: u32,
    time: i64,
    arrival: u64,
    session: u32,
    bits: u8,
    entry: [u32; ENTRY.len()],
}

impl Record for SessionRecord {
    fn person(&self) -> u32 {
        self.person
    }
}

/// Reads the sessions of a SELECT.
pub(super) fn feed<'a>(
    context: Context<'_, 'a>,
    select: &Select,
    stage: &Stage<'_, 'a>,
) -> Result<Sink<'a>> {
    let (_, times) = session_times(select, &context.clock());
    if times.is_empty() {
        return Ok(stage.sink());
    }
    let mut plan = Plan::new(&Scope::default(), context.asked, vec![times])?;
    plan.keeps_all = true;
    for name in [PAGEVIEW, AUTOCAPTURE] {
        plan.add(Some(name), &FilterGroup::default(), context.asked, "query")?;
    }
    let session = plan.slot(SESSION_ID);
    let entry = ENTRY.map(|property| plan.slot(property));
    let session_ids = Texts::new(context.run, "sessions");
    let texts = ENTRY.map(|property| Texts::new(context.run, format!("values of {property}")));
    let mut reading = Reading::new(context.source, context.run, &plan, Actor::Person);
    reading.properties = entry.into_iter().chain([session]).collect();
    reading.arrivals = true;
    in_passes(
        |pass| {
            let kept = reading.read(
                || ByPerson::new(context.run, pass),
                |kept, batch, persons| {
                    let masks = batch.masks();
                    let sessions = batch.numbers(session, &session_ids, name)?;
                    let mut columns = Vec::with_capacity(ENTRY.len());
                    for (slot, texts) in entry.iter().zip(&texts) {
                        columns.push(batch.numbers(*slot, texts, name)?);
                    }
                    batch.kept().ones().try_for_each(|row| {
                        let value = |column: &Vec<u32>| column.get(row).copied().unwrap_or(NONE);
                        kept.push(SessionRecord {
                            person: persons.get(row).copied().unwrap_or(NONE),
                            time: batch.times().get(row).copied().unwrap_or_default(),
                            arrival: batch.arrival(row),
                            session: value(&sessions),
                            bits: masks.get(row).map_or(0, |mask| *mask as u8),
                            entry: std::array::from_fn(|at| columns.get(at).map_or(NONE, value)),
                        })
                    })
                },
            )?;
            let feeders = visit(
                context.run,
                kept,
                |_| {},
                || Feeder::new(stage),
                |feeder, person, events| add(feeder, context, person, events, &session_ids, &texts),
            )?;
            Sink::merged(stage, feeders.into_iter().map(|feeder| feeder.sink).collect())
        },
        Sink::merge,
    )
}

/// What is known of a session beside its bounds.
#[derive(Debug, Clone, Default)]
struct Details {
    views: usize,
    has_autocapture: bool,
    /// The first and the last event with an address.
    entry: Option<usize>,
    exit: Option<usize>,
}

/// Adds the sessions of a person.
fn add(
    feeder: &mut Feeder<'_, '_, '_>,
    context: Context<'_, '_>,
    person: u32,
    events: &[SessionRecord],
    session_ids: &Texts<'_>,
    texts: &[Texts<'_>; ENTRY.len()],
) -> Result<()> {
    let event = |event: &SessionRecord| SessionEvent {
        time: event.time,
        session: (event.session != NONE).then_some(event.session.into()),
    };
    let (found, numbers) = sessions(&events.iter().map(event).collect::<Vec<_>>());
    let mut details = vec![Details::default(); found.len()];
    for (at, (event, number)) in events.iter().zip(numbers).enumerate() {
        let Some(details) = details.get_mut(number) else { continue };
        details.views += usize::from(event.bits & IS_VIEW != 0);
        details.has_autocapture |= event.bits & IS_AUTOCAPTURE != 0;
        if event.entry[0] != NONE {
            details.entry.get_or_insert(at);
            details.exit = Some(at);
        }
    }
    let mut ids = Vec::new();
    context.source.person_ids(&[person], &mut ids);
    let person_id = ids.first().map_or(Value::Null, |id| Value::Uuid(*id));
    for (session, details) in found.iter().zip(details) {
        let Some(first) = events.get(session.first) else { continue };
        let text = |texts: &Texts<'_>, code: u32| match texts.text(code) {
            Some(text) => Value::Text(text.to_string().into()),
            None => Value::Null,
        };
        let value = |event: Option<usize>, at: usize| match (event, texts.get(at)) {
            (Some(event), Some(texts)) => {
                let code = events.get(event).and_then(|event| event.entry.get(at));
                text(texts, code.copied().unwrap_or(NONE))
            }
            _ => Value::Null,
        };
        let is_bounce = session.is_bounce(details.views, details.has_autocapture);
        let columns = [
            text(session_ids, first.session),
            person_id.clone(),
            Value::Timestamp(session.start),
            Value::Timestamp(session.end),
            Value::Float(session.duration() as f64 / 1e6),
            Value::Integer(i64::try_from(session.events).unwrap_or(i64::MAX)),
            Value::Integer(i64::try_from(details.views).unwrap_or(i64::MAX)),
            value(details.entry, 0),
            value(details.exit, 0),
            value(details.entry, 1),
            value(details.entry, 2),
            value(details.entry, 3),
            value(details.entry, 4),
            value(details.entry, 5),
            value(details.entry, 6),
            Value::Boolean(is_bounce),
        ];
        let arrival = i64::try_from(first.arrival).unwrap_or(i64::MAX);
        feeder.add(&columns, || Tie::Event(-session.start, -arrival, 0))?;
    }
    Ok(())
}
