//! Tabs made of radio buttons. The browser handles the choice and the arrow keys, and the
//! style sheet shows the chosen panel.

use leptos::prelude::*;

use super::copy::CopyButton;

/// Tabs with a code block each.
#[component]
pub(crate) fn CodeTabs(
    /// Name of the radio group.
    name: &'static str,
    legend: &'static str,
    /// Label and text of each tab.
    tabs: Vec<(&'static str, String)>,
) -> impl IntoView {
    let choices = tabs
        .iter()
        .enumerate()
        .map(|(at, (label, _))| {
            let id = format!("{name}-{at}");
            view! {
                <label class="tab">
                    <input type="radio" name=name id=id value=at.to_string() checked=at == 0 />
                    {*label}
                </label>
            }
        })
        .collect_view();
    let panels = tabs
        .into_iter()
        .map(|(_, text)| {
            view! {
                <div class="tab-panel" data-copyable="">
                    <pre tabindex="0"><code>{text}</code></pre>
                    <CopyButton what="snippet" />
                </div>
            }
        })
        .collect_view();
    view! {
        <div class="tabs">
            <fieldset class="tab-list">
                <legend class="hidden">{legend}</legend>
                {choices}
            </fieldset>
            {panels}
        </div>
    }
    .into_any()
}
