//! What a question reads: times, names of events, and properties.

use std::ops::Range;

use weir_questions::query::{EventsNode, FilterGroup, Scope};

use crate::Asked;
use crate::error::Result;
use crate::filter::Test;

/// Most nodes of a plan: bits of a mask.
pub(crate) const NODES_MAX: usize = 64;

/// Who is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    /// Persons.
    Person,
    /// Groups, by the property with their key.
    Group { slot: usize },
}

/// Events of a name that pass a test.
#[derive(Debug)]
pub(crate) struct Node {
    /// `None`: all events.
    pub(crate) event: Option<String>,
    pub(crate) test: Test,
}

/// What a question reads.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Events count in these ranges of time.
    pub(crate) spans: Vec<Range<i64>>,
    /// What all events must pass.
    pub(crate) scope: Test,
    /// Series, steps, exclusions, and the like.
    pub(crate) nodes: Vec<Node>,
    /// The names of the properties, by their slots.
    pub(crate) properties: Vec<String>,
    /// The slots that tests need.
    pub(crate) tested: Vec<usize>,
    /// Whether events of no node are kept too.
    pub(crate) keeps_all: bool,
}

impl Plan {
    pub(crate) fn new(scope: &Scope, asked: &Asked<'_>, spans: Vec<Range<i64>>) -> Result<Self> {
        let mut plan = Self {
            spans,
            scope: Test::All(Vec::new()),
            nodes: Vec::new(),
            properties: Vec::new(),
            tested: Vec::new(),
            keeps_all: false,
        };
        let mut tests = vec![plan.test(&scope.properties, asked, "properties")?];
        if scope.filter_test_accounts {
            tests.push(plan.test(asked.internal, asked, "filterTestAccounts")?);
        }
        plan.scope = Test::All(tests);
        Ok(plan)
    }

    /// The slot of a property.
    pub(crate) fn slot(&mut self, property: &str) -> usize {
        slot(&mut self.properties, property)
    }

    fn test(&mut self, group: &FilterGroup, asked: &Asked<'_>, path: &str) -> Result<Test> {
        let (properties, tested) = (&mut self.properties, &mut self.tested);
        Test::new(group, asked, path, &mut |property| {
            let at = slot(properties, property);
            if !tested.contains(&at) {
                tested.push(at);
            }
            at
        })
    }

    /// Adds a node. Faults name its `path`.
    pub(crate) fn add(
        &mut self,
        event: Option<&str>,
        filters: &FilterGroup,
        asked: &Asked<'_>,
        path: &str,
    ) -> Result<()> {
        let test = self.test(filters, asked, path)?;
        self.nodes.push(Node { event: event.map(str::to_owned), test });
        Ok(())
    }

    /// Adds a node for each series.
    pub(crate) fn add_series(&mut self, series: &[EventsNode], asked: &Asked<'_>) -> Result<()> {
        for (at, node) in series.iter().enumerate() {
            let path = format!("series__{at}__properties");
            self.add(node.event.as_deref(), &node.properties, asked, &path)?;
        }
        Ok(())
    }

    /// Who is counted, by the number of a group type.
    pub(crate) fn actor(&mut self, group_type: Option<u8>) -> Actor {
        match group_type {
            None => Actor::Person,
            Some(at) => Actor::Group { slot: self.slot(&group_property(at)) },
        }
    }

    /// Whether events with times between these, both included, may count.
    pub(crate) fn may_see(&self, times: (i64, i64)) -> bool {
        self.spans.iter().any(|span| times.0 < span.end && span.start <= times.1)
    }

    /// Whether all events with times between these count.
    pub(crate) fn sees_all(&self, times: (i64, i64)) -> bool {
        self.spans.iter().any(|span| span.start <= times.0 && times.1 < span.end)
    }

    pub(crate) fn sees(&self, time: i64) -> bool {
        self.spans.iter().any(|span| span.contains(&time))
    }

    /// Whether the names of events matter.
    pub(crate) fn has_names(&self) -> bool {
        self.nodes.iter().any(|node| node.event.is_some())
    }

    /// The nodes of an event with this name.
    pub(crate) fn mask(&self, name: &[u8]) -> u64 {
        let is_of = |node: &Node| node.event.as_ref().is_none_or(|event| event.as_bytes() == name);
        let nodes = self.nodes.iter().enumerate().take(NODES_MAX);
        nodes.filter(|(_, node)| is_of(node)).fold(0, |mask, (at, _)| mask | 1 << at)
    }
}

fn slot(properties: &mut Vec<String>, property: &str) -> usize {
    match properties.iter().position(|known| known == property) {
        Some(at) => at,
        None => {
            properties.push(property.to_owned());
            properties.len() - 1
        }
    }
}

/// The property of an event with the key of its group of a type.
pub(crate) fn group_property(group_type: u8) -> String {
    format!("$group_{group_type}")
}
