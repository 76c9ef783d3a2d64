//! Actions on a config that need no input: forms with one button each, on the list and on
//! the page of the config.

use leptos::prelude::*;

use crate::server_fns::plugin_configs::views::ConfigLine;
use crate::server_fns::plugin_configs::{
    HidePluginConfig, RestorePluginConfig, SwitchPluginConfig,
};
use crate::ui::form::ReturnAddress;
use crate::ui::form_action::{ActionForm, FormAction};

/// Hidden fields: the config of a form, and the page that it returns to.
fn about(project: i64, line: &ConfigLine) -> AnyView {
    view! {
        <input type="hidden" name="project" value=project.to_string() />
        <input type="hidden" name="config" value=line.id.clone() />
        <ReturnAddress />
    }
    .into_any()
}

/// The id of the element that shows whether the config is enabled.
pub(super) fn word_id(line: &ConfigLine) -> String {
    format!("state-{}", line.id)
}

/// Enables or disables the config.
pub(super) fn switching(
    project: i64,
    line: &ConfigLine,
    switch: FormAction<SwitchPluginConfig>,
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

/// Hides the config. It can be restored, so there is no confirmation. `follows` describes
/// the consequence, where there is space.
pub(super) fn hiding(
    project: i64,
    line: &ConfigLine,
    follows: Option<&'static str>,
    hide: FormAction<HidePluginConfig>,
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

/// Restores a hidden config.
pub(super) fn restoring(
    project: i64,
    line: &ConfigLine,
    restore: FormAction<RestorePluginConfig>,
) -> AnyView {
    let (about, name) = (about(project, line), line.name.clone());
    view! {
        <ActionForm action=restore>
            {about}
            <button type="submit" class="button" data-busy="Restoring...">
                "Restore"<span class="hidden">" " {name}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}
