//! The passkeys of the user.

use leptos::prelude::*;
use server_fn::ServerFn as _;

use crate::server_fns::passkeys::{
    AddPasskey, BeginAddingPasskey, PasskeyView, PasskeysView, RemovePasskey, RenamePasskey,
};
use crate::ui::alert::Alert;
use crate::ui::confirm::{ConfirmButtons, ConfirmDialog, OpenDialog};
use crate::ui::field::Field;
use crate::ui::form::{FormFailure, FormResult, ReturnAddress, Submit, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::menu::RowMenu;
use crate::ui::passkey::PasskeyAnswer;
use crate::ui::sections::Section;
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell, truncated};
use crate::ui::time::{Ago, Time};

/// Longest name, in characters.
const NAME_MAX: usize = 64;

/// The section about passkeys.
#[component]
pub(super) fn PasskeysSection(view: PasskeysView) -> impl IntoView {
    let PasskeysView { passkeys, work_here } = view;
    let (rename, remove) = (form_action::<RenamePasskey>(), form_action::<RemovePasskey>());
    let (renamed, removed) = (form_result(rename), form_result(remove));
    let columns = vec![
        Column::text("Name"),
        Column::text("Added"),
        Column::text("Last used"),
        Column::text(ACTIONS),
    ];
    let is_empty = passkeys.is_empty();
    let copied = passkeys.iter().filter(|one| one.refused_at.is_some()).map(copied).collect_view();
    let rows = passkeys.into_iter().map(|one| row(one, rename, remove)).collect::<Vec<_>>();
    view! {
        <Section
            id="passkeys"
            title="Passkeys"
            hint="A passkey signs you in without your password: your phone, computer or security key checks that it is you. While you have one, your password alone does not sign you in."
        >
            {copied}
            <FormFailure result=renamed />
            <FormFailure result=removed />
            {match is_empty {
                true => view! { <p>"No passkeys yet."</p> }.into_any(),
                false => view! { <Table caption="Passkeys" columns=columns rows=rows /> }.into_any(),
            }}
            {match work_here {
                true => view! { <AddForm /> }.into_any(),
                false => view! {
                    <p class="hint">
                        "Browsers use passkeys only at a host name with https, and at localhost. Open Weir there to add one."
                    </p>
                }
                .into_any(),
            }}
        </Section>
    }
    .into_any()
}

/// Warns of a passkey whose counter went back.
fn copied(passkey: &PasskeyView) -> AnyView {
    let (name, at) = (passkey.name.clone(), passkey.refused_at.clone().unwrap_or_default());
    view! {
        <Alert kind="warning">
            <p>
                "A sign-in with " <strong>{name}</strong> " was refused at " <Time iso=at />
                ", because it had been used more often than that device says. There may be a copy of it: remove it, and add a new one."
            </p>
        </Alert>
    }
    .into_any()
}

fn row(
    passkey: PasskeyView,
    rename: FormAction<RenamePasskey>,
    remove: FormAction<RemovePasskey>,
) -> TableRow {
    let PasskeyView { id, name, added_at, used_at, .. } = passkey;
    let used = match used_at {
        Some(at) => view! { <Ago iso=at /> }.into_any(),
        None => "never".into_any(),
    };
    TableRow::new(vec![
        truncated(name.clone()),
        cell(view! { <Ago iso=added_at /> }),
        used,
        menu(&id, &name, rename, remove),
    ])
}

/// The menu of a passkey, and its dialogs.
fn menu(
    id: &str,
    name: &str,
    rename: FormAction<RenamePasskey>,
    remove: FormAction<RemovePasskey>,
) -> AnyView {
    let (renaming, removing) = (format!("rename-{id}"), format!("remove-{id}"));
    let rename = rename_dialog(renaming.clone(), id, name, rename);
    let remove = remove_dialog(removing.clone(), id, name, remove);
    view! {
        <RowMenu of=name>
            <OpenDialog id=renaming label="Rename..." />
            <OpenDialog id=removing label="Remove..." danger=true />
        </RowMenu>
        {rename}
        {remove}
    }
    .into_any()
}

fn rename_dialog(
    dialog: String,
    id: &str,
    name: &str,
    rename: FormAction<RenamePasskey>,
) -> AnyView {
    let label = format!("New name of {name}");
    let title = format!("Rename {name}");
    let (buttons, id, name) = (dialog.clone(), id.to_owned(), name.to_owned());
    view! {
        <ConfirmDialog id=dialog title=title>
            <ActionForm action=rename>
                <input type="hidden" name="id" value=id />
                <ReturnAddress />
                <input type="text" name="new_name" value=name maxlength=NAME_MAX.to_string() required=true
                    autocomplete="off" aria-label=label />
                <ConfirmButtons id=buttons verb="Rename passkey" busy="Renaming passkey..." />
            </ActionForm>
        </ConfirmDialog>
    }
    .into_any()
}

fn remove_dialog(
    dialog: String,
    id: &str,
    name: &str,
    remove: FormAction<RemovePasskey>,
) -> AnyView {
    let title = format!("Remove the passkey {name}?");
    let (buttons, id) = (dialog.clone(), id.to_owned());
    view! {
        <ConfirmDialog id=dialog title=title>
            <ActionForm action=remove>
                <p>"It does not sign you in any more, and your other sessions end."</p>
                <input type="hidden" name="id" value=id />
                <ReturnAddress />
                <ConfirmButtons id=buttons verb="Remove passkey" busy="Removing passkey..." danger=true />
            </ActionForm>
        </ConfirmDialog>
    }
    .into_any()
}

#[component]
fn AddForm() -> impl IntoView {
    let action = form_action::<AddPasskey>();
    let result: FormResult = form_result(action);
    view! {
        <ActionForm action=action>
            <FormFailure result=result fields=&["name"] />
            <ReturnAddress />
            <Field result=result name="name" label="Name" max=NAME_MAX
                hint="So that you recognise it, such as the name of the device." />
            <PasskeyAnswer begin=BeginAddingPasskey::PATH makes=true />
            <Submit result=result label="Add a passkey" busy="Adding..." />
        </ActionForm>
    }
}
