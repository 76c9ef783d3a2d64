//! Changes of the page in the browser: redirects of server functions, filters, scroll
//! position, and focus.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

#[cfg(feature = "hydrate")]
use js_sys::Reflect;
use leptos::prelude::*;
use leptos::server_fn::redirect::set_redirect_hook;
use leptos::wasm_bindgen::JsCast as _;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate};
use web_sys::{HtmlDialogElement, HtmlElement, ScrollRestoration};

use super::{ahead, cache, redraw};
use crate::behaviours::{busy, palette};
use crate::error::UiError;
use crate::form_names::KEPT;
use crate::local_path::{encode, to_open_later, without_outcome};
use crate::ui::form_action::FrameChanges;

/// Number of pages whose scroll position is kept.
const POSITIONS: usize = 100;

type Navigate = Rc<dyn Fn(&str, bool)>;

thread_local! {
    static NAVIGATE: RefCell<Option<Navigate>> = const { RefCell::new(None) };
    static FRAME: Cell<Option<FrameChanges>> = const { Cell::new(None) };
    /// Whether the answer that is being read redirects to another page.
    static REDIRECTED: Cell<bool> = const { Cell::new(false) };
    /// The address that is being opened.
    static NEXT: RefCell<Option<String>> = const { RefCell::new(None) };
    static POSITION_OF: RefCell<HashMap<String, f64>> = RefCell::new(HashMap::new());
    /// What happens to scroll position and focus when the next page is drawn.
    static ARRIVAL: Cell<Arrival> = const { Cell::new(Arrival::Same) };
    /// The path of the page that is being opened.
    static TO: RefCell<String> = const { RefCell::new(String::new()) };
}

/// How a page was reached.
#[derive(Clone, Copy, PartialEq)]
enum Arrival {
    /// The page was drawn again.
    Same,
    /// By a link or redirect.
    Forward,
    /// By the history, to this scroll position.
    History(f64),
}

/// Starts. Call it before the router starts, so that redirects come here.
pub fn prepare() {
    // The hook is set once for the lifetime of the document.
    let _ = set_redirect_hook(redirect);
    if let Ok(history) = window().history() {
        let _ = history.set_scroll_restoration(ScrollRestoration::Manual);
    }
    // The router has not changed the address yet.
    let _forever = window_event_listener_untyped("popstate", |_| {
        ARRIVAL.set(Arrival::History(position_at(&here())));
    });
}

/// Whether the document is the one at the address. Before the app is started, the history can
/// change the address without loading the document.
#[cfg(feature = "hydrate")]
pub(crate) fn shows_document_of_address() -> bool {
    let loads = window().performance().map(|times| times.get_entries_by_type("navigation"));
    let address = loads.and_then(|loads| Reflect::get(&loads.get(0), &"name".into()).ok());
    let address = address.and_then(|address| address.as_string());
    let without_fragment = |address: &str| address.split('#').next().map(str::to_owned);
    match (address, window().location().href()) {
        (Some(document), Ok(now)) => without_fragment(&document) == without_fragment(&now),
        _ => true,
    }
}

/// Connects navigation with the router. Call it inside of the router.
pub(crate) fn connect() {
    ahead::connect();
    let navigate = use_navigate();
    NAVIGATE.set(Some(Rc::new(move |path: &str, replace| {
        let options = NavigateOptions { replace, scroll: false, ..NavigateOptions::default() };
        navigate(path, options);
    })));
    let location = use_location();
    let (path, search) = (location.pathname, location.search);
    Effect::new(move |before: Option<()>| {
        let query = search.get();
        let sign = if query.is_empty() { "" } else { "?" };
        NEXT.set(Some(path.get() + sign + &query));
        if before.is_some() {
            redraw::address_changed();
            close_overlays();
        }
    });
    Effect::new(move |before: Option<String>| {
        let now = path.get();
        if let Some(before) = before
            && before != now
        {
            if ARRIVAL.get() == Arrival::Same {
                ARRIVAL.set(Arrival::Forward);
            }
            TO.set(now.clone());
        }
        now
    });
    let _forever = window_event_listener_untyped("scroll", |_| {
        if ARRIVAL.get() == Arrival::Same {
            keep_position();
        }
    });
}

/// Counts the changes that can show in the frame.
pub(crate) fn follow_frame(changes: FrameChanges) {
    FRAME.set(Some(changes));
}

/// A form changed something that can show in the frame.
pub(crate) fn count_change() {
    if let Some(frame) = FRAME.get() {
        frame.count();
    }
}

/// Opens a page of the app.
pub(crate) fn go_to(path: &str) {
    open(path, false);
}

/// Opens a page of the app in place of the current one in the history.
pub(crate) fn replace_by(path: &str) {
    open(path, true);
}

