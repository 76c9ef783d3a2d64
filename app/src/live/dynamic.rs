//! Parts of a page that are drawn again alone, when a signal that they read changes.

use std::sync::Arc;

use leptos::prelude::*;

/// A part that is drawn again. Each type of function in a view is code, so all parts have
/// the same type.
pub(super) fn dynamic(draw: impl Fn() -> AnyView + Send + Sync + 'static) -> AnyView {
    erased(Arc::new(draw))
}

fn erased(draw: Arc<dyn Fn() -> AnyView + Send + Sync>) -> AnyView {
    (move || draw()).into_any()
}
