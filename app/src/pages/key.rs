//! One personal API key: its scopes, rotation, revocation.

use leptos::prelude::*;
use weir_model::keys::{LABEL_MAX, Overlap};
use weir_model::scopes::Scope;

use super::id_in_path;
use super::key_form::{Held, Presets, ReachFields, ScopeGrid};
use super::keys::{Actions, facts, previous, refused, revoke};
use crate::error::UiError;
use crate::server_fns::key_forms::{KEY, KeyOffer, UpdateKey, get_key_offer};
use crate::server_fns::keys::{KeyView, RotateKey, get_key};
use crate::ui::field::{Choice, Field, Select, Typed, provide_typed_values};
use crate::ui::form::{FormFailure, ReturnAddress, ShownValues, Submit, form_result};
use crate::ui::form_action::{ActionForm, form_action};
use crate::ui::page::{PageHead, page};
use crate::ui::sections::Section;

const TITLE: &str = "API key";

#[component]
pub(crate) fn Key() -> impl IntoView {
    page(TITLE, id_in_path, load, |_, (key, offer)| draw(key, offer))
}

/// One after the other: an unknown key must not ask for a recent sign-in.
async fn load(id: String) -> Result<(KeyView, KeyOffer), UiError> {
    let key = get_key(id).await?;
    Ok((key, get_key_offer().await?))
}

fn draw(key: KeyView, offer: KeyOffer) -> AnyView {
    let actions = Actions::new();
    let ending = revoke(key.id.clone(), key.label.clone(), actions);
    let title = format!("{TITLE} {}", key.label);
    let edited = key.clone();
    view! {
        <PageHead title=title />
        {actions.failures()}
        <section class="card key" aria-label="Usage">
            <p><code class="faint">{key.mask.clone()}</code></p>
            {facts(&key)}
            {previous(&key, actions)}
            {refused(&key, actions)}
        </section>
        <Section id="edit" title="Edit"
            hint="The value and the expiry stay the same. Changes apply immediately.">
            <div data-dirty-guard=""><EditForm key=edited offer=offer /></div>
        </Section>
        <Section id="rotate" title="Rotate"
            hint="The key gets a new value, which is shown once. The old value can stay valid until every script has the new one.">
            <RotateForm key=key />
        </Section>
        <Section id="revoke" title="Revoke" danger=true
            hint="For a key that others have seen, or that no script uses any more.">
            {ending}
        </Section>
        <p><a href="/account/keys">"Back to API keys"</a></p>
    }
    .into_any()
}

#[component]
fn EditForm(key: KeyView, offer: KeyOffer) -> impl IntoView {
    let update = form_action::<UpdateKey>();
    let result = form_result(update);
    // After a conflict the form shows the stored key, not the values of the failed form.
    let shows_stored = result.is_changed_elsewhere();
    if shows_stored {
        provide_typed_values(Typed::default());
    }
    let shows = vec![(KEY.to_owned(), key.edited())];
    let scopes: Vec<Scope> = key.scopes.iter().filter_map(|scope| scope.parse().ok()).collect();
    let preset = if scopes.contains(&Scope::All) { "all" } else { "custom" };
    let held = Held {
        organizations: key.organizations.into_iter().map(|(id, _)| id).collect(),
        projects: key.projects.into_iter().map(|(id, _)| id).collect(),
    };
    view! {
        <ActionForm action=update>
            <FormFailure result=result fields=&["label", "scopes", "reach"] />
            <ShownValues result=result values=shows />
            {shows_stored.then(|| view! { <span hidden data-shows-stored=""></span> })}
            <input type="hidden" name="id" value=key.id />
            <ReturnAddress />
            <Field result=result name="label" label="Label" max=LABEL_MAX value=key.label />
            <Presets result=result preset=preset />
            <ScopeGrid held=scopes />
            <ReachFields result=result offer=offer held=held />
            <Submit result=result label="Save key" busy="Saving key..." saved="Saved" />
        </ActionForm>
    }
}

/// Choices of how long an old value stays valid.
pub(super) fn overlaps() -> Vec<Choice> {
    let label = |overlap: Overlap| match overlap {
        Overlap::None => "It ends immediately",
        Overlap::Hour => "For 1 hour",
        Overlap::Day => "For 24 hours",
        Overlap::Week => "For 7 days",
    };
    Overlap::ALL.into_iter().map(|overlap| Choice::new(overlap.word(), label(overlap))).collect()
}

#[component]
fn RotateForm(key: KeyView) -> impl IntoView {
    let rotate = form_action::<RotateKey>();
    let result = form_result(rotate);
    let ends = key.previous.is_some().then(|| {
        view! {
            <p class="hint">
                "The previous old value ends then: only one old value works at a time."
            </p>
        }
    });
    view! {
        <ActionForm action=rotate>
            <FormFailure result=result fields=&["overlap"] />
            <input type="hidden" name="id" value=key.id />
            <ReturnAddress />
            <Select result=result name="overlap" label="The old value works" choices=overlaps()
                value=Overlap::Day.word() />
            {ends}
            <Submit result=result label="Rotate key" busy="Rotating key..." />
        </ActionForm>
    }
}
