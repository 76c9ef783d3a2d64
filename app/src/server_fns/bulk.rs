//! Actions on several entries of a list: one entry after the other through the services, which
//! check each. The entries that fail do not stop the others; the message says which and why.

use leptos::prelude::*;
#[cfg(feature = "ssr")]
use server_fn::ServerFn;

#[cfg(feature = "ssr")]
use crate::context::{
    enter, enter_organization, enter_project, notice, notice_with_undo, redirect_with_notice,
    ui_error,
};
use crate::error::UiError;
use crate::ui::number::counted;

/// The maximum number of entries.
const MOST: usize = 100;
/// The maximum number of persons: each one waits until its events are stored.
pub(crate) const MOST_PERSONS: usize = 50;
/// No further person is deleted after this time.
#[cfg(feature = "ssr")]
const DELETING: std::time::Duration = std::time::Duration::from_secs(30);
/// The maximum number of failures that the message names.
const NAMED: usize = 5;
/// The longest part of a name in the message, in characters.
const NAME: usize = 60;

/// What was done, and what not.
#[derive(Default)]
struct Outcome {
    /// Ids.
    done: Vec<String>,
    /// Names and reasons.
    failed: Vec<(String, UiError)>,
}

/// The words for an action: the verb, and the name of one entry and of several.
type Words = (&'static str, &'static str, &'static str);

impl Outcome {
    /// Adds an entry.
    ///
    /// # Errors
    /// When the user must sign in first.
    fn add(&mut self, id: String, name: &str, result: Result<(), UiError>) -> Result<(), UiError> {
        match result {
            Ok(()) => self.done.push(id),
            Err(error @ (UiError::SignIn | UiError::SignInAgain)) => return Err(error),
            Err(error) => self.failed.push((name.chars().take(NAME).collect(), error)),
        }
        Ok(())
    }

    fn message(&self, (verb, one, many): Words) -> String {
        let (done, all) = (self.done.len(), self.done.len() + self.failed.len());
        let entries = if all == 1 { one } else { many };
        if self.failed.is_empty() {
            return format!("{verb} {all} {entries}.");
        }
        let done = if done == 0 { "none".to_owned() } else { done.to_string() };
        let reasons = self.failed.iter().take(NAMED);
        let reasons = reasons.map(|(name, error)| format!(" {name}: {}", error.sentence()));
        let rest = match self.failed.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" And {more} more."),
        };
        format!("{verb} {done} of {all} {entries}.{}{rest}", reasons.collect::<String>())
    }

    /// The message as an error, if an entry failed.
    fn check(&self, words: Words) -> Result<(), UiError> {
        match self.failed.is_empty() {
            true => Ok(()),
            false => Err(UiError::form("partly_failed", &self.message(words))),
        }
    }

    /// Ends an action that cannot be undone.
    #[cfg(feature = "ssr")]
    fn end(&self, words: Words) -> Result<(), UiError> {
        self.check(words)?;
        notice(&self.message(words));
        Ok(())
    }

    /// Ends an action with its opposite: a function with these fields and the ids.
    #[cfg(feature = "ssr")]
    fn end_with_undo<S: ServerFn>(
        &self,
        words: Words,
        fields: &[(&str, &str)],
    ) -> Result<(), UiError> {
        self.check(words)?;
        let ids = self.done.iter().map(|id| ("ids[]", id.as_str()));
        let fields: Vec<(&str, &str)> = fields.iter().copied().chain(ids).collect();
        notice_with_undo(&self.message(words), S::PATH, &fields);
        Ok(())
    }
}

/// The selected ids, each once.
fn selected(mut ids: Vec<String>, most: usize) -> Result<Vec<String>, UiError> {
    ids.sort();
    ids.dedup();
    match ids.len() {
        0 => Err(UiError::form("required", "Select at least one entry.")),
        count if count <= most => Ok(ids),
        _ => Err(UiError::form("too_many", &format!("Select at most {most} entries."))),
    }
}

/// The addresses of all invites, by id.
#[cfg(feature = "ssr")]
async fn addresses(
    services: &weir_service::Services,
    org: &weir_service::OrgCtx,
) -> Result<std::collections::HashMap<String, String>, UiError> {
    use weir_model::pagination::{MAX_LIMIT, Page};

    let page = Page { limit: MAX_LIMIT, offset: 0 };
    let found = services.invites.list(org, page).await.map_err(ui_error)?;
    Ok(found.results.into_iter().map(|one| (one.id.to_string(), one.target_email)).collect())
}

/// Creates invites again, with new links, and mails them if mail is configured.
#[server(prefix = "/_fn", endpoint = "resend_invites")]
pub(crate) async fn resend_invites(
    id: String,
    #[server(default)] ids: Vec<String>,
) -> Result<(), UiError> {
    use weir_model::invites::BULK_MAX;

    let (services, org) = enter_organization(&id).await?;
    let names = addresses(&services, &org).await?;
    let (mut outcome, mut made) = (Outcome::default(), Vec::new());
    for invite in selected(ids, BULK_MAX)? {
        let name = names.get(&invite).unwrap_or(&invite).clone();
        let renewed = services.invites.renew(&org, &invite).await;
        let renewed = renewed.map(|invite| made.push(invite)).map_err(ui_error);
        outcome.add(invite, &name, renewed)?;
    }
    super::invites::keep_links(&id, &made).await?;
    outcome.end(("Made new links for", "invite", "invites"))
}

