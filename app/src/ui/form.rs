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
use super::field::Typed;
use super::icon::Icon;
use crate::edits::{CHANGED_ELSEWHERE, SEEN, Seen, fingerprint};
use crate::error::UiError;
use crate::local_path;

/// What became of a form when it was sent, whichever action it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    failure: StoredValue<Option<UiError>>,
    done: bool,
    is_kept: bool,
}

/// What became of the form of an action.
pub(crate) fn sent<S>(action: ServerAction<S>) -> Sent
where
    S: ServerFn<Error = UiError> + Clone + Send + Sync + 'static,
    S::Output: Send + Sync + 'static,
{
    let failure = action.value().with_untracked(|value| value.as_ref()?.as_ref().err().cloned());
    let told = use_query_map().with_untracked(|query| query.get_str("__done") == Some(S::PATH));
    let typed = use_context::<Typed>();
    let is_ours = typed.is_some_and(|typed| typed.function() == Some(S::PATH));
    Sent {
        done: told && failure.is_none(),
        is_kept: is_ours && failure.is_none(),
        failure: StoredValue::new(failure),
    }
}

impl Sent {
    /// What is wrong with the field of this name.
    pub(crate) fn fault(self, name: &str) -> Option<String> {
        self.failure.with_value(|failure| failure.as_ref()?.at(name).map(str::to_owned))
    }

    /// What became of a form that has no action: filters, samples of the gallery.
    pub(crate) fn sample(failure: Option<UiError>) -> Self {
        Self { done: false, is_kept: false, failure: StoredValue::new(failure) }
    }

    /// Whether the form was refused.
    pub(crate) fn failed(self) -> bool {
        self.failure.with_value(Option::is_some)
    }

    /// Whether the form was refused because of too many tries.
    pub(crate) fn must_wait(self) -> bool {
        self.failure.with_value(|failure| matches!(failure, Some(UiError::Throttled { .. })))
    }

    /// Whether the form shows again what was entered: it was refused, or waited for a
    /// sign-in.
    pub(crate) fn is_back(self) -> bool {
        self.failed() || self.is_kept
    }

    /// Whether the form was refused because another person or tab saved it meanwhile.
    pub(crate) fn is_changed_elsewhere(self) -> bool {
        self.failure.with_value(|failure| match failure {
            Some(UiError::Field(fault)) => fault.code == CHANGED_ELSEWHERE,
            _ => false,
        })
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

/// What the form shows, so that saving it changes only what is changed in it
/// (`edits`). Values are as the fields have them.
#[component]
pub(crate) fn Shows(
    /// What became of the form.
    sent: Sent,
    /// Names and values of its fields.
    values: Vec<(String, String)>,
) -> impl IntoView {
    // What somebody else saved is shown by the refusal, and known from then on.
    let typed = use_context::<Typed>().filter(|_| sent.is_back() && !sent.is_changed_elsewhere());
    let print = |(name, value): &(String, String)| {
        let before = typed.as_ref().and_then(|typed| typed.seen(name)).map(str::to_owned);
        before.unwrap_or_else(|| fingerprint(value))
    };
    let prints: Vec<(&str, String)> =
        values.iter().map(|field| (field.0.as_str(), print(field))).collect();
    view! { <input type="hidden" name=SEEN value=Seen::write(&prints) /> }
}

/// That a form was not saved for want of a sign-in, where it shows what was entered.
#[component]
pub(crate) fn KeptNote(
    /// What became of the form.
    sent: Sent,
) -> impl IntoView {
    sent.is_kept.then(|| {
        view! {
            <Alert kind="warning" autofocus=true>
                <p>
                    "This was not saved: a sign-in was needed first. What you entered is in the form again, apart from passwords, other secrets and files. Check it and send it."
                </p>
            </Alert>
        }
    })
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
    let error = error
        .filter(|error| error.attr().is_none_or(|attr| !fields.contains(&attr)))
        .map(|error| view! { <ErrorAlert error=error autofocus=true /> });
    view! {
        {error}
        <KeptNote sent=sent />
    }
}

/// The failure of a long form, at its top, with a link to the field at fault.
#[component]
pub(crate) fn Summary(
    /// What became of the form.
    sent: Sent,
    /// Name and label of its fields.
    fields: Vec<(String, String)>,
) -> impl IntoView {
    let failure = sent.failure.get_value().map(|error| {
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
    });
    view! {
        {failure}
        <KeptNote sent=sent />
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
