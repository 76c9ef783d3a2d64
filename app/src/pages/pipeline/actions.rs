//! What can be done with a config at once: forms with one button each, on the list
//! and on its own page.

use leptos::prelude::*;

use crate::server_fns::plugin_configs::views::ConfigLine;
use crate::server_fns::plugin_configs::{
    HidePluginConfig, RestorePluginConfig, SwitchPluginConfig,
};
use crate::ui::form::Back;

/// The config that a form is about, and where it leads back to.
fn about(project: i64, line: &ConfigLine) -> AnyView {
    view! {
        <input type="hidden" name="project" value=project.to_string() />
        <input type="hidden" name="config" value=line.id.clone() />
        <Back />
    }
    .into_any()
}

/// The id of the word that says whether it is on.
pub(super) fn word_id(line: &ConfigLine) -> String {
    format!("state-{}", line.id)
}

/// Switching it on or off.
pub(super) fn switching(
    project: i64,
    line: &ConfigLine,
    switch: ServerAction<SwitchPluginConfig>,
) -> AnyView {
    let (about, name) = (about(project, line), line.name.clone());
    let (to, becomes, label, busy) = match line.enabled {
        true => ("off", "Off", "Switch off", "Switching off..."),
        false => ("on", "On", "Switch on", "Switching on..."),
    };
    let state = word_id(line);
    view! {
        <ActionForm action=switch>
            {about}
            <input type="hidden" name="enabled" value=to />
            <button type="submit" class="button" data-busy=busy data-state=state data-becomes=becomes>
                {label}<span class="hidden">" " {name}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}

/// Taking it off the list. It can be brought back, so nothing is asked; `follows`
/// says what becomes of it, where there is room.
pub(super) fn hiding(
    project: i64,
    line: &ConfigLine,
    follows: Option<&'static str>,
    hide: ServerAction<HidePluginConfig>,
) -> AnyView {
    let (about, name) = (about(project, line), line.name.clone());
    view! {
        <ActionForm action=hide>
            {follows.map(|follows| view! { <p>{follows}</p> })}
            {about}
            <button type="submit" class="button" data-busy="Deleting...">
                "Delete"<span class="hidden">" " {name}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}

/// Bringing back what was taken off the list.
pub(super) fn restoring(
    project: i64,
    line: &ConfigLine,
    restore: ServerAction<RestorePluginConfig>,
) -> AnyView {
    let (about, name) = (about(project, line), line.name.clone());
    view! {
        <ActionForm action=restore>
            {about}
            <button type="submit" class="button" data-busy="Bringing back...">
                "Bring back"<span class="hidden">" " {name}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}
