//! Fields for secrets. Secrets are sent and never shown again.

use leptos::prelude::*;

use super::{FieldFrame, Ties};
use crate::form_names::SECRET_MARK;
use crate::ui::form::FormResult;
use crate::ui::time::to_the_minute;

/// A field for a secret. If it is left empty, the stored secret stays.
#[component]
pub(crate) fn SecretField(
    result: FormResult,
    #[prop(into)] name: String,
    #[prop(into)] label: String,
    #[prop(into, optional)] hint: String,
    /// Time at which the secret was set, in RFC 3339. Empty if unknown. `None`: there is
    /// no secret.
    #[prop(into, optional)]
    set: Option<String>,
    /// Whether a value is required while no secret is set.
    #[prop(optional)]
    required: bool,
) -> impl IntoView {
    let required = required && set.is_none();
    let ties = Ties::new(name.clone(), secret_hint(hint, set.as_deref()), result);
    let autofocus = result.has_focus(&name, false);
    let mark = format!("{SECRET_MARK}{name}");
    let what = format!(" {label}");
    view! {
        <FieldFrame ties=ties.clone() label=label>
            <div class="with-button">
                <input
                    id=name.clone()
                    name=name.clone()
                    type="password"
                    required=required
                    maxlength="20000"
                    autocomplete="off"
                    autocapitalize="off"
                    autofocus=autofocus
                    spellcheck="false"
                    aria-describedby=ties.described_by()
                    aria-invalid=ties.invalid()
                />
                <button
                    type="button"
                    class="button needs-scripts"
                    aria-pressed="false"
                    aria-controls=name
                    data-shows=""
                >
                    "Show"
                    <span class="hidden">{what}</span>
                </button>
            </div>
            <input type="hidden" name=mark />
        </FieldFrame>
    }
}

fn secret_hint(hint: String, set: Option<&str>) -> String {
    let state = match set {
        None => return hint,
        Some("") => "One is set. Leave this empty to keep it.".to_owned(),
        Some(since) => {
            format!("Set since {}. Leave this empty to keep it.", to_the_minute(since, false))
        }
    };
    if hint.is_empty() { state } else { format!("{hint} {state}") }
}

#[cfg(test)]
mod tests {
    use super::secret_hint;

    #[test]
    fn hints_of_secrets_say_that_one_is_set() {
        let hint = |set| secret_hint("For the bucket.".to_owned(), set);
        assert_eq!(hint(None), "For the bucket.");
        assert_eq!(hint(Some("")), "For the bucket. One is set. Leave this empty to keep it.");
        assert_eq!(
            secret_hint(String::new(), Some("2026-08-21T14:05:09Z")),
            "Set since 2026-08-21 14:05 UTC. Leave this empty to keep it."
        );
    }
}
