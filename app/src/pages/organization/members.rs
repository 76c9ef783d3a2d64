//! The members of an organization: the list, levels, removal, leaving.

use futures::future::try_join;
use leptos::prelude::*;
use serde_json::json;

use super::{LEVELS, Tabs};
use crate::local_path::encode;
use crate::pages::id_in_path;
use crate::server_fns::bulk::RemoveMembers;
use crate::server_fns::members::{
    ChangeLevel, LeaveOrganization, MAX_PAGE_SIZE, MemberView, RemoveMember, list_members,
};
use crate::server_fns::organizations::get_organization;
use crate::ui::alert::Alert;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::bulk::{self, BulkBar, selectable};
use crate::ui::confirm::{Confirm, ConfirmButtons, ConfirmDialog, OpenDialog};
use crate::ui::download::DownloadCsv;
use crate::ui::empty::{Empty, NoMatch, ReadOnly};
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::icon::Icon;
use crate::ui::menu::RowMenu;
use crate::ui::number::counted;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::sections::Section;
use crate::ui::status::{Chip, Status, Tone};
use crate::ui::table::{ACTIONS, Column, Table, TableRow, cell, truncated};
use crate::ui::time::Ago;

const TITLE: &str = "Members";
/// Members on one page.
const PAGE_SIZE: u32 = 50;

/// The actions of the list.
#[derive(Clone, Copy)]
struct Actions {
    change: FormAction<ChangeLevel>,
    remove: FormAction<RemoveMember>,
}

#[component]
pub(crate) fn Members() -> impl IntoView {
    page(
        TITLE,
        || {
            let list_page = page_in_query(PAGE_SIZE);
            let list_page = ListPage { limit: list_page.limit.min(MAX_PAGE_SIZE), ..list_page };
            (id_in_path(), in_query("search"), list_page, bulk::selected_in_query())
        },
        |(id, search, list_page, _)| async move {
            let found = list_members(id.clone(), search, list_page.limit, list_page.offset);
            try_join(get_organization(id), found).await
        },
        |(id, search, list_page, selected), (organization, found)| {
            let actions = Actions { change: form_action(), remove: form_action() };
            let (changed, removed) = (form_result(actions.change), form_result(actions.remove));
            let all_removed = form_result(form_action::<RemoveMembers>());
            let removable = found.members.iter().filter(|one| is_removable(one));
            let asking = removal_of_selected(&id, removable.clone(), &selected);
            let are_selected =
                found.may_change && asking.is_none() && bulk::is_worth_it(removable.count());
            let bar = are_selected.then(|| bar(&id, &search, list_page));
            let invites = format!("/organizations/{id}/invites");
            let invite = invites.clone();
            let call = call(&id, &search);
            let change = found.members.iter().find(|one| !one.levels.is_empty());
            let change = change.map(|one| {
                let call =
                    one_member("PATCH", &id, &one.user).with(json!({"level": one.level.number}));
                view! { <ApiRequest call=call of=format!("change the level of {}", one.name) /> }
            });
            let alone = found.total == 1 && search.is_empty();
            let list = if found.members.is_empty() {
                let clear = with_query(&[("search", None)]);
                view! { <NoMatch filter=search.clone() clear=clear /> }.into_any()
            } else {
                let acts = |member: &MemberView| found.may_change || member.is_you;
                let row = |member: MemberView| {
                    let is_selectable = are_selected && is_removable(&member);
                    row(&id, acts(&member).then_some(actions), member, is_selectable)
                };
                let rows = found.members.into_iter().map(row);
                let rows: Vec<TableRow> = rows.collect();
                view! {
                    {bar}
                    <Table caption="Members" columns=columns() rows=rows />
                }
                .into_any()
            };
            view! {
            <PageHead title=TITLE within=organization.name>
                <DownloadCsv />
                <a class="button button-primary" href=invite>
                    <Icon name="plus" />
                    "Invite people"
                </a>
            </PageHead>
            <Tabs id=id.clone() />
            <FormFailure result=changed />
            <FormFailure result=removed />
            <FormFailure result=all_removed />
            {asking}
            {(!found.may_change).then(|| view! {
                <ReadOnly why="Administrators and owners change levels and remove members." />
            })}
            {if alone {
                view! {
                    <Empty title="Only you so far">
                        <p>"New members see the projects of this organization and work on them with you."</p>
                        <p><a class="button" href=invites>"Invite people"</a></p>
                    </Empty>
                }
                .into_any()
            } else {
                view! { <SearchForm search=search /> }.into_any()
            }}
            {list}
            <Pager page=list_page total=found.total what="members" />
            <ApiRequest call=call of="list" />
            {change}
            <Leaving id=id you=found.you />
        }
        .into_any()
        },
    )
}

/// Whether the user may remove the member.
fn is_removable(member: &MemberView) -> bool {
    !member.is_you && member.stays.is_none()
}

