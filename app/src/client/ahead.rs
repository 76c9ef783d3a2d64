//! The data of the page that is opened next. Its requests are sent when a link to it is
//! pressed, at the latest before the previous page is taken down, so that waiting for the
//! answers and taking down happen at the same time.
//!
//! The code of a page runs twice: first it only reads the address and starts to load
//! ([`request`]), then it draws, with the data of this request ([`take`]).

use std::cell::{Cell, RefCell};

use futures::channel::oneshot::{Receiver, channel};
use leptos::prelude::*;
use leptos::reactive::computed::{ArcMemo, ScopedFuture};
use leptos::task::spawn_local;
use leptos_router::location::{BrowserUrl, LocationProvider as _};
use leptos_router::params::ParamsMap;

use crate::error::UiError;
use crate::ui::page_data::PageData;

/// How long data can wait for its page, in milliseconds.
const LIFETIME: f64 = 5_000.0;

/// The result of loading.
type Loaded = Result<PageData, UiError>;

/// Data that loads.
struct Next {
    address: String,
    since: f64,
    data: Receiver<Loaded>,
}

thread_local! {
    /// Whether the code of a page runs to start loading.
    static IS_REQUEST: Cell<bool> = const { Cell::new(false) };
    /// The data of the next page. There is one, so that links that are not followed cannot pile
    /// up answers.
    static NEXT: RefCell<Option<Next>> = const { RefCell::new(None) };
    /// Where the router is, for the code of a page that is not opened yet.
    static ROUTER: RefCell<Option<Owner>> = const { RefCell::new(None) };
    /// The number of pages whose data loads.
    static UNDERWAY: Cell<u32> = const { Cell::new(0) };
}

/// Call it inside of the router.
pub(crate) fn connect() {
    ROUTER.set(Owner::current());
}

/// Starts to load the data of a page whose link is pressed. `request` runs its code. One page
/// at a time: on a phone, scrolling begins with a press too.
pub(crate) async fn at<F>(address: &str, parameters: ParamsMap, request: impl FnOnce() -> F)
where
    F: Future<Output = ()> + 'static,
{
    let owner = ROUTER.with_borrow(|router| router.as_ref().map(Owner::child));
    if let Some(owner) = owner
        && let Ok(url) = BrowserUrl::parse(address)
        && UNDERWAY.get() == 0
    {
        let requested = owner.with(|| {
            provide_context(ArcRwSignal::new(url));
            provide_context(ArcMemo::new(move |_| parameters.clone()));
            ScopedFuture::new_untracked(request())
        });
        requested.await;
    }
}

/// Runs the code of a page to start loading its data.
pub(crate) fn request<T>(page: impl FnOnce() -> T) -> T {
    IS_REQUEST.set(true);
    let made = page();
    IS_REQUEST.set(false);
    made
}

/// Whether the page that asks should only start to load.
pub(crate) fn is_request() -> bool {
    IS_REQUEST.get()
}

/// Loads the data of the page at an address, unless it loads already.
pub(crate) fn load<F>(address: String, loading: impl FnOnce() -> F)
where
    F: Future<Output = Loaded> + 'static,
{
    if NEXT.with_borrow(|next| next.as_ref().is_some_and(|next| next.is_for(&address))) {
        return;
    }
    let (sender, data) = channel();
    NEXT.set(Some(Next { address, since: now(), data }));
    // What it reads from the address is that of the next page.
    let loading = ScopedFuture::new_untracked(loading());
    UNDERWAY.set(UNDERWAY.get() + 1);
    spawn_local(async move {
        let loaded = loading.await;
        UNDERWAY.set(UNDERWAY.get().saturating_sub(1));
        // Another page can have been opened.
        let _ = sender.send(loaded);
    });
}

/// The data that loads for the page at an address.
pub(crate) fn take(address: &str) -> Option<Receiver<Loaded>> {
    let next = NEXT.take()?;
    next.is_for(address).then_some(next.data)
}

/// Forgets what was requested before a change.
pub(crate) fn clear() {
    NEXT.set(None);
}

impl Next {
    /// Whether it is that of this page, and new enough.
    fn is_for(&self, address: &str) -> bool {
        self.address == address && now() - self.since < LIFETIME
    }
}

fn now() -> f64 {
    js_sys::Date::now()
}