fn open(path: &str, replace: bool) {
    let navigate = NAVIGATE.with_borrow(Clone::clone);
    match navigate {
        Some(navigate) => navigate(path, replace),
        None => {
            let _ = window().location().assign(path);
        }
    }
}

/// Follows the redirect of a server function. A redirect to the page itself only loads its
/// data again.
pub(crate) fn redirect(to: &str) {
    cache::clear();
    let path = crate::local_path::path_of(to);
    if without_outcome(path) == without_outcome(&here()) {
        return;
    }
    REDIRECTED.set(true);
    if path.contains(&format!("{KEPT}=")) {
        // The document has what was typed before the sign-in.
        let _ = window().location().assign(path);
        return;
    }
    if !path.starts_with("/login") {
        count_change();
    }
    // A redirect while a page loads replaces that page.
    let by_form = document().query_selector("form[aria-busy]").ok().flatten().is_some();
    open(path, !by_form);
}

/// Leads to the sign-in if the data of a page needs one, and back to the page.
pub(crate) fn sign_in_for(error: &UiError) {
    let page = match error {
        UiError::SignIn => "/login",
        UiError::SignInAgain => "/login/again",
        _ => return,
    };
    replace_by(&format!("{page}?next={}", encode(&to_open_later(&opening()))));
}

/// Path and query of the page that is being opened, or that is open.
pub(crate) fn opening() -> String {
    NEXT.with_borrow(Clone::clone).unwrap_or_else(here)
}

/// Whether the page is being opened by the history.
pub(crate) fn is_back() -> bool {
    matches!(ARRIVAL.get(), Arrival::History(_))
}

/// Whether a link or redirect leads to the page that is drawn: it is shown from its beginning.
pub(crate) fn is_arriving() -> bool {
    let is_part = window().location().hash().is_ok_and(|hash| !hash.is_empty());
    ARRIVAL.get() == Arrival::Forward && !is_part
}

/// Whether the last answer redirected to another page.
pub(crate) fn take_redirected() -> bool {
    REDIRECTED.take()
}

/// Path and query of the document.
pub(crate) fn here() -> String {
    let location = window().location();
    let path = location.pathname().unwrap_or_default();
    path + &location.search().unwrap_or_default()
}

fn position_at(address: &str) -> f64 {
    POSITION_OF.with_borrow(|positions| positions.get(address).copied().unwrap_or_default())
}

fn keep_position() {
    let position = window().scroll_y().unwrap_or_default();
    POSITION_OF.with_borrow_mut(|positions| {
        if positions.len() >= POSITIONS {
            positions.clear();
        }
        positions.insert(here(), position);
    });
}

/// After the page of this path was drawn: scrolls, and moves the focus from the link of the
/// page before to the content.
pub(crate) fn arrive(at: &str) {
    if TO.with_borrow(|to| to != at) {
        return;
    }
    let arrival = ARRIVAL.replace(Arrival::Same);
    let to = match arrival {
        Arrival::Same => return,
        Arrival::Forward => 0.0,
        Arrival::History(position) => position,
    };
    busy::again();
    crate::ui::notice::show_next();
    let fragment = window().location().hash().unwrap_or_default();
    let target = fragment.strip_prefix('#').and_then(|id| document().get_element_by_id(id));
    match target {
        Some(target) if arrival == Arrival::Forward => target.scroll_into_view(),
        _ => window().scroll_to_with_x_and_y(0.0, to),
    }
    if let Some(main) = document().get_element_by_id("main")
        && let Ok(main) = main.dyn_into::<HtmlElement>()
    {
        let options = web_sys::FocusOptions::new();
        options.set_prevent_scroll(true);
        let _ = main.focus_with_options(&options);
    }
}

/// Menus and dialogs close when another page is opened.
fn close_overlays() {
    let Ok(open) = document().query_selector_all("dialog[open]") else { return };
    for at in 0..open.length() {
        let dialog = open.get(at).and_then(|dialog| dialog.dyn_into::<HtmlDialogElement>().ok());
        if let Some(dialog) = dialog {
            dialog.close();
        }
    }
    let Ok(open) = document().query_selector_all("details.menu[open]") else { return };
    for at in 0..open.length() {
        if let Some(menu) = open.get(at).and_then(|menu| menu.dyn_into::<web_sys::Element>().ok()) {
            let _ = menu.remove_attribute("open");
        }
    }
    let Ok(open) = document().query_selector_all("[popover]:popover-open") else { return };
    for at in 0..open.length() {
        if let Some(open) = open.get(at).and_then(|open| open.dyn_into::<HtmlElement>().ok()) {
            let _ = open.hide_popover();
        }
    }
    // The dialog can be gone already, and only its closing would say so.
    palette::set_inert(false);
}