/// The bar, which leads to the question: it names the members and what they lose.
fn bar(id: &str, search: &str, list_page: ListPage) -> AnyView {
    let fields = vec![
        ("search", search.to_owned()),
        ("limit", list_page.limit.to_string()),
        ("offset", list_page.offset.to_string()),
    ];
    let here = format!("/organizations/{id}/members");
    view! {
        <BulkBar what="members" fields=fields asks_at=here>
            <button type="submit" class="button button-risk">"Remove selected..."</button>
        </BulkBar>
    }
    .into_any()
}

/// Asks whether to remove the selected members.
fn removal_of_selected<'a>(
    id: &str,
    removable: impl Iterator<Item = &'a MemberView>,
    selected: &[String],
) -> Option<AnyView> {
    let members: Vec<&MemberView> =
        removable.filter(|member| selected.contains(&member.user)).collect();
    if members.is_empty() {
        return None;
    }
    let remove = form_action::<RemoveMembers>();
    let entries = members.iter().map(|member| {
        let MemberView { user, name, email, keys, .. } = (*member).clone();
        let keys = (!keys.is_empty()).then(|| format!(" API keys: {}.", keys.join(", ")));
        view! {
            <li class="wrap">
                <input type="hidden" name="ids[]" value=user />
                <strong>{name}</strong> " (" {email} ")." {keys}
            </li>
        }
    });
    let entries = entries.collect_view();
    let count = counted(members.len() as u64, "member", "members");
    let (id, back) = (id.to_owned(), bulk::without_selection());
    Some(
        view! {
            <Alert kind="warning" autofocus=true>
                <p>{format!("Remove {count}?")}</p>
                <ActionForm action=remove>
                    <ul>{entries}</ul>
                    <p>"They lose access to all projects of this organization immediately, and their API keys do not reach it any more. The accounts stay."</p>
                    <input type="hidden" name="id" value=id />
                    <ReturnAddress />
                    <div class="submit">
                        <a class="button" href=back>"Cancel"</a>
                        <button type="submit" class="button button-danger" data-busy="Removing members...">
                            "Remove members"
                        </button>
                    </div>
                </ActionForm>
            </Alert>
        }
        .into_any(),
    )
}

/// The API request for the same list.
fn call(id: &str, search: &str) -> ApiCall {
    let query =
        if search.is_empty() { String::new() } else { format!("?search={}", encode(search)) };
    ApiCall {
        method: "GET",
        path: format!("/api/organizations/{id}/members/{query}"),
        scope: "organization_member:read",
        body: None,
    }
}

/// A request about a member.
fn one_member(method: &'static str, id: &str, user: &str) -> ApiCall {
    let path = format!("/api/organizations/{id}/members/{user}/");
    ApiCall::new(method, path, "organization_member:write")
}

fn columns() -> Vec<Column> {
    ["Member", "Level", "Two-step sign-in", "Sign-in", "Joined", ACTIONS].map(Column::text).into()
}

#[component]
fn SearchForm(search: String) -> impl IntoView {
    view! {
        <FilterForm label="Members">
            <div class="field">
                <label for="search">"Name or address"</label>
                <input id="search" name="search" type="search" value=search maxlength="200" autocomplete="off" />
            </div>
        </FilterForm>
    }
}

/// A member. Without `actions` there is nothing that the user can do with them.
fn row(id: &str, actions: Option<Actions>, member: MemberView, is_selectable: bool) -> TableRow {
    let MemberView { name, email, level, has_2fa, ways, joined_at, is_you, .. } = member.clone();
    let initials = initials(&name);
    let who = cell(view! {
        <span class="member">
            <span class="member-initials" aria-hidden="true">{initials}</span>
            {truncated(name)}
            {is_you.then(|| view! { <Chip label="You" /> })}
        </span>
        <span class="hint">{truncated(email)}</span>
    });
    let who = match is_selectable {
        true => selectable(member.user.clone(), &member.name, who),
        false => who,
    };
    let second = if has_2fa {
        view! { <Status tone=Tone::Good label="Set up" /> }.into_any()
    } else {
        view! { <Status tone=Tone::Quiet label="None" /> }.into_any()
    };
    let sign_in = match ways.is_empty() {
        true => "Has not signed in yet".to_owned(),
        false => ways.join(", "),
    };
    TableRow::new(vec![
        who,
        cell(level.word),
        second,
        cell(sign_in),
        cell(view! { <Ago iso=joined_at /> }),
        actions.map_or_else(|| ().into_any(), |actions| menu(id, &member, actions)),
    ])
}

