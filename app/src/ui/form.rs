//! What every form has in common: the failure of its action, told where it
//! belongs; that it was saved; its submit button.

use leptos::prelude::*;
use leptos::server::ServerAction;
use leptos_router::NavigateOptions;
use leptos_router::hooks::{use_location, use_navigate, use_query_map};
use server_fn::ServerFn;

use super::alert::Alert;
use super::icon::Icon;
use crate::error::UiError;
use crate::local_path;

/// What a form is after being sent, whichever action it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    /// Why the last attempt failed.
    pub(crate) failure: Signal<Option<UiError>>,
    /// Whether the last attempt succeeded.
    pub(crate) done: Signal<bool>,
    /// Whether an answer is awaited.
    pub(crate) pending: Signal<bool>,
}

/// Follows an action.
pub(crate) fn sent<S>(action: ServerAction<S>) -> Sent
where
    S: ServerFn<Error = UiError> + Clone + Send + Sync + 'static,
    S::Output: Send + Sync + 'static,
{
    let value = action.value();
    let pending = action.pending();
    let failure = Signal::derive(move || {
        value.with(|value| value.as_ref().and_then(|result| result.as_ref().err().cloned()))
    });
    // Without scripts the answer is a redirect, which says so in the address.
    let query = use_query_map();
    let told = move || query.with(|query| query.get_str("__done") == Some(S::PATH));
    let done = Signal::derive(move || {
        value.with(|value| value.as_ref().map_or_else(told, Result::is_ok)) && !pending.get()
    });
    follow_failure(failure);
    Sent { failure, done, pending: pending.into() }
}

/// Leads to the sign-in when that is what is missing.
pub(crate) fn follow_failure(failure: Signal<Option<UiError>>) {
    let navigate = use_navigate();
    let location = use_location();
    Effect::new(move |_| {
        let sign_in = match failure.get() {
            Some(UiError::SignIn) => "/login",
            Some(UiError::SignInAgain) => "/login/again",
            _ => return,
        };
        let here = here(&location.pathname.get_untracked(), &location.search.get_untracked());
        let target = format!("{sign_in}?next={}", local_path::encode(&here));
        navigate(&target, NavigateOptions::default());
    });
}

/// The address of the page without what a failed form added to it.
fn here(path: &str, search: &str) -> String {
    let full = if search.is_empty() { path.to_owned() } else { format!("{path}?{search}") };
    local_path::without_failure(&full)
}

/// Where the form is, for the way back without scripts.
#[component]
pub(crate) fn Back() -> impl IntoView {
    let location = use_location();
    let here = here(&location.pathname.get_untracked(), &location.search.get_untracked());
    view! { <input type="hidden" name="back" value=here /> }
}

/// The failure of a form: the sentence, or a link to the field at fault.
#[component]
pub(crate) fn FormFailure(
    /// What became of the form.
    sent: Sent,
    /// Fields that show their own faults.
    #[prop(optional)]
    fields: &'static [&'static str],
) -> impl IntoView {
    move || {
        sent.failure.get().map(|error| match error.attr() {
            Some(attr) if fields.contains(&attr) => {
                let href = format!("#{attr}");
                view! {
                    <Alert kind="error">
                        <p>
                            "This was not saved. "
                            <a href=href rel="external">"Go to the field at fault"</a>
                        </p>
                    </Alert>
                }
                .into_any()
            }
            _ => view! { <super::alert::ErrorAlert error=error /> }.into_any(),
        })
    }
}

/// The submit button, and that the form was saved.
#[component]
pub(crate) fn Submit(
    /// What became of the form.
    sent: Sent,
    /// Verb and object.
    label: &'static str,
    /// The same while an answer is awaited.
    busy: &'static str,
    /// What is shown afterwards.
    #[prop(optional)]
    saved: &'static str,
    /// Class of the button.
    #[prop(default = "button button-primary")]
    class: &'static str,
) -> impl IntoView {
    view! {
        <div class="submit">
            <button type="submit" class=class disabled=move || sent.pending.get()>
                {move || if sent.pending.get() { busy } else { label }}
            </button>
            <span class="saved" role="status">
                {move || (sent.done.get() && !saved.is_empty()).then(|| view! {
                    <Icon name="check" />
                    {saved}
                })}
            </span>
        </div>
    }
}
