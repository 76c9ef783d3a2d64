//! Answers beside those of another program, which knows the published rules and the events,
//! and has no code of Weir: `answers.py`.
//!
//! A number chooses the events, the merges of persons and most of the questions.
//! `WEIR_TEST_SEED` repeats one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod questions;
#[path = "../answers/random.rs"]
mod random;
#[path = "../answers/source.rs"]
mod source;
mod world;

use std::hash::{BuildHasher as _, RandomState};

use serde::Serialize;
use serde_json::{Value, json};
use weir_answer::{AnswerError, Asked, Cancel, Found, FunnelResults, MemoryPool, Run, Source};
use weir_questions::Query;
use weir_questions::query::FilterGroup;
use weir_testservers::python;

use questions::Question;
use random::Random;
use source::{Layout, TestSource};
use world::World;

/// Memory in which every question fits.
const MEMORY: usize = 256 << 20;
/// The smallest memory that is tried.
const MEMORY_LEAST: usize = 32 << 10;

fn written<T: Serialize>(found: &Found<T>) -> Value {
    json!({ "results": found.results, "hasMore": found.has_more, "range": found.range })
}

/// The answer to a question as JSON.
fn answer(
    source: &dyn Source,
    run: &Run<'_>,
    asked: &Asked<'_>,
    query: &Query,
) -> Result<Value, AnswerError> {
    Ok(match query {
        Query::Trends(query) => written(&weir_answer::trends(source, run, asked, query)?),
        Query::Retention(query) => written(&weir_answer::retention(source, run, asked, query)?),
        Query::Stickiness(query) => written(&weir_answer::stickiness(source, run, asked, query)?),
        Query::Lifecycle(query) => written(&weir_answer::lifecycle(source, run, asked, query)?),
        Query::Paths(query) => written(&weir_answer::paths(source, run, asked, query)?),
        Query::WebOverview(query) => {
            written(&weir_answer::web_overview(source, run, asked, query)?)
        }
        Query::WebTrends(query) => written(&weir_answer::web_trends(source, run, asked, query)?),
        Query::WebTable(query) => {
            let found = weir_answer::web_table(source, run, asked, query)?;
            let Found { results, has_more, range } = found;
            written(&Found { results: results.results, has_more, range })
        }
        Query::Funnels(query) => {
            let found = weir_answer::funnel(source, run, asked, query)?;
            let Found { results, has_more, range } = found;
            let results = match results {
                FunnelResults::Steps(steps) => json!(steps),
                FunnelResults::Values(values) => json!(values),
                FunnelResults::Times(times) => json!(times),
                FunnelResults::Trends(trends) => json!(trends),
            };
            written(&Found { results, has_more, range })
        }
        other => panic!("{other:?}"),
    })
}

/// A question that is asked of events that are stored in some way.
struct Case<'a> {
    world: &'a World,
    question: &'a Question,
    query: Query,
    internal: &'a FilterGroup,
}

impl Case<'_> {
    fn answer(&self, source: &TestSource, threads: usize, memory: usize) -> Option<Value> {
        let calendar = self.question.calendar();
        let asked = Asked {
            calendar: &calendar,
            now: self.world.now(),
            earliest: self.world.earliest(),
            internal: self.internal,
        };
        let (cancel, memory) = (Cancel::default(), MemoryPool::new(memory));
        let run = Run { threads, cancel: &cancel, memory: &memory };
        let found = answer(source, &run, &asked, &self.query);
        assert_eq!(memory.used(), 0);
        match found {
            Ok(found) => Some(found),
            Err(AnswerError::Memory { limit }) if limit < MEMORY => None,
            Err(error) => panic!("{}: {error:?}", self.question.query),
        }
    }

    /// The answer with the least memory that suffices, so that some questions need several
    /// passes.
    fn answer_with_little(&self, source: &TestSource) -> Value {
        let sizes = std::iter::successors(Some(MEMORY_LEAST), |memory| Some(memory * 2));
        let mut found = sizes.filter_map(|memory| self.answer(source, 1, memory));
        found.next().unwrap()
    }
}

/// Where two values differ first.
fn difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        _ if ours == theirs => None,
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut items = a.iter().zip(b).enumerate();
            items.find_map(|(at, (a, b))| difference(&format!("{path}/{at}"), a, b))
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            let mut members = a.iter().zip(b.values());
            members.find_map(|((name, a), b)| difference(&format!("{path}/{name}"), a, b))
        }
        _ => Some(format!("{path}\n  is       {ours}\n  expected {theirs}")),
    }
}

fn seed() -> u64 {
    match std::env::var("WEIR_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => RandomState::new().hash_one(0),
    }
}

#[tokio::test]
async fn two_hundred_answers_are_those_of_another_program() {
    // `make quick` installs no Python.
    if std::env::var_os("WEIR_QUICK").is_some() {
        return;
    }
    let seed = seed();
    let mut random = Random::new(seed);
    let world = World::new(&mut random);
    let questions = questions::all(&mut random);
    assert_eq!(questions.len(), 200);
    let asked: Vec<Value> = questions.iter().map(Question::written).collect();
    let given = json!({
        "now": world.now().micros(),
        "internal": questions::internal(),
        "merges": world.merges,
        "events": world.written(),
        "questions": asked,
    });
    let found = python(include_str!("answers.py"), &given).await;
    let layouts = [Layout::Mixed, Layout::TableColumns, Layout::Blocks, Layout::Segments];
    let sources = layouts.map(|layout| TestSource::new(&world, layout, &mut random));
    let internal = questions::filters(&questions::internal());
    let mut faults = Vec::new();
    for (at, (question, theirs)) in questions.iter().zip(found.as_array().unwrap()).enumerate() {
        let query = Query::read(&question.query).unwrap();
        let case = Case { world: &world, question, query, internal: &internal };
        let first = case.answer(&sources[0], 2, MEMORY).unwrap();
        let source = &sources[1 + at % 3];
        let second = match at % 4 {
            0 => case.answer_with_little(source),
            _ => case.answer(source, 1 + at % 3, MEMORY).unwrap(),
        };
        for (ours, layout) in [(first, Layout::Mixed), (second, source.layout())] {
            if let Some(difference) = difference("", &ours, theirs) {
                let asked = question.written();
                faults.push(format!("question {at} of {layout:?}: {asked}\n  {difference}"));
                break;
            }
        }
    }
    let count = faults.len();
    assert_eq!(count, 0, "WEIR_TEST_SEED={seed}\n{}", faults.join("\n"));
}
