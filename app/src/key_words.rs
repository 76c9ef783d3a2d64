//! Describes in one sentence what a new key will be able to do. The server computes it
//! for the form, and the browser updates it after each change.

use weir_model::scopes::{ScopeAction, ScopeObject};

/// The chosen access to one kind of object. `None`: no access.
pub(crate) type Access = Option<ScopeAction>;

/// Parses the value of a field, such as `project:read`.
pub(crate) fn access(scope: &str) -> Access {
    match scope.rsplit(':').next() {
        Some("read") => Some(ScopeAction::Read),
        Some("write") => Some(ScopeAction::Write),
        _ => None,
    }
}

/// The name of a kind of object, for users.
pub(crate) fn things(object: ScopeObject) -> String {
    let word = match object {
        // The API has a longer name for it.
        ScopeObject::BatchExport => "export",
        other => other.text(),
    };
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

/// Scopes that are usually combined, by name of their preset.
const GRANTED_TOGETHER: [(&str, &[(ScopeObject, ScopeAction)]); 3] = [
    (
        "exports",
        &[
            (ScopeObject::BatchExport, ScopeAction::Write),
            (ScopeObject::Organization, ScopeAction::Read),
            (ScopeObject::Project, ScopeAction::Read),
        ],
    ),
    (
        "members",
        &[
            (ScopeObject::OrganizationMember, ScopeAction::Write),
            (ScopeObject::Organization, ScopeAction::Read),
        ],
    ),
    (
        "plugins",
        &[
            (ScopeObject::Plugin, ScopeAction::Write),
            (ScopeObject::Organization, ScopeAction::Read),
            (ScopeObject::Project, ScopeAction::Read),
        ],
    ),
];

/// The access that a preset gives, in the order of [`ScopeObject::OFFERED`]. `None` if the user
/// chooses it for each kind of object, or if the preset has none.
pub(crate) fn access_of(preset: &str) -> Option<Vec<Access>> {
    if preset == "read" {
        return Some(vec![Some(ScopeAction::Read); ScopeObject::OFFERED.len()]);
    }
    let (_, scopes) = GRANTED_TOGETHER.iter().find(|(word, _)| *word == preset)?;
    let access = |object: &ScopeObject| {
        scopes.iter().find(|(named, _)| named == object).map(|(_, action)| *action)
    };
    Some(ScopeObject::OFFERED.iter().map(access).collect())
}

/// The sentence for a preset, the chosen access in the order of [`ScopeObject::OFFERED`], and
/// the last day.
pub(crate) fn sentence(preset: &str, chosen: &[Access], until: Option<&str>) -> String {
    let what = match preset {
        "all" => "Can do everything you may do".to_owned(),
        "read" => "Can read everything you can see".to_owned(),
        _ => {
            let of_preset = access_of(preset);
            let chosen = of_preset.as_deref().unwrap_or(chosen);
            let parts: Vec<String> = [(ScopeAction::Read, "read"), (ScopeAction::Write, "write")]
                .into_iter()
                .filter_map(|(action, verb)| Some(format!("{verb} {}", all_with(chosen, action)?)))
                .collect();
            if parts.is_empty() {
                return "Choose at least one scope.".to_owned();
            }
            format!("Can {}", parts.join(" and "))
        }
    };
    match until {
        Some(until) => format!("{what} until {until}."),
        None => format!("{what}. It never expires."),
    }
}

fn all_with(chosen: &[Access], action: ScopeAction) -> Option<String> {
    let names: Vec<String> = chosen
        .iter()
        .zip(ScopeObject::OFFERED)
        .filter(|(access, _)| **access == Some(action))
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

    use super::{Access, GRANTED_TOGETHER, access_of, sentence, things};

    #[test]
    fn sentences() {
        let none: Vec<Access> = vec![None; ScopeObject::OFFERED.len()];
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
        assert_eq!(
            sentence("read", &none, None),
            "Can read everything you can see. It never expires."
        );
        assert!(sentence("custom", &none, None).starts_with("Choose"));
        assert_eq!(
            sentence("exports", &none, Some("18 Feb 2027")),
            "Can read organizations and projects and write exports until 18 Feb 2027."
        );
    }

    #[test]
    fn presets_offer_existing_scopes() {
        for (word, scopes) in GRANTED_TOGETHER {
            let chosen = access_of(word).unwrap();
            assert_eq!(chosen.iter().flatten().count(), scopes.len(), "{word}");
        }
    }

    #[test]
    fn names_of_things() {
        assert_eq!(things(ScopeObject::Query), "Queries");
        assert_eq!(things(ScopeObject::OrganizationMember), "Organization members");
    }
}
