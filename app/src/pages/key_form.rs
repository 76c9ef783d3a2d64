//! Shared fields of the forms for new and existing keys: presets, scopes, and limits.

use leptos::prelude::*;
use weir_model::scopes::{Scope, ScopeAction, ScopeObject};

use crate::key_words::things;
use crate::server_fns::key_forms::KeyOffer;
use crate::ui::field::{initial, ticked};
use crate::ui::form::FormResult;
use crate::ui::icon::Icon;

/// Presets: value, label, explanation.
const PRESETS: [(&str, &str, &str); 6] = [
    ("read", "Read-only", "Reads everything you can see, changes nothing."),
    ("exports", "Exports", "Sets up, runs and watches exports."),
    ("members", "Members", "Invites people, changes levels, removes members."),
    ("plugins", "Plugins", "Installs and configures plugins."),
    ("all", "Everything", "All that you may do, now and later, including deleting organizations."),
    // Last, because the choices follow it.
    ("custom", "Custom", "Choose the access for each kind of object."),
];

/// A warning about a scope, if there is one.
pub(super) fn caution(scope: Scope) -> Option<&'static str> {
    let object = match scope {
        Scope::All => return Some("The holder of the key can do all that you may do."),
        Scope::On(_, ScopeAction::Read) => return None,
        Scope::On(object, ScopeAction::Write) => object,
    };
    match object {
        ScopeObject::Organization => Some("Can delete organizations and change their domains."),
        ScopeObject::OrganizationMember => {
            Some("Can widen access: invite people and raise their levels.")
        }
        ScopeObject::Project => Some("Can replace project keys and delete projects."),
        ScopeObject::Plugin => Some("Can change the code that runs on every event."),
        ScopeObject::BatchExport => Some("Can send all events elsewhere."),
        ScopeObject::User => Some("Can change your account."),
        _ => None,
    }
}

/// The current limits of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Held {
    /// Ids of the organizations that it is limited to.
    pub(super) organizations: Vec<String>,
    /// Numbers of the projects that it is limited to.
    pub(super) projects: Vec<i64>,
}

/// The preset of the key's scopes.
#[component]
pub(super) fn Presets(
    result: FormResult,
    /// The initial preset.
    preset: &'static str,
) -> impl IntoView {
    let chosen = initial("preset", preset.to_owned());
    let choices = PRESETS
        .into_iter()
        .map(|(word, label, explanation)| {
            view! {
                <label class="choice">
                    <input type="radio" name="preset" value=word checked=chosen == word />
                    <span>{label}<span class="hint">{explanation}</span></span>
                </label>
            }
        })
        .collect_view();
    let fault = result.field_error("scopes");
    let described_by = fault.as_ref().map(|_| "scopes-fault");
    view! {
        <fieldset
            class="choices"
            id="scopes"
            tabindex="-1"
            autofocus=result.has_focus("scopes", false)
            aria-describedby=described_by
        >
            <legend>"Scopes"</legend>
            {choices}
            {fault.map(|fault| view! {
                <p class="fault" id="scopes-fault"><Icon name="alert" />{fault}</p>
            })}
        </fieldset>
    }
    .into_any()
}

/// The initial value of the field for an object.
fn value_of(object: ScopeObject, held: &[Scope]) -> String {
    let mine = held.iter().filter(|scope| matches!(scope, Scope::On(of, _) if *of == object));
    mine.max().map(ToString::to_string).unwrap_or_default()
}

/// One line per kind of object. The style sheet shows it when "custom" is chosen, so that
/// it works without scripts. Scopes that the form does not offer are kept.
#[component]
pub(super) fn ScopeGrid(
    /// The scopes that the key has.
    #[prop(optional)]
    held: Vec<Scope>,
) -> impl IntoView {
    let offered = ScopeObject::OFFERED;
    let lines = offered.iter().enumerate().map(|(at, object)| line(at, *object, &held));
    let lines = lines.collect_view();
    let others: Vec<Scope> = held
        .into_iter()
        .filter(|scope| matches!(scope, Scope::On(object, _) if !offered.contains(object)))
        .collect();
    let kept = (!others.is_empty()).then(|| {
        let names: Vec<String> = others.iter().map(ToString::to_string).collect();
        let fields = names.iter().zip(offered.len()..).map(|(scope, at)| {
            view! { <input type="hidden" name=format!("scopes[{at}]") value=scope.clone() /> }
        });
        view! {
            {fields.collect_view()}
            <p class="hint">{format!("The key keeps {} too.", names.join(", "))}</p>
        }
    });
    view! {
        <div class="scope-grid">
            {lines}
            <p class="hint">"Write includes read."</p>
            {kept}
        </div>
    }
    .into_any()
}

