//! Invites to organizations.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use super::members::full_name;
use super::members::{Choosable, level_of};
#[cfg(feature = "ssr")]
use crate::context::{
    anyone, enter_organization, enter_with_token, notice, redirect_with_notice, ui_error,
};
use crate::error::UiError;

/// A page of invites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InvitesView {
    /// Total number of invites.
    pub(crate) total: u64,
    /// Invites of the page.
    pub(crate) invites: Vec<InviteView>,
    /// Whether the instance sends mail.
    pub(crate) sends_mail: bool,
    /// The levels that the user may assign.
    pub(crate) levels: Vec<Choosable>,
}

/// An invite as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InviteView {
    /// Id of the invite, for users who may create such an invite.
    pub(crate) id: Option<String>,
    /// E-mail address of the invited user.
    pub(crate) email: String,
    /// First name. Can be empty.
    pub(crate) first_name: String,
    /// The level that the new member will have.
    pub(crate) level: Choosable,
    /// A message to the invited user.
    pub(crate) message: Option<String>,
    /// First name of the inviting user. Empty if that user is deleted.
    pub(crate) invited_by: String,
    /// Time of creation.
    pub(crate) sent_at: String,
    /// Expiry time.
    pub(crate) expires_at: String,
    /// Whether the invite has expired.
    pub(crate) expired: bool,
    /// Whether Weir tried to send the mail.
    pub(crate) mailed: bool,
}

/// The link of a new invite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NewLink {
    /// E-mail address of the invited user.
    pub(crate) email: String,
    /// Address of the page that accepts the invite.
    pub(crate) link: String,
}

/// Links kept for the page that shows them.
#[derive(Serialize, Deserialize)]
struct KeptLinks {
    organization: String,
    links: Vec<(String, weir_model::invites::LinkToken)>,
}

/// The key under which new links are kept.
const FLASH: &str = "invites";

/// An entry of a pasted list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedView {
    /// The pasted text.
    pub(crate) text: String,
    /// The e-mail address in it.
    pub(crate) email: String,
    pub(crate) first_name: String,
    /// Whether this entry will be invited.
    pub(crate) invited: bool,
    /// The result for this entry, in words.
    pub(crate) verdict: String,
}

/// Lists invites, newest first.
#[server(prefix = "/_fn", endpoint = "list_invites")]
pub(crate) async fn list_invites(
    id: String,
    limit: u32,
    offset: u32,
) -> Result<InvitesView, UiError> {
    use weir_model::invites::{Invite, expires_at};
    use weir_model::organizations::Level;
    use weir_model::pagination::Page;
    use weir_model::users::User;
    use weir_service::invites::Invites;

    let (services, org) = enter_organization(&id).await?;
    let page = Page { limit: limit.clamp(1, 1000).into(), offset: offset.into() };
    let found = services.invites.list(&org, page).await.map_err(ui_error)?;
    let inviter = |user: User| full_name(&user.first_name, &user.last_name, &user.email);
    let show = |invite: Invite| InviteView {
        id: Invites::may_hold(&org, &invite).then(|| invite.id.to_string()),
        email: invite.target_email,
        first_name: invite.first_name,
        level: invite.level.into(),
        message: invite.message,
        invited_by: invite.created_by.map(inviter).unwrap_or_default(),
        sent_at: invite.created_at.to_string(),
        expires_at: expires_at(invite.created_at).to_string(),
        expired: invite.is_expired,
        mailed: invite.emailing_attempt_made,
    };
    let levels = [Level::Member, Level::Administrator, Level::Owner].into_iter();
    Ok(InvitesView {
        total: found.count,
        invites: found.results.into_iter().map(show).collect(),
        sends_mail: services.identity.sends_mail(),
        levels: levels.filter(|level| *level <= org.level).map(Choosable::from).collect(),
    })
}

/// Returns the links of new invites once. A second call returns none.
#[server(prefix = "/_fn", endpoint = "reveal_invite_links")]
pub(crate) async fn reveal_invite_links(id: String) -> Result<Vec<NewLink>, UiError> {
    let (services, ctx, token) = enter_with_token()?;
    let (_, visit) = anyone()?;
    let kept = services.identity.take_flash(&ctx, &token, FLASH).await.map_err(ui_error)?;
    let kept = kept.and_then(|text| serde_json::from_str::<KeptLinks>(&text).ok());
    let Some(kept) = kept.filter(|kept| kept.organization == id) else { return Ok(Vec::new()) };
    let show = |(email, token): (String, weir_model::invites::LinkToken)| NewLink {
        email,
        link: format!("{}{}", visit.origin, token.path()),
    };
    Ok(kept.links.into_iter().map(show).collect())
}

