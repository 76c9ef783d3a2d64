//! One's own account: name, address, theme, signing out.

use leptos::prelude::*;

use crate::server_fns::account::{
    ChangeAddress, ChooseTheme, RenameAccount, get_address, get_viewer,
};
use crate::server_fns::identity::SignOut;
use crate::server_fns::links::AskConfirmation;
use crate::theme::Theme;
use crate::ui::alert::Alert;
use crate::ui::field::Field;
use crate::ui::form::{Back, FormFailure, Submit, sent};
use crate::ui::page::{PageHead, page};

/// The account.
#[component]
pub(crate) fn Account() -> impl IntoView {
    let sign_out = ServerAction::<SignOut>::new();
    page("Account", async move {
        let viewer = get_viewer().await?;
        let address = get_address().await?;
        Ok(view! {
            <PageHead title="Account" />
            <section class="card" aria-labelledby="you">
                <h2 id="you">"You"</h2>
                <NameForm name=viewer.name email=viewer.email />
            </section>
            <section class="card" aria-labelledby="address">
                <h2 id="address">"E-mail address"</h2>
                {match address.pending {
                    Some(pending) => view! {
                        <Pending id=address.id email=address.email pending=pending />
                    }
                    .into_any(),
                    None => view! { <AddressForm sends_mail=address.sends_mail /> }.into_any(),
                }}
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

/// An address that waits to be confirmed.
#[component]
fn Pending(id: String, email: String, pending: String) -> impl IntoView {
    let again = ServerAction::<AskConfirmation>::new();
    let keep = ServerAction::<ChangeAddress>::new();
    let (sent_again, kept) = (sent(again), sent(keep));
    let present = email.clone();
    view! {
        <Alert kind="note">
            <p>
                "A mail with a link is on its way to " <strong class="wrap">{pending}</strong>
                ". Until you open it you sign in with " <strong class="wrap">{present}</strong>
                ". An address that another account has gets no mail."
            </p>
        </Alert>
        <ActionForm action=again>
            <FormFailure sent=sent_again />
            <input type="hidden" name="id" value=id />
            <Back />
            <Submit sent=sent_again label="Send the mail again" busy="Sending the mail..." saved="On its way" />
        </ActionForm>
        <ActionForm action=keep>
            <FormFailure sent=kept />
            <input type="hidden" name="email" value=email />
            <Back />
            <div class="submit">
                <button type="submit" class="button" data-busy="Keeping the address...">
                    "Keep the present address"
                </button>
            </div>
        </ActionForm>
    }
}

#[component]
fn AddressForm(sends_mail: bool) -> impl IntoView {
    let change = ServerAction::<ChangeAddress>::new();
    let sent = sent(change);
    let hint = match sends_mail {
        true => "We mail a link to it. Until you open that, the present address stays.",
        false => "You sign in with it at once. No mail is sent.",
    };
    view! {
        <ActionForm action=change>
            <FormFailure sent=sent fields=&["email"] />
            <Back />
            <Field sent=sent name="email" label="New e-mail address" kind="email" autocomplete="email" max=254
                hint=hint />
            <Submit sent=sent label="Change address" busy="Changing address..." saved="Saved" />
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
