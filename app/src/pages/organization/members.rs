//! The members of an organization: the list, levels, removal, leaving.

use leptos::prelude::*;
use serde_json::json;

use super::Tabs;
use crate::local_path::encode;
use crate::pages::id_in_path;
use crate::server_fns::members::{
    ChangeLevel, LeaveOrganization, MAX_PAGE_SIZE, MemberView, RemoveMember, list_members,
};
use crate::server_fns::organizations::get_organization;
use crate::ui::api_request::{ApiCall, ApiRequest};
use crate::ui::confirm::Confirm;
use crate::ui::empty::{Empty, NoMatch, ReadOnly};
use crate::ui::form::{FormFailure, ReturnAddress, form_result};
use crate::ui::form_action::{ActionForm, FormAction, form_action};
use crate::ui::icon::Icon;
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager, page_in_query};
use crate::ui::query::{FilterForm, in_query, with_query};
use crate::ui::sections::Section;
use crate::ui::status::{Chip, Status, Tone};
use crate::ui::table::{Column, Table, TableRow, cell};
use crate::ui::time::Time;

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
            (id_in_path(), in_query("search"), list_page)
        },
        |(id, search, list_page)| async move {
            let organization = get_organization(id.clone()).await?;
            let found = list_members(id, search, list_page.limit, list_page.offset).await?;
            Ok((organization, found))
        },
        |(id, search, list_page), (organization, found)| {
            let actions = Actions { change: form_action(), remove: form_action() };
            let (changed, removed) = (form_result(actions.change), form_result(actions.remove));
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
                let rows = found.members.into_iter().map(|member| row(&id, member, actions));
                let rows: Vec<TableRow> = rows.collect();
                view! { <Table caption="Members" columns=columns() rows=rows /> }.into_any()
            };
            view! {
            <PageHead title=TITLE within=organization.name>
                <a class="button button-primary" href=invite>
                    <Icon name="plus" />
                    "Invite people"
                </a>
            </PageHead>
            <Tabs id=id.clone() />
            <FormFailure result=changed />
            <FormFailure result=removed />
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
    ["Member", "E-mail address", "Level", "Second factor", "Sign-in", "Joined", "Actions"]
        .map(Column::text)
        .into()
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

fn row(id: &str, member: MemberView, actions: Actions) -> TableRow {
    let MemberView { name, email, has_2fa, has_social, joined_at, is_you, .. } = member.clone();
    let initials = initials(&name);
    let who = view! {
        <span class="member">
            <span class="member-initials" aria-hidden="true">{initials}</span>
            <span class="wrap">{name}</span>
            {is_you.then(|| view! { <Chip label="You" /> })}
        </span>
    };
    let second = if has_2fa {
        view! { <Status tone=Tone::Good label="Set up" /> }.into_any()
    } else {
        view! { <Status tone=Tone::Quiet label="None" /> }.into_any()
    };
    let sign_in = if has_social { "Provider linked" } else { "Password" };
    TableRow::new(vec![
        cell(who),
        cell(view! { <span class="wrap">{email}</span> }),
        level(id, &member, actions.change),
        second,
        cell(sign_in),
        cell(view! { <Time iso=joined_at /> }),
        removal(id, member, actions.remove),
    ])
}

/// The level. A choice if the user may change it.
fn level(id: &str, member: &MemberView, change: FormAction<ChangeLevel>) -> AnyView {
    let MemberView { user, name, level, levels, keeps_level, is_you, .. } = member.clone();
    if levels.is_empty() {
        // The reason is shown in the user's own row and not repeated in all others.
        let why = keeps_level.filter(|_| is_you);
        return view! {
            {level.word}
            {why.map(|why| view! { <p class="hint">{why}</p> })}
        }
        .into_any();
    }
    let choices = levels
        .into_iter()
        .map(|one| {
            let selected = one.number == level.number;
            view! { <option value=one.number.to_string() selected=selected>{one.word}</option> }
        })
        .collect_view();
    let (id, of) = (id.to_owned(), name.clone());
    view! {
        <ActionForm action=change>
            <input type="hidden" name="id" value=id />
            <input type="hidden" name="user" value=user />
            <ReturnAddress />
            <span class="member-level">
                <select name="level" aria-label=format!("Level of {name}")>{choices}</select>
                <button type="submit" class="button" data-busy="Changing level...">
                    "Change"<span class="hidden">" level of " {of}</span>
                </button>
            </span>
        </ActionForm>
    }
    .into_any()
}

/// Removes a member, with a list of what they lose.
fn removal(id: &str, member: MemberView, remove: FormAction<RemoveMember>) -> AnyView {
    let MemberView { user, name, stays, keys, is_you, .. } = member;
    if is_you {
        return view! { <a href="#leaving">"Leave"</a> }.into_any();
    }
    if let Some(why) = stays {
        return view! { <span class="hint">{why}</span> }.into_any();
    }
    let call = one_member("DELETE", id, &user);
    let id = id.to_owned();
    let losses = losses(&keys, "They lose", "Their");
    view! {
        <Confirm button="Remove" of=name danger=true>
            <ActionForm action=remove>
                {losses}
                <input type="hidden" name="id" value=id />
                <input type="hidden" name="user" value=user />
                <ReturnAddress />
                <button type="submit" class="button button-danger" data-busy="Removing member...">
                    "Remove member"
                </button>
            </ActionForm>
            <ApiRequest call=call />
        </Confirm>
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
