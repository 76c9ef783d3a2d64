//! One's own account: name, theme, signing out.

use leptos::prelude::*;

use crate::frame::ViewerData;
use crate::server_fns::account::{ChooseTheme, RenameAccount, Viewer, get_viewer};
use crate::server_fns::identity::SignOut;
use crate::theme::Theme;
use crate::ui::field::Field;
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page_head::PageHead;
use crate::ui::panel::Panel;

/// The account.
#[component]
pub(crate) fn Account() -> impl IntoView {
    let data = Resource::new(|| (), |()| get_viewer());
    view! {
        <PageHead title=Signal::stored("Account".to_owned()) />
        <Panel data=data view=|viewer| view! { <AccountForms viewer=viewer /> }.into_any() />
    }
    .into_any()
}

#[component]
fn AccountForms(viewer: Viewer) -> impl IntoView {
    let sign_out = ServerAction::<SignOut>::new();
    view! {
        <section class="card" aria-labelledby="you">
            <h2 id="you">"You"</h2>
            <NameForm name=viewer.name email=viewer.email />
        </section>
        <section class="card" aria-labelledby="look">
            <h2 id="look">"Appearance"</h2>
            <ThemeForm theme=viewer.theme />
        </section>
        <section class="card" aria-labelledby="session">
            <h2 id="session">"Session"</h2>
            <p class="hint">"Signing out ends the session of this browser. API keys go on working."</p>
            <ActionForm action=sign_out>
                <button type="submit" class="button">"Sign out"</button>
            </ActionForm>
        </section>
    }
}

#[component]
fn NameForm(name: String, email: String) -> impl IntoView {
    let rename = ServerAction::<RenameAccount>::new();
    let sent = sent(rename);
    refresh_frame(sent.done);
    view! {
        <ActionForm action=rename>
            <FormFailure sent=sent fields=&["first_name"] />
            <Back />
            <Field sent=sent name="first_name" label="First name" autocomplete="given-name" max=150 value=name />
            <dl class="facts">
                <dt>"E-mail address"</dt>
                <dd>{email}</dd>
            </dl>
            <Submit sent=sent label="Save name" busy="Saving name..." saved="Saved" />
        </ActionForm>
    }
}

#[component]
fn ThemeForm(theme: Theme) -> impl IntoView {
    let choose = ServerAction::<ChooseTheme>::new();
    let sent = sent(choose);
    // The page that is open follows at once; the next one comes with it.
    Effect::new(move |_| {
        if let Some(Ok(theme)) = choose.value().get()
            && let Some(page) = document().document_element()
        {
            let _ = page.set_attribute("data-theme", theme.word());
        }
    });
    let choices = Theme::ALL
        .into_iter()
        .map(|choice| {
            view! {
                <label class="choice">
                    <input type="radio" name="theme" value=choice.word() checked=choice == theme />
                    {choice.label()}
                </label>
            }
        })
        .collect_view();
    view! {
        <ActionForm action=choose>
            <FormFailure sent=sent />
            <Back />
            <fieldset class="choices">
                <legend>"Theme"</legend>
                {choices}
            </fieldset>
            <Submit sent=sent label="Save theme" busy="Saving theme..." saved="Saved" />
        </ActionForm>
    }
}

/// Fetches the navigation anew when something that it shows was changed.
pub(crate) fn refresh_frame(done: Signal<bool>) {
    let frame = use_context::<ViewerData>();
    Effect::new(move |before: Option<bool>| {
        let now = done.get();
        if let (Some(frame), Some(false), true) = (frame, before, now) {
            frame.0.refetch();
        }
        now
    });
}
