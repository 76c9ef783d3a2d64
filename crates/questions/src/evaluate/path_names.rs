//! The names of the steps of paths (QRY-19).

use crate::query::{PathEvents, PathsFilter};

/// Gives events their names as steps of paths.
#[derive(Debug, Clone)]
pub struct PathNames<'a> {
    filter: &'a PathsFilter,
    /// The parts between the `*` of each grouping.
    groupings: Vec<Vec<&'a str>>,
}

impl<'a> PathNames<'a> {
    /// For the filter of a question.
    pub fn new(filter: &'a PathsFilter) -> Self {
        let parts = |grouping: &'a String| {
            grouping.split('*').filter(|part| !part.is_empty()).collect::<Vec<_>>()
        };
        Self { filter, groupings: filter.groupings.iter().map(parts).collect() }
    }

    /// The name of an event: the address of a page without the slash at its end, the name of
    /// a screen, or that of the event; or the grouping that has its parts in their order,
    /// wherever they are in the name. `None`: the event is no step.
    pub fn name<'e>(
        &self,
        event: &'e str,
        address: Option<&'e str>,
        screen: Option<&'e str>,
    ) -> Option<&'e str>
    where
        'a: 'e,
    {
        let is_kind = |kind: &PathEvents| match kind {
            PathEvents::Pageviews => event == PathEvents::Pageviews.word(),
            PathEvents::Screens => event == PathEvents::Screens.word(),
            PathEvents::Custom => !event.starts_with('$'),
        };
        if !self.filter.events.is_empty() && !self.filter.events.iter().any(is_kind) {
            return None;
        }
        let name = match event {
            "$pageview" => without_slash(address?),
            "$screen" => screen?,
            event => event,
        };
        let grouping = self.groupings.iter().position(|parts| has_parts(name, parts));
        let name = grouping.and_then(|at| self.filter.groupings.get(at)).map_or(name, |g| g);
        let is_step = !name.is_empty() && !self.filter.excluded.iter().any(|other| other == name);
        is_step.then_some(name)
    }
}

/// An address without the slash at its end, unless that is all of it.
fn without_slash(address: &str) -> &str {
    match address.strip_suffix('/') {
        Some(rest) if !rest.is_empty() => rest,
        _ => address,
    }
}

fn has_parts(name: &str, parts: &[&str]) -> bool {
    let mut rest = Some(name);
    for part in parts {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, after)| after);
    }
    rest.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::query::Query;

    fn names(filter: &serde_json::Value, events: &[(&str, Option<&str>)]) -> Vec<String> {
        let query = json!({ "kind": "PathsQuery", "pathsFilter": filter });
        let Query::Paths(paths) = Query::read(&query).unwrap() else { panic!() };
        let names = PathNames::new(&paths.filter);
        let name = |(event, text): &(&str, Option<&str>)| {
            names.name(event, *text, *text).map_or("-", |name| name).to_owned()
        };
        events.iter().map(name).collect()
    }

    #[test]
    fn events_have_names_as_steps() {
        let events = [
            ("$pageview", Some("https://a.example/b/")),
            ("$pageview", Some("/")),
            ("$pageview", None),
            ("$screen", Some("Home")),
            ("$autocapture", None),
            ("sign up", None),
        ];
        for (filter, expected) in [
            (json!({}), ["https://a.example/b", "/", "-", "Home", "$autocapture", "sign up"]),
            (
                json!({ "includeEventTypes": ["$pageview", "custom_event"] }),
                ["https://a.example/b", "/", "-", "-", "-", "sign up"],
            ),
            (
                json!({ "includeEventTypes": ["$screen"], "excludeEvents": ["Home"] }),
                ["-", "-", "-", "-", "-", "-"],
            ),
            (
                json!({ "excludeEvents": ["sign up", "/"] }),
                ["https://a.example/b", "-", "-", "Home", "$autocapture", "-"],
            ),
        ] {
            assert_eq!(names(&filter, &events), expected, "{filter}");
        }
    }

    #[test]
    fn steps_have_the_name_of_their_grouping() {
        let filter = json!({ "pathGroupings": ["/product/*/buy", "/product/*", "x**z"],
            "excludeEvents": ["x**z"] });
        for (address, expected) in [
            ("https://a.example/product/7", "/product/*"),
            ("https://a.example/product/7/buy?y=1", "/product/*/buy"),
            ("https://a.example/buy/product/", "https://a.example/buy/product"),
            ("https://a.example/", "https://a.example"),
            ("/x/z", "-"),
            ("/z/x", "/z/x"),
        ] {
            assert_eq!(names(&filter, &[("$pageview", Some(address))]), [expected], "{address}");
        }
    }
}
