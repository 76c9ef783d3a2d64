//! What a new key will be able to do, in one sentence. Said by the server for
//! the form as it comes, and by the browser as it is changed.

use weir_model::scopes::{ScopeAction, ScopeObject};

/// What is chosen for one kind of thing; nothing: not for the key.
pub(crate) type Choice = Option<ScopeAction>;

/// The choice that the value of a field stands for, such as `project:read`.
pub(crate) fn choice(scope: &str) -> Choice {
    match scope.rsplit(':').next() {
        Some("read") => Some(ScopeAction::Read),
        Some("write") => Some(ScopeAction::Write),
        _ => None,
    }
}

/// What people call it.
pub(crate) fn things(object: ScopeObject) -> String {
    let word = object.text();
    match word.strip_suffix('y') {
        Some(stem) => format!("{}ies", capital(stem)),
        None => format!("{}s", capital(word)),
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).map(|c| if c == '_' { ' ' } else { c }).collect()
}

/// The sentence, for a preset, the choices in the order of
/// [`ScopeObject::OFFERED`], and the last day.
pub(crate) fn sentence(preset: &str, chosen: &[Choice], until: Option<&str>) -> String {
    let what = match preset {
        "all" => "Can do everything you may do".to_owned(),
        "read" => "Can read everything you can see".to_owned(),
        _ => {
            let parts: Vec<String> = [(ScopeAction::Read, "read"), (ScopeAction::Write, "write")]
                .into_iter()
                .filter_map(|(action, verb)| Some(format!("{verb} {}", all_with(chosen, action)?)))
                .collect();
            if parts.is_empty() {
                return "Choose at least one thing that the key may do.".to_owned();
            }
            format!("Can {}", parts.join(" and "))
        }
    };
    match until {
        Some(until) => format!("{what} until {until}."),
        None => format!("{what}, for ever."),
    }
}

fn all_with(chosen: &[Choice], action: ScopeAction) -> Option<String> {
    let names: Vec<String> = chosen
        .iter()
        .zip(ScopeObject::OFFERED)
        .filter(|(choice, _)| **choice == Some(action))
        .map(|(_, object)| things(*object).to_ascii_lowercase())
        .collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [first @ .., last] => Some(format!("{} and {last}", first.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::scopes::{ScopeAction, ScopeObject};

    use super::{Choice, sentence, things};

    #[test]
    fn sentences() {
        let none: Vec<Choice> = vec![None; ScopeObject::OFFERED.len()];
        let mut some = none.clone();
        for (object, action) in [
            (ScopeObject::Organization, ScopeAction::Read),
            (ScopeObject::Project, ScopeAction::Write),
            (ScopeObject::Event, ScopeAction::Read),
        ] {
            let at = ScopeObject::OFFERED.iter().position(|offered| *offered == object);
            some[at.unwrap()] = Some(action);
        }
        assert_eq!(
            sentence("custom", &some, Some("18 Feb 2027")),
            "Can read organizations and events and write projects until 18 Feb 2027."
        );
        assert_eq!(sentence("read", &none, None), "Can read everything you can see, for ever.");
        assert!(sentence("custom", &none, None).starts_with("Choose"));
    }

    #[test]
    fn names_of_things() {
        assert_eq!(things(ScopeObject::Query), "Queries");
        assert_eq!(things(ScopeObject::OrganizationMember), "Organization members");
    }
}