#[server(prefix = "/_fn", endpoint = "revoke_invites")]
pub(crate) async fn revoke_invites(
    id: String,
    #[server(default)] ids: Vec<String>,
) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let names = addresses(&services, &org).await?;
    let mut outcome = Outcome::default();
    for invite in selected(ids, MOST)? {
        let name = names.get(&invite).unwrap_or(&invite).clone();
        let revoked = services.invites.delete(&org, &invite).await.map_err(ui_error);
        outcome.add(invite, &name, revoked)?;
    }
    outcome.end(("Revoked", "invite", "invites"))
}

/// Removes members, and redirects to the list.
#[server(prefix = "/_fn", endpoint = "remove_members")]
pub(crate) async fn remove_members(
    id: String,
    #[server(default)] ids: Vec<String>,
) -> Result<(), UiError> {
    const WORDS: Words = ("Removed", "member", "members");

    let (services, org) = enter_organization(&id).await?;
    let mut outcome = Outcome::default();
    for user in selected(ids, MOST)? {
        let (name, removed) = match services.members.changeable(&org, &user).await {
            Ok(member) => (member.name().to_owned(), services.members.remove(&org, member).await),
            Err(error) => (user.clone(), Err(error)),
        };
        outcome.add(user, &name, removed.map_err(ui_error))?;
    }
    outcome.check(WORDS)?;
    redirect_with_notice(&format!("/organizations/{id}/members"), &outcome.message(WORDS));
    Ok(())
}

#[server(prefix = "/_fn", endpoint = "pause_exports")]
pub(crate) async fn pause_exports(
    organization: String,
    #[server(default)] ids: Vec<String>,
) -> Result<(), UiError> {
    let outcome = set_paused(&organization, ids, true).await?;
    let words = ("Paused", "export", "exports");
    outcome.end_with_undo::<UnpauseExports>(words, &[("organization", &organization)])
}

/// Resumes the schedules of exports, without a backfill.
#[server(prefix = "/_fn", endpoint = "unpause_exports")]
pub(crate) async fn unpause_exports(
    organization: String,
    #[server(default)] ids: Vec<String>,
) -> Result<(), UiError> {
    let outcome = set_paused(&organization, ids, false).await?;
    let words = ("Unpaused", "export", "exports");
    outcome.end_with_undo::<PauseExports>(words, &[("organization", &organization)])
}

#[cfg(feature = "ssr")]
async fn set_paused(
    organization: &str,
    ids: Vec<String>,
    paused: bool,
) -> Result<Outcome, UiError> {
    let (services, org) = enter_organization(organization).await?;
    let mut outcome = Outcome::default();
    for export in selected(ids, MOST)? {
        let found = services.exports.get((&org).into(), &export).await;
        let name = found.map_or_else(|_| export.clone(), |found| found.name);
        let changed = match paused {
            true => services.exports.pause((&org).into(), &export).await,
            false => services.exports.unpause((&org).into(), &export, false).await,
        };
        outcome.add(export, &name, changed.map(drop).map_err(ui_error))?;
    }
    Ok(outcome)
}

#[server(prefix = "/_fn", endpoint = "revoke_keys")]
pub(crate) async fn revoke_keys(#[server(default)] ids: Vec<String>) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let keys = services.keys.list(&ctx).await.map_err(ui_error)?;
    let mut outcome = Outcome::default();
    for id in selected(ids, MOST)? {
        let key = weir_model::KeyId(id.clone());
        let label =
            keys.iter().find(|one| one.id == key).map_or(id.clone(), |one| one.label.clone());
        let revoked = services.keys.delete(&ctx, &key).await.map_err(ui_error);
        outcome.add(id, &label, revoked)?;
    }
    outcome.end(("Revoked", "key", "keys"))
}

/// The text to type before so many persons are deleted.
pub(crate) fn typed_before_deletion(persons: usize) -> String {
    counted(persons as u64, "person", "persons")
}

