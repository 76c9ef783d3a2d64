//! Zooms into a time range by dragging over a chart. Fields next to the charts do the
//! same without a pointer and without scripts.

use leptos::prelude::document;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, Event, HtmlElement, HtmlInputElement, MouseEvent};

use super::chart::slot_at;
use super::{closest, on, within};

/// Attribute with the position where the current drag began.
const BEGAN: &str = "data-brushed";
/// The part of a chart over which users drag.
const DRAWING: &str = ".chart-drawing";
/// Shorter movements, in pixels, are a click and not a drag.
const LEAST: u32 = 4;

/// `data-brush` on the element around a chart is the end time of its last step. The start
/// times of the steps are in the table of the chart. `data-brush-form` is the form with
/// the fields `from` and `to` that is sent.
pub(super) fn start() {
    on("pointerdown", |event, target| {
        if let Some(pointer) = event.dyn_ref::<MouseEvent>().filter(|it| it.button() == 0)
            && closest(target, DRAWING).is_some()
            && let Some(plot) = closest(target, "[data-brush]")
        {
            let _ = plot.set_attribute(BEGAN, &pointer.client_x().to_string());
            show(event);
        }
    });
    on("pointermove", |event, _| {
        // The button can be released outside the window, where no event arrives.
        if event.dyn_ref::<MouseEvent>().is_some_and(|pointer| pointer.buttons() == 0) {
            leave();
        }
        show(event);
    });
    on("pointerup", |event, _| {
        if let Some(drag) = Drag::of(event) {
            leave();
            drag.send();
        }
    });
    on("pointercancel", |_, _| leave());
}

/// Ends the drag.
fn leave() {
    if let Some(plot) = brushed() {
        let _ = plot.remove_attribute(BEGAN);
    }
}

/// Draws the selected range, if a drag is in progress.
fn show(event: &Event) {
    if let Some(drag) = Drag::of(event) {
        drag.show();
    }
}

/// The chart with the current drag.
fn brushed() -> Option<Element> {
    document().query_selector(&format!("[{BEGAN}]")).ok().flatten()
}

/// A drag in progress.
struct Drag {
    plot: Element,
    /// Start of the first selected step and end of the last selected step.
    times: [String; 2],
    /// Index of the first step, and number of steps.
    steps: [u32; 2],
    is_long: bool,
}

impl Drag {
    fn of(event: &Event) -> Option<Self> {
        let plot = brushed()?;
        let began: i32 = plot.get_attribute(BEGAN)?.parse().ok()?;
        let now = event.dyn_ref::<MouseEvent>()?.client_x();
        let begins = closest(&plot, "figure")?.query_selector_all("table time").ok()?;
        let drawing = within::<Element>(&plot, DRAWING)?;
        let step = |x: i32| slot_at(&drawing, begins.length(), x);
        let time = |at: u32| begins.get(at)?.dyn_into::<Element>().ok()?.get_attribute("datetime");
        let (first, last) = (step(began.min(now)), step(began.max(now)));
        let end = time(last + 1).or_else(|| plot.get_attribute("data-brush"))?;
        Some(Self {
            times: [time(first)?, end],
            steps: [first, last + 1 - first],
            is_long: began.abs_diff(now) > LEAST,
            plot,
        })
    }

    fn show(&self) {
        let Some(brush) = within::<Element>(&self.plot, ".chart-brush") else { return };
        let slot = brush.get_attribute("data-slot").and_then(|slot| slot.parse::<u32>().ok());
        for (name, steps) in ["x", "width"].into_iter().zip(self.steps) {
            let _ = brush.set_attribute(name, &(steps * slot.unwrap_or_default()).to_string());
        }
    }

    fn send(&self) {
        let form = document().query_selector("[data-brush-form]").ok().flatten();
        let Some(form) = form.filter(|_| self.is_long) else { return };
        for (name, time) in ["from", "to"].into_iter().zip(&self.times) {
            if let Some(field) = within::<HtmlInputElement>(&form, &format!("[name={name}]")) {
                // `datetime-local` takes minutes without a zone.
                field.set_value(time.get(..16).unwrap_or_default());
            }
        }
        if let Some(button) = within::<HtmlElement>(&form, "button") {
            button.click();
        }
    }
}
