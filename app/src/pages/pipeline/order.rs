//! Reorders transformations: with buttons, by dragging (`behaviours::reorder`), and the
//! question after a conflict with another user.

use leptos::prelude::*;
use serde_json::{Map, Value, json};

use super::calls;
use crate::server_fns::plugin_configs::ReorderTransformations;
use crate::server_fns::plugin_configs::views::ConfigLine;
use crate::ui::alert::Alert;
use crate::ui::api_request::ApiCall;
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction};

/// The order that the page shows.
pub(super) struct Order {
    project: i64,
    ids: Vec<String>,
}

impl Order {
    /// The order of these configs.
    pub(super) fn of(project: i64, listed: &[ConfigLine]) -> Self {
        Self { project, ids: listed.iter().map(|line| line.id.clone()).collect() }
    }

    fn seen(&self) -> String {
        self.ids.join(",")
    }

    /// The order after two configs swapped their positions.
    fn swapped(&self, one: usize, other: usize) -> String {
        let mut ids = self.ids.clone();
        if one.max(other) < ids.len() {
            ids.swap(one, other);
        }
        ids.join(",")
    }

    /// The current configs in the wanted order. New configs come last.
    fn wanted(&self, wanted: &str) -> Vec<String> {
        let requested = wanted.split(',').filter(|id| self.ids.iter().any(|known| known == id));
        let mut ids: Vec<String> = requested.map(str::to_owned).collect();
        let new: Vec<String> = self.ids.iter().filter(|id| !ids.contains(id)).cloned().collect();
        ids.extend(new);
        ids
    }

    /// The API request that sets this order.
    pub(super) fn call(&self) -> ApiCall {
        let places = self.ids.iter().zip(1_u64..).map(|(id, at)| (id.clone(), Value::from(at)));
        let orders: Map<String, Value> = places.collect();
        calls::call("PATCH", self.project, "rearrange/").with(json!({"orders": orders}))
    }

    /// The form that scripts fill in and send after a drag.
    pub(super) fn form(&self, reorder: FormAction<ReorderTransformations>) -> AnyView {
        let (project, seen) = (self.project, self.seen());
        let wanted = seen.clone();
        view! {
            <div hidden>
                <ActionForm action=reorder>
                    <input type="hidden" name="project" value=project.to_string() />
                    <input type="hidden" name="seen" value=seen />
                    <input type="hidden" name="wanted" value=wanted data-reorder-wanted="" />
                    <ReturnAddress />
                    <button type="submit" data-reorder-send="">"Save order"</button>
                </ActionForm>
            </div>
        }
        .into_any()
    }
}

/// A button that moves a config to another position.
pub(super) fn mover(
    order: &Order,
    from: usize,
    to: usize,
    name: &str,
    reorder: FormAction<ReorderTransformations>,
) -> AnyView {
    let (project, seen, wanted) = (order.project, order.seen(), order.swapped(from, to));
    let label = if to < from { "Move up" } else { "Move down" };
    let name = name.to_owned();
    view! {
        <ActionForm action=reorder>
            <input type="hidden" name="project" value=project.to_string() />
            <input type="hidden" name="seen" value=seen />
            <input type="hidden" name="wanted" value=wanted />
            <ReturnAddress />
            <button type="submit" class="button" data-busy="Moving...">
                {label}<span class="hidden">" " {name}</span>
            </button>
        </ActionForm>
    }
    .into_any()
}

/// The failure of a new order. After a conflict with another user: both orders, and the
/// choice between them.
pub(super) fn conflict(
    reorder: FormAction<ReorderTransformations>,
    order: &Order,
    listed: &[ConfigLine],
) -> Option<AnyView> {
    let result = form_result(reorder);
    if !result.failed() {
        return None;
    }
    let Some(requested) = result.field_error("wanted") else {
        return Some(view! { <FormFailure result=result /> }.into_any());
    };
    let wanted = order.wanted(&requested);
    let name = |id: &String| {
        let line = listed.iter().find(|line| line.id == *id);
        let name = line.map_or_else(|| id.clone(), |line| line.name.clone());
        view! { <li>{name}</li> }
    };
    let now = order.ids.iter().map(name).collect_view();
    let yours = wanted.iter().map(name).collect_view();
    let (project, seen, wanted) = (order.project, order.seen(), wanted.join(","));
    let asking = view! {
        <Alert kind="warning" autofocus=true>
            <p>"Another user has changed the order. Nothing was moved."</p>
            <div class="orders">
                <div><h2>"Current order"</h2><ol>{now}</ol></div>
                <div><h2>"Your order"</h2><ol>{yours}</ol></div>
            </div>
            <ActionForm action=reorder>
                <input type="hidden" name="project" value=project.to_string() />
                <input type="hidden" name="seen" value=seen />
                <input type="hidden" name="wanted" value=wanted />
                <ReturnAddress />
                <button type="submit" class="button" data-busy="Saving order...">
                    "Use my order"
                </button>
            </ActionForm>
        </Alert>
    };
    Some(asking.into_any())
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn orders() {
        let order = Order { project: 1, ids: ["3", "1", "2"].map(str::to_owned).to_vec() };
        assert_eq!(order.seen(), "3,1,2");
        assert_eq!(order.swapped(0, 1), "1,3,2");
        assert_eq!(order.swapped(0, 9), "3,1,2");
        // Deleted configs are omitted, and new ones come last.
        assert_eq!(order.wanted("2,7,3"), ["2", "3", "1"]);
        let expected = serde_json::json!({"orders": {"3": 1, "1": 2, "2": 3}});
        assert_eq!(order.call().body, Some(expected));
    }
}
