//! Waits for the browser to paint, so that it shows the answer to an input, or the beginning of
//! a page, before more is drawn.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures::channel::oneshot::{Sender, channel};
use leptos::prelude::*;

thread_local! {
    /// Whether the browser has still to paint what the last input changed.
    static IS_DUE: Cell<bool> = const { Cell::new(false) };
    /// What waits for it.
    static WAITING: RefCell<Vec<Sender<()>>> = const { RefCell::new(Vec::new()) };
}

/// Starts to follow inputs that can change a page.
pub(crate) fn start() {
    for event in ["keydown", "click"] {
        let _forever = window_event_listener_untyped(event, |_| {
            if !document().hidden() && !IS_DUE.replace(true) {
                after_paint(|| {
                    IS_DUE.set(false);
                    for waiting in WAITING.take() {
                        // What waited can be gone.
                        let _ = waiting.send(());
                    }
                });
            }
        });
    }
}

/// Waits until the browser has painted what the last input changed.
pub(crate) async fn painted() {
    if IS_DUE.get() {
        let (sender, receiver) = channel();
        WAITING.with_borrow_mut(|waiting| waiting.push(sender));
        let _ = receiver.await;
    }
}

/// Acts after what is drawn now was painted, and after inputs that came meanwhile.
pub(crate) fn later(act: impl FnOnce() + 'static) {
    after_paint(move || after_paint(act));
}

/// Acts after the next frame.
fn after_paint(act: impl FnOnce() + 'static) {
    request_animation_frame(move || set_timeout(act, Duration::ZERO));
}
