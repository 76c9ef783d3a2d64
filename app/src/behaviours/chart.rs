//! Reads a chart: the pointer and the arrow keys choose a time, and its values are shown
//! beside it. They are those of the table of the chart.

use js_sys::Reflect;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, Event, HtmlElement, KeyboardEvent, MouseEvent};

use super::{all_within, closest, each, on, within};
use crate::ui::chart::READ;

/// Attribute of the slider in a chart.
const READER: &str = "[data-reader]";
/// Charts that the pointer reads, not the keyboard.
const UNFOCUSED: &str = "[data-reader]:not(:focus-visible)";
/// Attribute of the slider while a time is shown: the slot of the time.
const SHOWN: &str = "data-at";
/// Attribute of the slider with the slot of the chosen time, for assistive technology.
const NOW: &str = "aria-valuenow";
/// How far a page key goes.
const FAR: u32 = 10;

/// `data-reader` is on the slider around a drawing. Its table is in the same `figure`, with
/// a row for each slot.
pub(super) fn start() {
    on("pointermove", point);
    on("pointerdown", point);
    on("focusin", |_, target| {
        if let Some(reader) = Reader::of(target) {
            reader.show(reader.now());
        }
    });
    on("focusout", |_, _| leave(READER));
    on("keydown", |event, target| {
        let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
        let Some(reader) = Reader::of(target).filter(|_| !has_modifier(event)) else { return };
        let (now, last) = (reader.now(), reader.slots.saturating_sub(1));
        let next = match event.key().as_str() {
            "ArrowRight" | "ArrowUp" => now.saturating_add(1),
            "ArrowLeft" | "ArrowDown" => now.saturating_sub(1),
            "PageUp" => now.saturating_add(FAR),
            "PageDown" => now.saturating_sub(FAR),
            "Home" => 0,
            "End" => last,
            "Escape" => return leave(READER),
            _ => return,
        };
        event.prevent_default();
        reader.show(next.min(last));
    });
}

/// Hides the values of a time, before a page is drawn again.
pub(crate) fn undo() {
    leave(READER);
    each(READER, |element: &Element| {
        if let Some(last) = element.get_attribute("aria-valuemax") {
            let _ = element.set_attribute(NOW, &last);
            let _ = element.set_attribute("aria-valuetext", READ);
        }
    });
}

/// The slot of a drawing at a position of the pointer.
pub(super) fn slot_at(drawing: &Element, slots: u32, x: i32) -> u32 {
    let frame = drawing.get_bounding_client_rect();
    let end = |slot: u32| frame.x() + frame.width() * f64::from(slot + 1) / f64::from(slots);
    (0..slots).find(|slot| end(*slot) > f64::from(x)).unwrap_or(slots.saturating_sub(1))
}

fn has_modifier(event: &KeyboardEvent) -> bool {
    event.ctrl_key() || event.alt_key() || event.meta_key() || event.shift_key()
}

fn point(event: &Event, target: &Element) {
    let Some(pointer) = event.dyn_ref::<MouseEvent>() else { return };
    match Reader::of(target) {
        Some(reader) => {
            if !reader.element.has_attribute(SHOWN) {
                leave(UNFOCUSED);
            }
            reader.show(slot_at(&reader.element, reader.slots, pointer.client_x()));
        }
        None => leave(UNFOCUSED),
    }
}

/// Hides what is shown in these charts.
fn leave(readers: &str) {
    each(readers, |element: &Element| {
        let _ = element.remove_attribute(SHOWN);
    });
}

struct Reader {
    element: Element,
    rows: Vec<HtmlElement>,
    slots: u32,
}

impl Reader {
    fn of(target: &Element) -> Option<Self> {
        let element = closest(target, READER)?;
        let rows = all_within(&closest(&element, "figure")?, "tbody tr");
        let slots = u32::try_from(rows.len()).ok().filter(|slots| *slots > 0)?;
        Some(Self { element, rows, slots })
    }

    /// The chosen slot.
    fn now(&self) -> u32 {
        let now = self.element.get_attribute(NOW).and_then(|now| now.parse().ok());
        now.unwrap_or(0).min(self.slots.saturating_sub(1))
    }

    fn show(&self, slot: u32) {
        let number = slot.to_string();
        if self.element.get_attribute(SHOWN).as_ref() == Some(&number) {
            return;
        }
        let lines = self.lines(slot);
        let _ = self.element.set_attribute(SHOWN, &number);
        let _ = self.element.set_attribute(NOW, &number);
        let _ = self.element.set_attribute("aria-valuetext", &lines.join(", "));
        if let Some(mark) = within::<Element>(&self.element, ".chart-mark") {
            let width = mark.get_attribute("data-slot").and_then(|it| it.parse::<u32>().ok());
            let _ = mark.set_attribute("x", &(slot * width.unwrap_or_default()).to_string());
        }
        let Some(tip) = within::<Element>(&self.element, ".chart-tip") else { return };
        tip.set_text_content(Some(&lines.join("\n")));
        let is_late = slot >= self.slots / 2;
        let _ = tip.toggle_attribute_with_force("data-before", is_late);
        // In hundredths of a percent: to format a fraction takes much code.
        let place = u64::from(slot + u32::from(!is_late)) * 10_000 / u64::from(self.slots);
        let place = format!("{}.{:02}%", place / 100, place % 100);
        // The content-security policy allows no style attribute, but this.
        if let Ok(style) = Reflect::get(&tip, &"style".into()) {
            let _ = Reflect::set(&style, &"left".into(), &place.into());
        }
    }

    /// The time of a slot, and the value of each series.
    fn lines(&self, slot: u32) -> Vec<String> {
        let row = usize::try_from(slot).ok().and_then(|slot| self.rows.get(slot));
        let Some(row) = row else { return Vec::new() };
        let text = |cell: &HtmlElement| cell.text_content().unwrap_or_default().trim().to_owned();
        let names = closest(row, "table").map(|table| all_within(&table, "thead th"));
        let cells = all_within(row, "th, td");
        let named = names.unwrap_or_default().into_iter().zip(&cells).enumerate();
        named
            .map(|(at, (name, cell))| match at {
                0 => text(cell),
                _ => format!("{}: {}", text(&name), text(cell)),
            })
            .collect()
    }
}