fn line(at: usize, object: ScopeObject, held: &[Scope]) -> AnyView {
    let name = format!("scopes[{at}]");
    let chosen = initial(&name, value_of(object, held));
    let hint = caution(Scope::write(object));
    let radios = [
        ("None", String::new()),
        ("Read", Scope::read(object).to_string()),
        ("Write", Scope::write(object).to_string()),
    ]
    .into_iter()
    .map(|(label, value)| {
        let checked = value == chosen;
        view! {
            <label class="choice">
                <input type="radio" name=name.clone() value=value checked=checked />
                {label}
            </label>
        }
    })
    .collect_view();
    view! {
        <fieldset class="scope">
            <legend>{things(object)}</legend>
            {radios}
            {hint.map(|hint| view! {
                <p class="scope-caution"><Icon name="alert" />{hint}</p>
            })}
        </fieldset>
    }
    .into_any()
}

/// The limits of the key: everything that its owner can access, or only some
/// organizations or projects.
#[component]
pub(super) fn ReachFields(
    result: FormResult,
    /// The organizations and projects to choose from.
    offer: KeyOffer,
    /// The initial choice.
    held: Held,
) -> impl IntoView {
    let Held { organizations, projects } = held;
    let kind = match (organizations.is_empty(), projects.is_empty()) {
        (_, false) => "projects",
        (false, true) => "organizations",
        (true, true) => "",
    };
    let kind = initial("reach[kind]", kind.to_owned());
    let kinds = [
        ("", "All of your organizations, now and later"),
        ("organizations", "Some organizations"),
        ("projects", "Some projects"),
    ]
    .into_iter()
    .map(|(value, label)| {
        let checked = value == kind;
        view! {
            <label class="choice">
                <input type="radio" name="reach[kind]" value=value checked=checked />
                <span>{label}</span>
            </label>
        }
    })
    .collect_view();
    let of_organizations = offer.organizations.into_iter().zip(0_u32..).map(|((id, name), at)| {
        let checked = organizations.contains(&id);
        place(result, format!("reach[organizations][{at}]"), id, name, checked)
    });
    let of_projects = offer.projects.into_iter().zip(0_u32..).map(|((id, name, home), at)| {
        let checked = projects.contains(&id);
        let (name, label) = (format!("reach[projects][{at}]"), format!("{name}, {home}"));
        place(result, name, id.to_string(), label, checked)
    });
    let fault = result.field_error("reach");
    let described_by = fault.as_ref().map(|_| "reach-fault");
    view! {
        <fieldset
            class="choices reach"
            id="reach"
            tabindex="-1"
            autofocus=result.has_focus("reach", false)
            aria-describedby=described_by
        >
            <legend>"Access"</legend>
            {kinds}
            <div class="reach-organizations">{of_organizations.collect_view()}</div>
            <div class="reach-projects">{of_projects.collect_view()}</div>
            {fault.map(|fault| view! {
                <p class="fault" id="reach-fault"><Icon name="alert" />{fault}</p>
            })}
        </fieldset>
    }
    .into_any()
}

fn place(result: FormResult, name: String, value: String, label: String, checked: bool) -> AnyView {
    let checked = ticked(result, &name, checked);
    view! {
        <label class="choice">
            <input type="checkbox" name=name value=value checked=checked />
            <span>{label}</span>
        </label>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use weir_model::scopes::{Scope, ScopeObject};

    use super::{caution, value_of};

    #[test]
    fn a_grid_starts_with_the_scopes_of_the_key() {
        let read = Scope::read(ScopeObject::Plugin);
        let write = Scope::write(ScopeObject::Plugin);
        assert_eq!(value_of(ScopeObject::Plugin, &[write, read]), "plugin:write");
        assert_eq!(value_of(ScopeObject::Plugin, &[read]), "plugin:read");
        assert_eq!(value_of(ScopeObject::Event, &[write]), "");
    }

    #[test]
    fn scopes_that_widen_access_have_a_warning() {
        assert!(caution(Scope::write(ScopeObject::OrganizationMember)).is_some());
        assert!(caution(Scope::All).is_some());
        assert_eq!(caution(Scope::read(ScopeObject::OrganizationMember)), None);
    }
}