/// What the user can do with a member, or why they cannot.
fn menu(id: &str, member: &MemberView, actions: Actions) -> AnyView {
    let MemberView { user, name, levels, keeps_level, stays, is_you, .. } = member.clone();
    let level = (!levels.is_empty()).then(|| {
        let dialog = format!("level-{user}");
        let item = view! { <OpenDialog id=dialog.clone() label="Change level..." /> };
        (item, level(id, dialog, member, actions.change))
    });
    let removal = is_removable(member).then(|| {
        let dialog = format!("remove-{user}");
        let item = view! { <OpenDialog id=dialog.clone() label="Remove..." danger=true /> };
        (item, removal(id, dialog, member, actions.remove))
    });
    let leave = is_you.then(|| view! { <li><a href="#leaving">"Leave"</a></li> });
    // The reason that the own level stays is not repeated for all other members.
    let why = [keeps_level.filter(|_| is_you), stays.filter(|_| !is_you)];
    let why = why.into_iter().flatten().map(|why| view! { <li class="menu-title">{why}</li> });
    let (level_item, level) = level.unzip();
    let (removal_item, removal) = removal.unzip();
    view! {
        <RowMenu of=name>{level_item} {removal_item} {leave} {why.collect_view()}</RowMenu>
        {level}
        {removal}
    }
    .into_any()
}

/// The dialog that changes the level of a member.
fn level(
    id: &str,
    dialog: String,
    member: &MemberView,
    change: FormAction<ChangeLevel>,
) -> AnyView {
    let MemberView { user, name, level, levels, .. } = member.clone();
    let choices = levels
        .into_iter()
        .map(|one| {
            let selected = one.number == level.number;
            view! { <option value=one.number.to_string() selected=selected>{one.word}</option> }
        })
        .collect_view();
    let (id, title) = (id.to_owned(), format!("Change the level of {name}"));
    let buttons = dialog.clone();
    view! {
        <ConfirmDialog id=dialog title=title>
            <ActionForm action=change>
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="user" value=user />
                <ReturnAddress />
                <div class="field">
                    <select name="level" aria-label=format!("Level of {name}")>{choices}</select>
                    <p class="hint">{LEVELS}</p>
                </div>
                <ConfirmButtons id=buttons verb="Change level" busy="Changing level..." />
            </ActionForm>
        </ConfirmDialog>
    }
    .into_any()
}

/// The dialog that removes a member, with a list of what they lose.
fn removal(
    id: &str,
    dialog: String,
    member: &MemberView,
    remove: FormAction<RemoveMember>,
) -> AnyView {
    let MemberView { user, name, keys, .. } = member.clone();
    let call = one_member("DELETE", id, &user);
    let id = id.to_owned();
    let losses = losses(&keys, "They lose", "Their");
    let buttons = dialog.clone();
    view! {
        <ConfirmDialog id=dialog title=format!("Remove {name}?")>
            <ActionForm action=remove>
                {losses}
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="user" value=user />
                <ReturnAddress />
                <ConfirmButtons id=buttons verb="Remove member" busy="Removing member..." danger=true />
            </ActionForm>
            <ApiRequest call=call />
        </ConfirmDialog>
    }
    .into_any()
}

/// What a user loses with the membership.
fn losses(keys: &[String], lose: &str, whose: &str) -> AnyView {
    let listed = keys.iter().map(|key| view! { <li class="wrap">{key.clone()}</li> });
    let keys = (!keys.is_empty()).then(|| {
        view! {
            <p>{format!("{whose} API keys that do not reach this organization any more:")}</p>
            <ul>{listed.collect_view()}</ul>
        }
    });
    view! {
        <p>{format!("{lose} access to all projects of this organization immediately. The account stays.")}</p>
        {keys}
    }
    .into_any()
}

#[component]
fn Leaving(id: String, you: MemberView) -> impl IntoView {
    let leave = form_action::<LeaveOrganization>();
    let result = form_result(leave);
    let MemberView { stays, keys, .. } = you;
    let call = one_member("DELETE", &id, "@me");
    let content = match stays {
        Some(why) => view! { <ReadOnly why=why /> }.into_any(),
        None => view! {
            <FormFailure result=result />
            <Confirm button="Leave organization" danger=true>
                <ActionForm action=leave>
                    {losses(&keys, "You lose", "Your")}
                    <p>"You can join again only with a new invite."</p>
                    <input type="hidden" name="id" value=id />
                    <ReturnAddress />
                    <button type="submit" class="button button-danger" data-busy="Leaving organization...">
                        "Leave organization"
                    </button>
                </ActionForm>
                <ApiRequest call=call />
            </Confirm>
        }
        .into_any(),
    };
    view! { <Section id="leaving" title="Leave">{content}</Section> }
}

/// The initials of a name.
fn initials(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let letters = words.filter_map(|word| word.chars().next()).take(2);
    letters.flat_map(char::to_uppercase).collect()
}

#[cfg(test)]
mod tests {
    use super::initials;

    #[test]
    fn initials_of_names() {
        for (name, expected) in [
            ("Ada Lovelace", "AL"),
            ("ada", "A"),
            ("grace.hopper@mail.example", "GH"),
            ("Östen", "Ö"),
            ("  ", ""),
        ] {
            assert_eq!(initials(name), expected);
        }
    }
}
