//! Shared parts of forms: errors at their fields, the saved message, the submit button.
//!
//! A form is sent to its server function. The answer is a redirect to the page of the
//! form, with the result in the address.

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use server_fn::ServerFn;

use super::alert::{Alert, ErrorAlert};
use super::field::typed_values;
use super::form_action::{FormAction, FormActions};
use super::icon::Icon;
use crate::edits::{FormFingerprints, SEEN, fingerprint};
use crate::error::UiError;
use crate::local_path;

/// The result of a form, independent of the type of its action.
#[derive(Clone, Copy)]
pub(crate) struct FormResult {
    failure: StoredValue<Option<UiError>>,
    done: bool,
    is_kept: bool,
}

/// The result of the form of an action.
pub(crate) fn form_result<S: ServerFn>(_: FormAction<S>) -> FormResult {
    result_of(S::PATH)
}

fn result_of(path: &str) -> FormResult {
    let outcome = use_context::<FormActions>().and_then(|actions| actions.outcome(path));
    let failure = outcome.as_ref().and_then(|outcome| outcome.error.clone());
    FormResult {
        done: outcome.is_some() && failure.is_none(),
        is_kept: typed_values().function() == Some(path) && outcome.is_none(),
        failure: StoredValue::new(failure),
    }
}

impl FormResult {
    /// The error of the field with this name.
    pub(crate) fn field_error(self, name: &str) -> Option<String> {
        self.failure.with_value(|failure| failure.as_ref()?.at(name).map(str::to_owned))
    }

    /// The result of a form without an action: filters, and examples in the gallery.
    pub(crate) fn sample(failure: Option<UiError>) -> Self {
        Self { done: false, is_kept: false, failure: StoredValue::new(failure) }
    }

    /// Whether the error is that of one of these fields.
    fn is_at_one_of(self, names: &[String]) -> bool {
        self.failure.with_value(|failure| {
            let at = failure.as_ref().and_then(UiError::attr);
            at.is_some_and(|at| names.iter().any(|name| name == at))
        })
    }

    /// Whether the form was refused.
    pub(crate) fn failed(self) -> bool {
        self.failure.with_value(Option::is_some)
    }

    /// Whether the form was refused because of too many attempts.
    pub(crate) fn must_wait(self) -> bool {
        self.failure.with_value(|failure| matches!(failure, Some(UiError::Throttled { .. })))
    }

    /// Whether the form shows the typed values again, because it was refused or waited
    /// for a sign-in.
    pub(crate) fn shows_typed_values(self) -> bool {
        self.failed() || self.is_kept
    }

    /// Whether the form was refused because another user or tab saved it in the meantime.
    pub(crate) fn is_changed_elsewhere(self) -> bool {
        self.failure
            .with_value(|failure| failure.as_ref().is_some_and(UiError::is_changed_elsewhere))
    }

    /// Whether the field of this name gets the focus: the invalid field, else the one
    /// that the form chooses.
    pub(crate) fn has_focus(self, name: &str, otherwise: bool) -> bool {
        self.failure.with_value(|failure| match failure {
            Some(error) => error.attr() == Some(name),
            None => otherwise && !self.done,
        })
    }
}

/// Hidden fields with the address of the form, for the redirect back.
#[component]
pub(crate) fn ReturnAddress(
    /// Id of the element that shows the result.
    #[prop(optional, into)]
    part: String,
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

/// A hidden field with fingerprints of the shown values, so that only changed fields are
/// saved (`edits`). Values are in the format of the fields.
#[component]
pub(crate) fn ShownValues(
    result: FormResult,
    /// Names and values of its fields.
    values: Vec<(String, String)>,
) -> impl IntoView {
    // After a conflict the error shows the stored values, so the new fingerprints are
    // those of the stored values.
    let typed = Some(typed_values())
        .filter(|_| result.shows_typed_values() && !result.is_changed_elsewhere());
    let print = |(name, value): &(String, String)| {
        let before = typed.as_ref().and_then(|typed| typed.seen(name)).map(str::to_owned);
        before.unwrap_or_else(|| fingerprint(value))
    };
    let prints: Vec<(&str, String)> =
        values.iter().map(|field| (field.0.as_str(), print(field))).collect();
    view! { <input type="hidden" name=SEEN value=FormFingerprints::write(&prints) /> }
}

/// A note that the form was not saved because the user had to sign in first. The form
/// shows the typed values again.
#[component]
pub(crate) fn KeptNote(result: FormResult) -> impl IntoView {
    result.is_kept.then(|| {
        view! {
            <Alert kind="warning" autofocus=true>
                <p>
                    "This was not saved: a sign-in was needed first. What you entered is in the form again, apart from passwords, other secrets and files. Check it and send it."
                </p>
            </Alert>
        }
    })
}

/// The error of a form, unless a field shows it.
#[component]
pub(crate) fn FormFailure(
    result: FormResult,
    /// Fields that show their own errors.
    #[prop(optional)]
    fields: &'static [&'static str],
) -> impl IntoView {
    let error = result.failure.get_value();
    let error = error
        .filter(|error| error.attr().is_none_or(|attr| !fields.contains(&attr)))
        .map(|error| view! { <ErrorAlert error=error autofocus=true /> });
    view! {
        {error}
        <KeptNote result=result />
    }
}

/// The error of a long form, at its top, with a link to the invalid field.
#[component]
pub(crate) fn Summary(
    result: FormResult,
    /// Name and label of its fields.
    fields: Vec<(String, String)>,
) -> impl IntoView {
    let failure = result.failure.get_value().map(|error| {
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
        <KeptNote result=result />
    }
}

/// The rarely used fields of a form, none of which is required. It is open for the
/// error of one of them.
#[component]
pub(crate) fn Advanced(
    result: FormResult,
    /// The names of its fields.
    fields: Vec<String>,
    children: Children,
) -> impl IntoView {
    let open = result.is_at_one_of(&fields);
    view! {
        <details class="advanced" open=open>
            <summary>"Advanced"</summary>
            {children()}
        </details>
    }
    .into_any()
}

/// The submit button, and the message that the form was saved.
#[component]
pub(crate) fn Submit(
    result: FormResult,
    /// The label: verb and object.
    label: &'static str,
    /// The label while the request runs.
    busy: &'static str,
    /// The message after saving.
    #[prop(optional)]
    saved: &'static str,
) -> impl IntoView {
    let saved = (result.done && !saved.is_empty()).then(|| {
        view! {
            <span class="saved" role="status">
                <Icon name="check" />
                {saved}
            </span>
        }
    });
    view! {
        <div class="submit">
            // Focus the button after saving, so that the user continues at the form.
            <button type="submit" class="button button-primary" data-busy=busy autofocus=saved.is_some()>
                {label}
            </button>
            {saved}
        </div>
    }
}