/// Deletes persons, with or without their events, and redirects to the list.
#[server(prefix = "/_fn", endpoint = "delete_persons")]
pub(crate) async fn delete_persons(
    project: i64,
    #[server(default)] ids: Vec<String>,
    // Browsers do not send unticked boxes.
    #[server(default)] delete_events: Option<String>,
    typed_name: String,
) -> Result<(), UiError> {
    use std::time::Instant;

    use super::persons::person_id;

    const WORDS: Words = ("Deleted", "person", "persons");

    let list = format!("/projects/{project}/persons");
    let (services, project) = enter_project(project).await?;
    let ids = selected(ids, MOST_PERSONS)?;
    let expected = typed_before_deletion(ids.len());
    if typed_name.trim() != expected {
        let detail = format!("Type it exactly: {expected}");
        return Err(UiError::field("typed_name", "mismatch", &detail));
    }
    let until = Instant::now().checked_add(DELETING);
    let mut outcome = Outcome::default();
    for id in ids {
        let is_late = until.is_some_and(|until| Instant::now() >= until);
        let deleted = match person_id(&id) {
            Ok(_) if is_late => {
                Err(UiError::form("too_slow", "Not deleted, because it took too long."))
            }
            Ok(person) => {
                let erased = services.persons.erase(&project, person, delete_events.is_some());
                erased.await.map(drop).map_err(ui_error)
            }
            Err(error) => Err(error),
        };
        // The message is kept, and the data of a person who is deleted must not be.
        let name = id.clone();
        outcome.add(id, &name, deleted)?;
    }
    outcome.check(WORDS)?;
    redirect_with_notice(&list, &outcome.message(WORDS));
    Ok(())
}

/// Enables or disables configs. The undo does the opposite.
#[server(prefix = "/_fn", endpoint = "switch_plugin_configs")]
pub(crate) async fn switch_plugin_configs(
    project: i64,
    #[server(default)] ids: Vec<String>,
    #[server(default)] enabled: Option<String>,
) -> Result<(), UiError> {
    use super::plugin_configs::switch;

    let (services, ctx) = enter_project(project).await?;
    let enabled = enabled.is_some_and(|word| word == "on");
    let mut outcome = Outcome::default();
    for config in selected(ids, MOST)? {
        let (name, switched) = switch(&services, &ctx, &config, enabled).await;
        outcome.add(config, &name, switched)?;
    }
    let (verb, back) = if enabled { ("Switched on", "off") } else { ("Switched off", "on") };
    let project = project.to_string();
    let fields = [("project", project.as_str()), ("enabled", back)];
    let words = (verb, "transformation", "transformations");
    outcome.end_with_undo::<SwitchPluginConfigs>(words, &fields)
}

/// The id of a config of a project, where configs of several projects are selected.
pub(crate) fn used_config(project: i64, config: &str) -> String {
    format!("{project}-{config}")
}

/// Enables or disables configs of several projects: their ids are those of [`used_config`].
/// The undo does the opposite.
#[server(prefix = "/_fn", endpoint = "switch_used_configs")]
pub(crate) async fn switch_used_configs(
    #[server(default)] ids: Vec<String>,
    #[server(default)] enabled: Option<String>,
) -> Result<(), UiError> {
    use super::plugin_configs::switch;

    enter()?;
    let enabled = enabled.is_some_and(|word| word == "on");
    let mut outcome = Outcome::default();
    for id in selected(ids, MOST)? {
        let parts = id.split_once('-').and_then(|(project, config)| {
            let project: i64 = project.parse().ok()?;
            Some((project, config))
        });
        let (name, switched) = match parts {
            Some((project, config)) => match enter_project(project).await {
                Ok((services, ctx)) => switch(&services, &ctx, config, enabled).await,
                Err(error) => (config.to_owned(), Err(error)),
            },
            None => (id.clone(), Err(UiError::NotFound)),
        };
        outcome.add(id, &name, switched)?;
    }
    let (verb, back) = if enabled { ("Switched on", "off") } else { ("Switched off", "on") };
    outcome.end_with_undo::<SwitchUsedConfigs>((verb, "config", "configs"), &[("enabled", back)])
}

#[cfg(test)]
mod tests {
    use super::{Outcome, selected};
    use crate::error::UiError;

    #[test]
    fn some_entries_are_selected() {
        let ids = |count: usize| (0..count).map(|id| id.to_string()).collect::<Vec<_>>();
        assert!(selected(ids(0), 2).is_err() && selected(ids(3), 2).is_err());
        assert_eq!(selected(ids(2), 2).unwrap().len(), 2);
        assert_eq!(selected(vec!["a".to_owned(), "a".to_owned()], 1).unwrap(), ["a"]);
    }

    #[test]
    fn the_message_names_what_failed() {
        let words = ("Paused", "export", "exports");
        let mut outcome = Outcome::default();
        outcome.add("1".to_owned(), "Lake", Ok(())).unwrap();
        assert_eq!(outcome.message(words), "Paused 1 export.");
        assert!(outcome.check(words).is_ok());
        outcome.add("2".to_owned(), "Mill", Err(UiError::Forbidden("No.".to_owned()))).unwrap();
        assert_eq!(outcome.message(words), "Paused 1 of 2 exports. Mill: No.");
        assert_eq!(outcome.check(words).unwrap_err().sentence(), outcome.message(words));
        for id in 3..9 {
            outcome.add(id.to_string(), "x", Err(UiError::NotFound)).unwrap();
        }
        assert!(outcome.message(words).ends_with(" And 2 more."));
        let failed = Outcome { done: Vec::new(), ..outcome };
        assert!(failed.message(words).starts_with("Paused none of 7 exports. Mill"));
        assert!(Outcome::default().add("1".to_owned(), "x", Err(UiError::SignInAgain)).is_err());
    }
}
