//! The outcome of an event or a request: word, shape and colour.

use leptos::prelude::*;

use super::row::Fate;
use crate::ui::icon::Icon;

/// The badge of a fate.
pub(crate) fn badge(fate: Fate) -> AnyView {
    let (class, icon) = match fate {
        Fate::Dropped => ("badge badge-dropped", "drop"),
        Fate::Accepted => ("badge badge-accepted", "check"),
        Fate::Rejected => ("badge badge-rejected", "close"),
        Fate::Altered => ("badge badge-altered", "alter"),
    };
    view! {
        <span class=class>
            <Icon name=icon />
            {fate.word()}
        </span>
    }
    .into_any()
}
