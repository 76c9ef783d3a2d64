//! One's own account: name, theme, signing out.

use leptos::prelude::*;

use crate::server_fns::account::{ChooseTheme, RenameAccount, get_viewer};
use crate::server_fns::identity::SignOut;
use crate::theme::Theme;
use crate::ui::field::Field;
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page::{PageHead, page};

/// The account.
#[component]
pub(crate) fn Account() -> impl IntoView {
    let sign_out = ServerAction::<SignOut>::new();
    page("Account", async move {
        let viewer = get_viewer().await?;
        Ok(view! {
            <PageHead title="Account" />
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
                    <div class="submit">
                        <button type="submit" class="button" data-busy="Signing out...">"Sign out"</button>
                    </div>
                </ActionForm>
            </section>
        }
        .into_any())
    })
}

#[component]
fn NameForm(name: String, email: String) -> impl IntoView {
    let rename = ServerAction::<RenameAccount>::new();
    let sent = sent(rename);
    view! {
        <ActionForm action=rename>
            <FormFailure sent=sent fields=&["first_name"] />
            <Back />
            <Field sent=sent name="first_name" label="First name" autocomplete="given-name" max=150 value=name />
            <dl class="facts">
                <dt>"E-mail address"</dt>
                <dd class="wrap">{email}</dd>
            </dl>
            <Submit sent=sent label="Save name" busy="Saving name..." saved="Saved" />
        </ActionForm>
    }
}

#[component]
fn ThemeForm(theme: Theme) -> impl IntoView {
    let choose = ServerAction::<ChooseTheme>::new();
    let sent = sent(choose);
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
