//! Members of organizations.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{
    enter_organization, notice, notice_with_undo, redirect_with_notice, ui_error,
};
use crate::error::UiError;

/// Limit of members on one page, because the consequences of a removal are computed for
/// each.
pub(crate) const MAX_PAGE_SIZE: u32 = 100;

/// A page of members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MembersView {
    /// Total number of members.
    pub(crate) total: u64,
    /// Members of the page.
    pub(crate) members: Vec<MemberView>,
    /// Whether the user may change members at all.
    pub(crate) may_change: bool,
    /// The membership of the user.
    pub(crate) you: MemberView,
}

/// A member as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberView {
    /// Id of the user.
    pub(crate) user: String,
    /// First and last name. The e-mail address if there is no name.
    pub(crate) name: String,
    /// E-mail address.
    pub(crate) email: String,
    pub(crate) level: Choosable,
    /// The levels that the user may assign to this member.
    pub(crate) levels: Vec<Choosable>,
    /// Why the user cannot change the level.
    pub(crate) keeps_level: Option<String>,
    /// Why the user cannot remove the member.
    pub(crate) stays: Option<String>,
    /// Labels of the member's API keys with access to the organization.
    pub(crate) keys: Vec<String>,
    /// Whether the member has a second factor.
    pub(crate) has_2fa: bool,
    /// How the member signs in, in words.
    pub(crate) ways: Vec<String>,
    /// Time of joining.
    pub(crate) joined_at: String,
    /// Whether the member is the user.
    pub(crate) is_you: bool,
}

/// A level to choose: number and word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Choosable {
    /// The value in the API.
    pub(crate) number: i64,
    /// The name, for users.
    pub(crate) word: String,
}

impl From<weir_model::organizations::Level> for Choosable {
    fn from(level: weir_model::organizations::Level) -> Self {
        Self { number: level.into(), word: level.text().to_owned() }
    }
}

/// The level with this number.
pub(crate) fn level_of(number: i64) -> Result<weir_model::organizations::Level, UiError> {
    let unknown = |detail: String| UiError::field("level", "invalid_choice", &detail);
    weir_model::organizations::Level::try_from(number).map_err(unknown)
}

/// First and last name. The e-mail address if there is no name.
#[cfg(feature = "ssr")]
pub(crate) fn full_name(first: &str, last: &str, email: &str) -> String {
    let name = format!("{first} {last}").trim().to_owned();
    if name.is_empty() { email.to_owned() } else { name }
}

