//! The outcome of an event or a request: word, shape and colour.

use leptos::prelude::*;
use weir_model::live::OutcomeLabel;

use crate::ui::icon::Icon;

/// The badge of an outcome.
pub(crate) fn badge(label: OutcomeLabel) -> AnyView {
    let (class, icon) = match label {
        OutcomeLabel::Dropped => ("badge badge-dropped", "drop"),
        OutcomeLabel::Accepted => ("badge badge-accepted", "check"),
        OutcomeLabel::Rejected => ("badge badge-rejected", "close"),
        OutcomeLabel::Altered => ("badge badge-altered", "alter"),
    };
    view! {
        <span class=class>
            <Icon name=icon />
            {label.text()}
        </span>
    }
    .into_any()
}
