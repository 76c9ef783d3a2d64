//! Waits for the browser to paint, so that it shows the answer to an input, or the beginning of
//! a page, before more is drawn.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures::channel::oneshot::{Sender, channel};
use leptos::prelude::*;

/// How long a key that is down delays what waits. Its release can be lost: to another window.
const HELD: Duration = Duration::from_millis(200);

thread_local! {
    /// Whether the browser has still to paint what the last input changed.
    static IS_DUE: Cell<bool> = const { Cell::new(false) };
    /// Whether a key is down: its release is the second half of the input.
    static IS_HELD: Cell<bool> = const { Cell::new(false) };
    /// What waits for it.
    static WAITING: RefCell<Vec<Sender<()>>> = const { RefCell::new(Vec::new()) };
}

/// Starts to follow inputs that can change a page.
pub(crate) fn start() {
    for event in ["keydown", "keyup", "click"] {
        let _forever = window_event_listener_untyped(event, move |_| {
            if event != "click" {
                IS_HELD.set(event == "keydown" && !document().hidden());
            }
            if !document().hidden() && !IS_DUE.replace(true) {
                after_paint(|| {
                    IS_DUE.set(false);
                    release();
                    if IS_HELD.get() {
                        set_timeout(
                            || {
                                IS_HELD.set(false);
                                release();
                            },
                            HELD,
                        );
                    }
                });
            }
        });
    }
}

/// Waits until the browser has painted what the last input changed.
pub(crate) async fn painted() {
    if is_due() {
        let (sender, receiver) = channel();
        WAITING.with_borrow_mut(|waiting| waiting.push(sender));
        let _ = receiver.await;
    }
}

fn is_due() -> bool {
    IS_DUE.get() || IS_HELD.get()
}

fn release() {
    if !is_due() {
        for waiting in WAITING.take() {
            // What waited can be gone.
            let _ = waiting.send(());
        }
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
