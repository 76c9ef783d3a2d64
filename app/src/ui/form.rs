//! What every form has in common: the failure of its action, told where it
//! belongs; that it was saved; its submit button.
//!
//! A form is sent to its server function and answered with a redirect back to
//! its page, whose address says how it went.

use leptos::prelude::*;
use leptos::server::ServerAction;
use leptos_router::hooks::{use_location, use_query_map};
use server_fn::ServerFn;

use super::alert::{Alert, ErrorAlert};
use super::icon::Icon;
use crate::error::UiError;
use crate::local_path;

/// What became of a form when it was sent, whichever action it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    failure: StoredValue<Option<UiError>>,
    done: bool,
}

/// What became of the form of an action.
pub(crate) fn sent<S>(action: ServerAction<S>) -> Sent
where
    S: ServerFn<Error = UiError> + Clone + Send + Sync + 'static,
    S::Output: Send + Sync + 'static,
{
    let failure = action.value().with_untracked(|value| value.as_ref()?.as_ref().err().cloned());
    let told = use_query_map().with_untracked(|query| query.get_str("__done") == Some(S::PATH));
    Sent { done: told && failure.is_none(), failure: StoredValue::new(failure) }
}

impl Sent {
    /// What is wrong with the field of this name.
    pub(crate) fn fault(self, name: &str) -> Option<String> {
        self.failure.with_value(|failure| failure.as_ref()?.at(name).map(str::to_owned))
    }

    /// What became of a form that has no action: filters, samples of the gallery.
    pub(crate) fn sample(failure: Option<UiError>) -> Self {
        Self { done: false, failure: StoredValue::new(failure) }
    }

    /// Whether the form was refused.
    pub(crate) fn failed(self) -> bool {
        self.failure.with_value(Option::is_some)
    }

    /// Whether the page begins at the field of this name: at the one at fault,
    /// else where the form says.
    pub(crate) fn begins_at(self, name: &str, otherwise: bool) -> bool {
        self.failure.with_value(|failure| match failure {
            Some(error) => error.attr() == Some(name),
            None => otherwise && !self.done,
        })
    }
}

/// Where the form is, for the way back.
#[component]
pub(crate) fn Back(
    /// Id of the part of the page that shows what was done.
    #[prop(optional)]
    part: &'static str,
) -> impl IntoView {
    let location = use_location();
    let (path, search) = (location.pathname.get_untracked(), location.search.get_untracked());
    let here = if search.is_empty() { path } else { format!("{path}?{search}") };
    let part =
        (!part.is_empty()).then(|| view! { <input type="hidden" name="back_part" value=part /> });
    view! {
        <input type="hidden" name="back" value=local_path::without_outcome(&here) />
        {part}
    }
}

/// The failure of a form, unless a field shows it.
#[component]
pub(crate) fn FormFailure(
    /// What became of the form.
    sent: Sent,
    /// Fields that show their own faults.
    #[prop(optional)]
    fields: &'static [&'static str],
) -> impl IntoView {
    let error = sent.failure.get_value();
    error
        .filter(|error| error.attr().is_none_or(|attr| !fields.contains(&attr)))
        .map(|error| view! { <ErrorAlert error=error autofocus=true /> })
}

/// The failure of a long form, at its top, with a link to the field at fault.
#[component]
pub(crate) fn Summary(
    /// What became of the form.
    sent: Sent,
    /// Name and label of its fields.
    fields: Vec<(String, String)>,
) -> impl IntoView {
    sent.failure.get_value().map(|error| {
        let at = error.attr().and_then(|attr| fields.into_iter().find(|(name, _)| name == attr));
        match at {
            Some((name, label)) => view! {
                <Alert kind="error">
                    <p><a href=format!("#{name}")>{label}</a> ": " {error.sentence()}</p>
                </Alert>
            }
            .into_any(),
            None => view! { <ErrorAlert error=error autofocus=true /> }.into_any(),
        }
    })
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
) -> impl IntoView {
    let saved = (sent.done && !saved.is_empty()).then(|| {
        view! {
            <span class="saved" role="status">
                <Icon name="check" />
                {saved}
            </span>
        }
    });
    view! {
        <div class="submit">
            // Where the form was sent from is where one goes on.
            <button type="submit" class="button button-primary" data-busy=busy autofocus=saved.is_some()>
                {label}
            </button>
            {saved}
        </div>
    }
}
