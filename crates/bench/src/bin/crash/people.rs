//! Comparing persons, groups and group types with the sent events.
//!
//! Acknowledged events must have their full effect. Unacknowledged events may have any
//! part of their effect, but nothing may exist twice.

use std::collections::{HashMap, HashSet};
use std::fmt;

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;
use weir_bench::api::Api;

use crate::Check;
use crate::ledger::{Kind, PEOPLE, distinct_id};
use crate::sending::{Shared, lock};
use crate::stories::{COUNTER, Properties, Story};

/// One story in this many is also read by all its distinct ids.
const SPOT_CHECK: u64 = 40;

/// The checks of persons and groups.
#[derive(Debug)]
pub(crate) struct Beings {
    persons: Check,
    groups: Check,
    once: Check,
    counts: Check,
    events: Check,
    /// The counts of the last comparison.
    tally: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    stories: usize,
    whole: usize,
    persons: usize,
    groups: usize,
}

#[derive(Debug, Deserialize)]
struct PersonRow {
    id: String,
    distinct_ids: Vec<String>,
    is_identified: bool,
    properties: Properties,
    event_count: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct GroupRow {
    group_type: String,
    group_key: String,
    group_properties: Properties,
}

#[derive(Debug, Deserialize)]
struct TypeRow {
    group_type: String,
}

/// The names of the group types by index.
pub(crate) async fn group_types(api: &mut Api) -> Result<Vec<String>> {
    let types: Vec<TypeRow> = api.of_project("groups_types/", "").await?;
    Ok(types.into_iter().map(|row| row.group_type).collect())
}

/// All persons, by their distinct ids.
type Persons<'a> = HashMap<&'a str, &'a PersonRow>;
/// All groups, by type and key.
type Groups<'a> = HashMap<(&'a str, &'a str), &'a GroupRow>;

impl Beings {
    pub(crate) fn new() -> Self {
        Self {
            persons: Check::new("every acknowledged story ends in one person, as it was sent"),
            groups: Check::new("every acknowledged group is there, as it was sent"),
            once: Check::new("no distinct id and no group is there twice or out of nothing"),
            counts: Check::new("of person and group the last acknowledged change is there"),
            events: Check::new("the persons have the numbers of their stored events"),
            tally: Tally::default(),
        }
    }

    pub(crate) fn into_checks(self) -> [Check; 5] {
        [self.persons, self.groups, self.once, self.counts, self.events]
    }

    /// Compares the event counts of all persons. `stored` has the number of stored events of
    /// each distinct id. No event may be sent meanwhile.
    pub(crate) async fn event_counts(
        &mut self,
        api: &mut Api,
        stored: &HashMap<String, u64>,
    ) -> Result<()> {
        let rows: Vec<PersonRow> = api.all("persons/").await?;
        let mut counted = 0;
        for row in &rows {
            let of_id = |id: &String| stored.get(id).copied().unwrap_or(0);
            let expected: u64 = row.distinct_ids.iter().map(of_id).sum();
            counted += expected;
            if row.event_count != Some(expected) {
                let (id, found) = (&row.id, row.event_count);
                self.events.fail(format!("person {id} has {found:?} of {expected} events"));
            }
        }
        let all: u64 = stored.values().sum();
        // Events that say so have no person.
        if counted > all || counted == 0 && all > 0 {
            self.events.fail(format!("the persons have {counted} of {all} events"));
        }
        Ok(())
    }

    /// Compares all persons and groups; returns the names of the group types by index.
    /// Everything acknowledged must be applied.
    pub(crate) async fn compare(&mut self, api: &mut Api, ledger: &Shared) -> Result<Vec<String>> {
        let rows: Vec<PersonRow> = api.all("persons/").await?;
        let groups: Vec<GroupRow> = api.all("groups/").await?;
        let types = group_types(api).await?;
        let stories: Vec<(Story, bool)> = lock(ledger).stories().collect();

        let persons = self.persons_once(&rows, stories.len());
        self.plain_persons(&persons, ledger);
        let groups = self.groups_once(&groups, &types, &stories);
        for (story, is_whole) in &stories {
            if *is_whole {
                self.person_of(*story, &persons);
                self.group_of(*story, &groups);
            }
        }
        self.counted(&persons, &groups, ledger);
        for (story, _) in stories.iter().filter(|(story, whole)| *whole && spot_checked(*story)) {
            self.by_distinct_id(*story, &persons, api).await?;
        }
        self.tally = Tally {
            stories: stories.len(),
            whole: stories.iter().filter(|(_, is_whole)| *is_whole).count(),
            persons: rows.len(),
            groups: groups.len(),
        };
        Ok(types)
    }

