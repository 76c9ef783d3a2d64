//! The forms of a page that call server functions, and their outcomes. Outcomes live as long
//! as the page, so a new drawing of the page keeps them.

use std::marker::PhantomData;

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use server_fn::ServerFn;

use crate::error::UiError;
use crate::form_names::{DONE, ERROR, FAILED};

/// The outcome of the last form.
#[derive(Debug, Clone)]
pub(crate) struct FormOutcome {
    /// Path of the server function of the form.
    pub(crate) function: String,
    /// The error, if it failed.
    pub(crate) error: Option<UiError>,
}

/// The actions of one page.
#[derive(Clone)]
pub(crate) struct FormActions {
    outcome: ArcStoredValue<Option<FormOutcome>>,
    loads: ArcRwSignal<u64>,
    /// Updates without an action of the user that failed since the last one that worked.
    failed_updates: ArcRwSignal<u32>,
}

/// Number of changes that can show in the frame around the pages, such as the name of a
/// project.
#[derive(Clone, Copy)]
pub(crate) struct FrameChanges(RwSignal<u64>);

impl FrameChanges {
    /// Starts to count.
    pub(crate) fn provide() -> Self {
        let changes = Self(RwSignal::new(0));
        provide_context(changes);
        changes
    }

    /// The number. Tracked.
    pub(crate) fn get(self) -> u64 {
        self.0.try_get().unwrap_or_default()
    }

    /// Counts a change.
    #[cfg(not(feature = "ssr"))]
    pub(crate) fn count(self) {
        // The frame can be gone.
        let _ = self.0.try_update(|changes| *changes += 1);
    }
}

impl FormActions {
    /// Makes the actions available to the forms of a page. The first outcome is the one in
    /// the address, from a form that was sent without scripts.
    pub(crate) fn provide() -> Self {
        let query = use_query_map();
        let outcome = query.with_untracked(|query| {
            if let Some(function) = query.get(FAILED) {
                let error = query.get(ERROR).map(|error| UiError::from_query(&error));
                return Some(FormOutcome { function, error });
            }
            query.get(DONE).map(|function| FormOutcome { function, error: None })
        });
        let actions = Self::new(outcome);
        provide_context(actions.clone());
        #[cfg(not(feature = "ssr"))]
        CURRENT.set(Some(actions.clone()));
        actions
    }

    /// Makes actions available to the forms of the frame, which lead to another page.
    pub(crate) fn provide_for_frame() {
        provide_context(Self::new(None));
    }

    fn new(outcome: Option<FormOutcome>) -> Self {
        Self {
            outcome: ArcStoredValue::new(outcome),
            loads: ArcRwSignal::new(0),
            failed_updates: ArcRwSignal::new(0),
        }
    }

    /// How often the data of the page was loaded again. Tracked.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.get()
    }

    /// Loads the data of the page again.
    #[cfg(not(feature = "ssr"))]
    pub(crate) fn load_again(&self) {
        self.loads.update(|loads| *loads += 1);
    }

    /// Updates that failed since the last one that worked.
    pub(crate) fn failed_updates(&self) -> u32 {
        self.failed_updates.get_untracked()
    }

    /// Notes whether an update worked.
    #[cfg(not(feature = "ssr"))]
    pub(crate) fn note_update(&self, worked: bool) {
        self.failed_updates
            .update_untracked(|failed| *failed = if worked { 0 } else { *failed + 1 });
    }

    /// The outcome of the last form of this server function.
    pub(crate) fn outcome(&self, function: &str) -> Option<FormOutcome> {
        self.outcome.with_value(|outcome| {
            outcome.as_ref().filter(|outcome| outcome.function == function).cloned()
        })
    }

    /// Records the outcome of a form in the browser: shows it, and loads what the form can
    /// have changed.
    #[cfg(not(feature = "ssr"))]
    pub(crate) fn record(&self, function: &str, error: Option<UiError>) {
        use crate::client::{cache, navigation, redraw};

        if navigation::take_redirected() {
            // The next page shows what the form did.
            return;
        }
        if matches!(error, Some(UiError::SignIn | UiError::SignInAgain)) {
            // The server keeps a form that it receives from the browser until the sign-in.
            crate::client::post::send_by_browser();
            return;
        }
        redraw::form_ended(error.is_none());
        if error.is_none() {
            cache::clear();
            navigation::count_change();
        }
        crate::ui::notice::show_next();
        self.outcome.set_value(Some(FormOutcome { function: function.to_owned(), error }));
        // Draws the outcome with newer data. A refusal too can show something new: what
        // another tab saved, how many attempts are left.
        self.load_again();
    }
}

#[cfg(not(feature = "ssr"))]
thread_local! {
    static CURRENT: std::cell::RefCell<Option<FormActions>> =
        const { std::cell::RefCell::new(None) };
}

/// The actions of the page that is shown.
#[cfg(not(feature = "ssr"))]
pub(crate) fn of_shown_page() -> Option<FormActions> {
    CURRENT.with_borrow(Clone::clone)
}

/// Whether the last form of the page failed.
pub(crate) fn has_failed_form() -> bool {
    let actions = use_context::<FormActions>();
    actions.is_some_and(|actions| {
        actions.outcome.with_value(|outcome| outcome.as_ref().is_some_and(|it| it.error.is_some()))
    })
}

/// The call of a server function by forms of a page. It names the function only: what the
/// function takes need not be compiled for the browser.
pub(crate) struct FormAction<S>(PhantomData<fn() -> S>);

impl<S> Clone for FormAction<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for FormAction<S> {}

/// The action of the forms of a server function.
pub(crate) fn form_action<S: ServerFn>() -> FormAction<S> {
    FormAction(PhantomData)
}

/// A form that is sent to a server function: with scripts without a new document
/// (`client::post`), else by the browser.
#[component]
pub(crate) fn ActionForm<S: ServerFn + 'static>(
    /// What the form calls.
    action: FormAction<S>,
    /// The fields and buttons.
    children: Children,
) -> impl IntoView {
    let FormAction(_) = action;
    form_to(S::PATH, children)
}

fn form_to(path: &'static str, children: Children) -> AnyView {
    view! { <form method="post" action=path>{children()}</form> }.into_any()
}