#[cfg(feature = "ssr")]
fn shown(
    services: &weir_service::Services,
    org: &weir_service::OrgCtx,
    member: weir_model::members::Member,
    keys: Vec<String>,
    ways: Vec<String>,
) -> MemberView {
    use weir_service::members::OWNER_STAYS;

    let leeway = services.members.leeway(org, &member);
    let is_you = member.user.uuid == org.ctx.user();
    let (levels, keeps_level) = match leeway.levels {
        Ok(levels) => (levels.into_iter().map(Choosable::from).collect(), None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let owners = |why: String| match (why == OWNER_STAYS, is_you) {
        (true, true) => {
            "Owners cannot leave. Another owner has to lower your level first.".to_owned()
        }
        (true, false) => "Owners cannot be removed. Lower the level first.".to_owned(),
        (false, _) => why,
    };
    MemberView {
        user: member.user.uuid.to_string(),
        name: full_name(&member.user.first_name, &member.user.last_name, &member.user.email),
        email: member.user.email,
        level: member.level.into(),
        levels,
        keeps_level,
        stays: leeway.stays.map(owners),
        keys,
        has_2fa: member.is_2fa_enabled,
        ways,
        joined_at: member.joined_at.to_string(),
        is_you,
    }
}

/// Lists members, newest first.
#[server(prefix = "/_fn", endpoint = "list_members")]
pub(crate) async fn list_members(
    id: String,
    search: String,
    limit: u32,
    offset: u32,
) -> Result<MembersView, UiError> {
    use weir_model::organizations::Level;
    use weir_model::pagination::Page;

    let (services, org) = enter_organization(&id).await?;
    let query = crate::filters::members(&search);
    let page = Page { limit: limit.clamp(1, MAX_PAGE_SIZE).into(), offset: offset.into() };
    let found = services.members.list(&org, &query, page).await.map_err(ui_error)?;
    let you = services.members.own(&org).await.map_err(ui_error)?;
    let mut users: Vec<_> = found.results.iter().map(|member| member.user.uuid).collect();
    users.push(you.user.uuid);
    let mut losses = services.members.losses(&org, &users).await.map_err(ui_error)?.into_iter();
    let mut keys = || losses.next().map(|loss| loss.keys).unwrap_or_default();
    let mut ways =
        services.members.sign_in_methods(&org, &users).await.map_err(ui_error)?.into_iter();
    let mut ways = || ways.next().unwrap_or_default();
    let members = found.results.into_iter();
    Ok(MembersView {
        total: found.count,
        members: members.map(|member| shown(&services, &org, member, keys(), ways())).collect(),
        may_change: org.level >= Level::Administrator,
        you: shown(&services, &org, you, keys(), ways()),
    })
}

/// Lists the names of members without a second factor.
#[server(prefix = "/_fn", endpoint = "list_members_without_2fa")]
pub(crate) async fn list_members_without_2fa(id: String) -> Result<Vec<String>, UiError> {
    use weir_model::users::User;

    let (services, org) = enter_organization(&id).await?;
    let found = services.members.without_second_factor(&org).await.map_err(ui_error)?;
    let name = |member: weir_model::members::Member| {
        let User { first_name, last_name, email, .. } = member.user;
        format!("{} ({email})", full_name(&first_name, &last_name, &email))
    };
    Ok(found.into_iter().map(name).collect())
}

/// Changes the level of a member.
#[server(prefix = "/_fn", endpoint = "change_level")]
pub(crate) async fn change_level(id: String, user: String, level: i64) -> Result<(), UiError> {
    use weir_model::members::MemberPatch;

    let (services, org) = enter_organization(&id).await?;
    let new = level_of(level)?;
    let member = services.members.changeable(&org, &user).await.map_err(ui_error)?;
    let (name, before) = (member.name().to_owned(), member.level());
    let patch = MemberPatch { level: Some(new) };
    services.members.update(&org, member, patch).await.map_err(ui_error)?;
    if new != before {
        let text = format!("{name} is {} now.", with_article(new));
        let before = i64::from(before).to_string();
        let fields = [("id", id.as_str()), ("user", user.as_str()), ("level", before.as_str())];
        notice_with_undo(&text, <ChangeLevel as server_fn::ServerFn>::PATH, &fields);
    }
    Ok(())
}

fn with_article(level: weir_model::organizations::Level) -> &'static str {
    use weir_model::organizations::Level;

    match level {
        Level::Member => "a member",
        Level::Administrator => "an administrator",
        Level::Owner => "an owner",
    }
}

/// Removes a member from the organization.
#[server(prefix = "/_fn", endpoint = "remove_member")]
pub(crate) async fn remove_member(id: String, user: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let member = services.members.changeable(&org, &user).await.map_err(ui_error)?;
    let text = format!("{} does not belong to the organization any more.", member.name());
    services.members.remove(&org, member).await.map_err(ui_error)?;
    notice(&text);
    Ok(())
}

#[server(prefix = "/_fn", endpoint = "leave_organization")]
pub(crate) async fn leave_organization(id: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let member = services.members.changeable(&org, "@me").await.map_err(ui_error)?;
    services.members.remove(&org, member).await.map_err(ui_error)?;
    redirect_with_notice("/organizations", "You left the organization.");
    Ok(())
}