    /// Every distinct id has one person, and no person has distinct ids of another one.
    /// `sent`: number of stories.
    fn persons_once<'a>(&mut self, rows: &'a [PersonRow], sent: usize) -> Persons<'a> {
        let mut persons = Persons::new();
        for row in rows {
            let stories: HashSet<Option<u64>> = row
                .distinct_ids
                .iter()
                .map(|id| Story::of_id(id).map(|Story(number)| number))
                .collect();
            let is_mixed = stories.len() > 1;
            let is_plain_pair = stories.contains(&None) && row.distinct_ids.len() > 1;
            let was_sent = row.distinct_ids.iter().all(|id| was_sent(id, sent));
            if row.distinct_ids.is_empty() || is_mixed || is_plain_pair || !was_sent {
                self.once.fail(format!("person {} has {:?}", row.id, row.distinct_ids));
            }
            for id in &row.distinct_ids {
                if let Some(other) = persons.insert(id, row) {
                    self.once.fail(format!("{id} is of the persons {} and {}", other.id, row.id));
                }
            }
        }
        persons
    }

    /// The persons of independent events: they exist if one of their events was
    /// acknowledged.
    fn plain_persons(&mut self, persons: &Persons<'_>, ledger: &Shared) {
        let ledger = lock(ledger);
        let plain = ledger.acknowledged().filter(|number| ledger.kind(*number) == Kind::Plain);
        let ids: HashSet<String> = plain.map(distinct_id).collect();
        for id in ids.iter().filter(|id| !persons.contains_key(id.as_str())) {
            self.persons.fail(format!("{id} has no person"));
        }
        for (id, person) in persons {
            let last = person.properties.get("last").and_then(Value::as_u64);
            // The latest event is unknown: there are several senders, and they send
            // events again.
            let was_sent = last.is_none_or(|number| {
                number < ledger.len()
                    && ledger.kind(number) == Kind::Plain
                    && distinct_id(number) == **id
            });
            if !was_sent {
                self.persons.fail(format!("{id} has taken over {last:?}, which it never said"));
            }
        }
    }

    fn groups_once<'a>(
        &mut self,
        rows: &'a [GroupRow],
        types: &[String],
        stories: &[(Story, bool)],
    ) -> Groups<'a> {
        if types.iter().collect::<HashSet<_>>().len() < types.len() {
            self.once.fail(format!("group types {types:?}"));
        }
        let mut groups = HashMap::new();
        for row in rows {
            let key = (row.group_type.as_str(), row.group_key.as_str());
            if groups.insert(key, row).is_some() {
                self.once.fail(format!("group {key:?} is there twice"));
            }
        }
        let sent: Vec<_> = stories.iter().filter_map(|(story, _)| story.group()).collect();
        let (_, kind, key) = COUNTER;
        let sent: HashSet<(&str, &str)> = sent
            .iter()
            .map(|group| (group.kind, group.key.as_str()))
            .chain([(kind, key)])
            .collect();
        for key in groups.keys().filter(|key| !sent.contains(*key)) {
            self.once.fail(format!("no event names the group {key:?}"));
        }
        groups
    }

    fn person_of(&mut self, story: Story, persons: &Persons<'_>) {
        let expected = story.person();
        let first = expected.distinct_ids.first().map(String::as_str).unwrap_or_default();
        let Some(person) = persons.get(first) else {
            return self.persons.fail(format!("{story:?}: {first} has no person"));
        };
        let mut ids = person.distinct_ids.clone();
        ids.sort();
        let mut properties = person.properties.clone();
        properties.remove("$creator_event_uuid");
        let same = ids == expected.distinct_ids
            && person.is_identified == expected.is_identified
            && properties == expected.properties;
        if !same {
            self.persons.fail(format!("{story:?}: {person:?}; expected {expected:?}"));
        }
    }

    fn group_of(&mut self, story: Story, groups: &Groups<'_>) {
        let Some(expected) = story.group() else { return };
        match groups.get(&(expected.kind, expected.key.as_str())) {
            Some(found) if found.group_properties == expected.properties => {}
            found => self.groups.fail(format!("{story:?}: {found:?}; expected {expected:?}")),
        }
    }

    /// Changes of one person and of one group that were sent in order end with the last
    /// one.
    fn counted(&mut self, persons: &Persons<'_>, groups: &Groups<'_>, ledger: &Shared) {
        let (tried, kept) = {
            let ledger = lock(ledger);
            (ledger.count_tried, ledger.count_kept)
        };
        if kept == 0 {
            return;
        }
        let (distinct_id, kind, key) = COUNTER;
        let count = |properties: &Properties| properties.get("count").and_then(Value::as_u64);
        let person = persons.get(distinct_id).and_then(|person| count(&person.properties));
        let group = groups.get(&(kind, key)).and_then(|group| count(&group.group_properties));
        for (what, found) in [("person", person), ("group", group)] {
            if !found.is_some_and(|found| (kept..=tried).contains(&found)) {
                self.counts.fail(format!(
                    "the {what} is at {found:?}; acknowledged: {kept}, tried: {tried}"
                ));
            }
        }
    }

    /// Every distinct id of a story leads to the same person.
    async fn by_distinct_id(
        &mut self,
        story: Story,
        persons: &Persons<'_>,
        api: &mut Api,
    ) -> Result<()> {
        #[derive(Deserialize)]
        struct Page {
            results: Vec<PersonRow>,
        }
        for id in story.person().distinct_ids {
            let page: Page = api.of_project("persons/", &format!("?distinct_id={id}")).await?;
            let found: Vec<&str> = page.results.iter().map(|person| person.id.as_str()).collect();
            let listed: Vec<&str> =
                persons.get(id.as_str()).iter().map(|person| person.id.as_str()).collect();
            if found != listed {
                self.persons.fail(format!("{id} leads to {found:?}, in the list to {listed:?}"));
            }
        }
        Ok(())
    }
}

/// Whether events may have contained a distinct id.
fn was_sent(id: &str, stories: usize) -> bool {
    match Story::of_id(id) {
        Some(Story(number)) => usize::try_from(number).is_ok_and(|number| number < stories),
        None => id == COUNTER.0 || id.starts_with(PEOPLE),
    }
}

fn spot_checked(Story(number): Story) -> bool {
    // Some of every kind of story.
    number / 4 % SPOT_CHECK == 0
}

impl fmt::Display for Beings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { stories, whole, persons, groups } = &self.tally;
        write!(
            f,
            "{stories} stories, {whole} of them acknowledged, {persons} persons, {groups} groups"
        )
    }
}