/// Keeps the links of new invites for the page that shows them once.
#[cfg(feature = "ssr")]
pub(super) async fn keep_links(
    id: &str,
    made: &[weir_model::invites::Invite],
) -> Result<(), UiError> {
    if made.is_empty() {
        return Ok(());
    }
    let (services, ctx, token) = enter_with_token()?;
    let link = |invite: &weir_model::invites::Invite| {
        Some((invite.target_email.clone(), invite.token.clone()?))
    };
    let links = made.iter().filter_map(link).collect();
    let kept = KeptLinks { organization: id.to_owned(), links };
    let text = serde_json::to_string(&kept)
        .map_err(|error| ui_error(weir_service::Error::Internal(error.to_string())))?;
    services.identity.put_flash(&ctx, &token, FLASH, &text).await.map_err(ui_error)
}

/// Previews which entries of a pasted list will be invited.
#[server(prefix = "/_fn", endpoint = "preview_invites")]
pub(crate) async fn preview_invites(
    id: String,
    people: String,
) -> Result<Vec<ListedView>, UiError> {
    use weir_service::invites::{Listed, Verdict};

    let (services, org) = enter_organization(&id).await?;
    let listed = services.invites.preview(&org, &people).await.map_err(ui_error)?;
    let show = |one: Listed| ListedView {
        invited: one.verdict.is_invited(),
        verdict: match one.verdict {
            Verdict::Ready => "Will be invited".to_owned(),
            Verdict::Again => "Will be invited again; the earlier link ends".to_owned(),
            Verdict::Duplicate => "Listed twice".to_owned(),
            Verdict::Member => "Is a member already".to_owned(),
            Verdict::Wrong(_) => "Not a valid address".to_owned(),
            Verdict::TooMany => "Beyond the 20 that can be invited at a time".to_owned(),
        },
        text: one.text,
        email: one.email,
        first_name: one.first_name,
    };
    Ok(listed.into_iter().map(show).collect())
}

/// Invites all valid entries of a pasted list.
#[server(prefix = "/_fn", endpoint = "send_invites")]
pub(crate) async fn send_invites(
    id: String,
    people: String,
    level: i64,
    #[server(default)] message: String,
) -> Result<(), UiError> {
    use weir_service::limits::LIMIT_REACHED;

    let (services, org) = enter_organization(&id).await?;
    let level = level_of(level)?;
    let made = services.invites.create_listed(&org, &people, level, &message).await;
    let made = made.map_err(|error| match ui_error(error) {
        UiError::Field(fault) if fault.code == LIMIT_REACHED => {
            UiError::field("people", &fault.code, &fault.detail)
        }
        other => other,
    })?;
    keep_links(&id, &made).await?;
    let people = match made.as_slice() {
        [one] => one.target_email.clone(),
        many => format!("{} people", many.len()),
    };
    let how = match services.identity.sends_mail() {
        true => "The mail is on its way.",
        false => "This instance sends no mail: send the links yourself.",
    };
    redirect_with_notice(
        &format!("/organizations/{id}/invites"),
        &format!("Invited {people}. {how}"),
    );
    Ok(())
}

/// Creates an invite again, with a new link, and mails it if mail is configured.
#[server(prefix = "/_fn", endpoint = "resend_invite")]
pub(crate) async fn resend_invite(id: String, invite: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let made = services.invites.renew(&org, &invite).await.map_err(ui_error)?;
    keep_links(&id, std::slice::from_ref(&made)).await?;
    notice(&format!("{} has a new link. The earlier one has ended.", made.target_email));
    Ok(())
}

#[server(prefix = "/_fn", endpoint = "revoke_invite")]
pub(crate) async fn revoke_invite(id: String, invite: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    services.invites.delete(&org, &invite).await.map_err(ui_error)?;
    notice("The invite is revoked. Its link has ended.");
    Ok(())
}
