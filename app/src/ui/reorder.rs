//! What a line of a list is dragged by, see `behaviours::reorder`.

use leptos::prelude::*;

/// The handle. Without scripts it is not shown: buttons change the order.
pub(crate) fn drag_handle() -> AnyView {
    view! {
        <span class="drag-handle needs-scripts" draggable="true" data-reorder-handle=""
            title="Drag to reorder" aria-hidden="true">
            "⠿"
        </span>
    }
    .into_any()
}
