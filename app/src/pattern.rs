//! The pattern of a route.
//!
//! The router has code for each type of pattern, and with the segments that it offers each
//! shape of a path is a type of its own. Here all patterns are of one type.

use leptos_router::{
    ParamSegment, PartialPathMatch, PathSegment, PossibleRouteMatch, StaticSegment,
};

/// The pattern of a path: fixed segments, and parameters such as `:id`.
#[derive(Clone, Copy)]
pub(crate) struct Pattern(pub(crate) &'static str);

impl Pattern {
    fn segments(self) -> impl Iterator<Item = &'static str> {
        self.0.split('/').filter(|segment| !segment.is_empty())
    }
}

impl PossibleRouteMatch for Pattern {
    fn optional(&self) -> bool {
        false
    }

    fn test<'a>(&self, path: &'a str) -> Option<PartialPathMatch<'a>> {
        let mut rest = path;
        let mut parameters = Vec::new();
        for segment in self.segments() {
            let found = match segment.strip_prefix(':') {
                Some(name) => ParamSegment(name).test(rest)?,
                None => StaticSegment(segment).test(rest)?,
            };
            rest = found.remaining();
            parameters.extend(found.params());
        }
        let (matched, rest) = path.split_at(path.len() - rest.len());
        Some(PartialPathMatch::new(rest, parameters, matched))
    }

    fn generate_path(&self, path: &mut Vec<PathSegment>) {
        for segment in self.segments() {
            match segment.strip_prefix(':') {
                Some(name) => ParamSegment(name).generate_path(path),
                None => StaticSegment(segment).generate_path(path),
            }
        }
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use leptos_router::PossibleRouteMatch;

    use super::Pattern;

    #[test]
    fn a_pattern_matches_the_beginning_of_a_path() {
        let test = |pattern, path| {
            let found = Pattern(pattern).test(path)?;
            let (matched, rest) = (found.matched(), found.remaining());
            let parameters =
                found.params().into_iter().map(|(name, value)| format!("{name}={value}"));
            Some((matched, rest, parameters.collect::<Vec<_>>().join(" ")))
        };
        let group = "/projects/7/groups/company/a%20b/";
        assert_eq!(
            test("/projects/:id/groups/:type/:key", group),
            Some(("/projects/7/groups/company/a%20b", "/", "id=7 type=company key=a%20b".into()))
        );
        assert_eq!(
            test("/projects/:id", group),
            Some(("/projects/7", "/groups/company/a%20b/", "id=7".into()))
        );
        assert_eq!(test("", "/help"), Some(("", "/help", String::new())));
        assert_eq!(test("/", "/"), Some(("", "/", String::new())));
        assert_eq!(test("/help/:page", "/help/"), None);
        assert_eq!(test("/help", "/helpful"), None);
    }

    #[test]
    fn a_pattern_gives_its_segments() {
        let mut segments = Vec::new();
        Pattern("/help/:page").generate_path(&mut segments);
        let names: Vec<_> = segments.iter().map(|segment| segment.as_raw_str()).collect();
        assert_eq!(names, ["help", "page"]);
    }
}
