//! Finding resources by name, in all organizations of the caller.
//!
//! What belongs here: which resources match, and how many are returned. What does not:
//! the addresses of pages (the web app).

use std::sync::Arc;

use weir_model::members::MemberQuery;
use weir_model::pagination::Page;
use weir_model::plugins::Group;
use weir_model::{BatchExportId, OrganizationId, PluginId, ProjectId};
use weir_store::exports::{self as export_rows, Of};

use crate::ctx::{Ctx, OrgCtx};
use crate::error::Error;
use crate::members::Members;
use crate::organizations::{self, Organizations};
use crate::plugins::Plugins;
use crate::policy::{self, Action};
use crate::{Core, Result};

/// The maximum number of results of each kind.
pub const MOST: usize = 8;
/// The maximum number of organizations whose members, exports and plugins are searched.
/// The names of organizations and projects are already known; the rest is read for each
/// organization.
const READ: usize = 200;
/// The maximum number of words of a search. Many names are compared with each of them.
const WORDS: usize = 10;
/// A page without a limit, because a match can be anywhere in the list.
const ALL: Page = Page { limit: u64::MAX, offset: 0 };

/// A result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The kind of the resource, with its id.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The organization of the resource, or the organization that was found.
    pub organization: OrganizationId,
    /// The name of that organization.
    pub organization_name: String,
}

/// The kind of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An organization.
    Organization,
    /// A project.
    Project(ProjectId),
    /// A member.
    Member,
    /// A batch export.
    Export(BatchExportId),
    /// A plugin, in the group that lists it.
    Plugin(Group, PluginId),
}

/// The words of a search: a text must contain every word, in any case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchWords(Vec<String>);

impl SearchWords {
    /// The different words of a text, up to ten.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut words: Vec<String> = Vec::new();
        for word in text.split_whitespace().map(str::to_lowercase) {
            if words.len() >= WORDS {
                break;
            }
            if !words.contains(&word) {
                words.push(word);
            }
        }
        Self(words)
    }

    /// Whether there are no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a text contains all of the words.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.0.iter().all(|word| text.contains(word))
    }
}

/// The service for searching.
#[derive(Clone)]
pub struct Search {
    core: Arc<Core>,
    plugins: Plugins,
}

impl Search {
    pub(crate) fn new(core: Arc<Core>, plugins: Plugins) -> Self {
        Self { core, plugins }
    }

    /// The results by kind; none without a word.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] for keys that are limited
    /// to projects.
    pub async fn find(&self, ctx: &Ctx, wanted: &SearchWords) -> Result<Vec<Hit>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let organizations = Organizations::new(Arc::clone(&self.core)).list(ctx, ALL).await?;
        let organizations = organizations.results;
        let mut hits = Vec::new();
        for one in organizations.iter().filter(|one| wanted.fits(&one.row.name)).take(MOST) {
            hits.push(Hit {
                kind: Kind::Organization,
                name: one.row.name.clone(),
                organization: one.row.id,
                organization_name: one.row.name.clone(),
            });
        }
        let projects =
            organizations.iter().flat_map(|one| one.teams.iter().map(move |team| (one, team)));
        for (one, team) in projects.filter(|(_, team)| wanted.fits(&team.name)).take(MOST) {
            hits.push(Hit {
                kind: Kind::Project(team.id),
                name: team.name.clone(),
                organization: one.row.id,
                organization_name: one.row.name.clone(),
            });
        }
        let (mut members, mut exports, mut plugins) = (Vec::new(), Vec::new(), Vec::new());
        for one in organizations.into_iter().take(READ) {
            if [&members, &exports, &plugins].into_iter().all(|found| found.len() >= MOST) {
                break;
            }
            let org = match organizations::enter(&self.core, ctx, one.row.id).await {
                Ok(org) => org,
                // It requires a second factor, or was deleted since it was listed. The
                // other organizations are still searched.
                Err(Error::SecondFactorMissing | Error::NotFound(_)) => continue,
                Err(error) => return Err(error),
            };
            let hit = |(kind, name)| Hit {
                kind,
                name,
                organization: one.row.id,
                organization_name: one.row.name.clone(),
            };
            // A kind with enough results is not read any more.
            if members.len() < MOST {
                members.extend(self.members(&org, wanted).await?.into_iter().map(hit));
            }
            if exports.len() < MOST {
                exports.extend(self.exports(&org, wanted).await?.into_iter().map(hit));
            }
            if plugins.len() < MOST {
                plugins.extend(self.plugins(&org, wanted).await?.into_iter().map(hit));
            }
        }
        for found in [members, exports, plugins] {
            hits.extend(found.into_iter().take(MOST));
        }
        Ok(hits)
    }

    async fn members(&self, org: &OrgCtx, wanted: &SearchWords) -> Result<Vec<(Kind, String)>> {
        let members = Members::new(Arc::clone(&self.core));
        let found = members.list(org, &MemberQuery::default(), ALL).await?.results.into_iter();
        let named = found.map(|member| {
            let user = member.user;
            let name = format!("{} {}", user.first_name, user.last_name);
            format!("{} ({})", name.trim(), user.email)
        });
        Ok(named.filter(|name| wanted.fits(name)).map(|name| (Kind::Member, name)).collect())
    }

    async fn exports(&self, org: &OrgCtx, wanted: &SearchWords) -> Result<Vec<(Kind, String)>> {
        policy::check(org, Action::ReadExports)?;
        let store = &self.core.store;
        let ids = export_rows::ordered(store, Of::Organization(org.organization)).await?;
        let found = export_rows::briefs(store, org.organization, &ids).await?.into_iter();
        let fitting = found.filter(|row| wanted.fits(&row.name));
        Ok(fitting.map(|row| (Kind::Export(row.id), row.name)).collect())
    }

    /// The matching plugins; none where the organization is not allowed to see plugins.
    async fn plugins(&self, org: &OrgCtx, wanted: &SearchWords) -> Result<Vec<(Kind, String)>> {
        let mut fitting: Vec<(Kind, String)> = Vec::new();
        for group in Group::ALL {
            let found = match self.plugins.list(org, group, ALL).await {
                Ok(found) => found.results,
                Err(Error::Forbidden(_)) => return Ok(Vec::new()),
                Err(error) => return Err(error),
            };
            for plugin in found {
                let name = plugin.fields.name.unwrap_or_default();
                // A plugin in several groups is returned once.
                let known = fitting
                    .iter()
                    .any(|(kind, _)| matches!(kind, Kind::Plugin(_, id) if *id == plugin.id));
                if wanted.fits(&name) && !known {
                    fitting.push((Kind::Plugin(group, plugin.id), name));
                }
            }
        }
        Ok(fitting)
    }
}

#[cfg(test)]
mod tests {
    use weir_model::organizations::Level;

    use super::{Ctx, Kind, MOST, SearchWords};
    use crate::test_support::{ada, join, organization, outsider, set_up};

    #[test]
    fn every_word_must_be_there() {
        let wanted = SearchWords::new("  Nightly COPY ");
        assert!(wanted.fits("Copy to the warehouse, nightly"));
        assert!(!wanted.fits("Nightly"));
        assert!(SearchWords::new("  ").is_empty());
    }

    #[test]
    fn words_count_once_and_only_the_first_ten() {
        assert_eq!(SearchWords::new("a A b a"), SearchWords::new("a b"));
        assert_eq!(
            SearchWords::new("1 2 3 4 5 6 7 8 9 1 10 11 12"),
            SearchWords::new("1 2 3 4 5 6 7 8 9 10")
        );
    }

    #[tokio::test]
    async fn people_find_what_they_see() {
        let services = set_up().await;
        let ada = ada(&services).await;
        // Records of the same moment have no defined order.
        let later = Ctx { now: ada.now.plus_seconds(1), ..ada.clone() };
        let second = organization(&services, &later, "Tea House").await;
        let found = services.search.find(&ada, &SearchWords::new("tea")).await.unwrap();
        let named: Vec<_> = found.iter().map(|hit| (hit.kind, hit.name.as_str())).collect();
        assert_eq!(
            named,
            [(Kind::Organization, "Acme Tea"), (Kind::Organization, "Tea House")],
            "{found:?}"
        );
        assert_eq!(found[1].organization, second);
        let found = services.search.find(&ada, &SearchWords::new("shop")).await.unwrap();
        assert!(matches!(found[0].kind, Kind::Project(_)));
        assert_eq!(found[0].organization_name, "Acme Tea");
        let found = services.search.find(&ada, &SearchWords::new("ada.l@")).await.unwrap();
        // Once for each organization.
        assert!(found.len() == 2 && found.iter().all(|hit| hit.kind == Kind::Member));

        let eve = outsider(&services, "eve").await;
        assert!(services.search.find(&eve, &SearchWords::new("tea")).await.unwrap().is_empty());
        assert!(services.search.find(&ada, &SearchWords::new(" ")).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn all_organizations_are_searched_until_enough_was_found() {
        let services = set_up().await;
        let ada = ada(&services).await;
        for at in 0..12 {
            let home = organization(&services, &ada, &format!("House {at}")).await;
            let guest = outsider(&services, &format!("guest-{at:02}")).await;
            join(&services, home, &guest, Level::Member).await;
        }
        let searched = async |text: &str| services.search.find(&ada, &SearchWords::new(text)).await;
        for at in 0..12 {
            let found = searched(&format!("guest-{at:02}@")).await.unwrap();
            assert_eq!(found.len(), 1, "{at}");
            assert_eq!(found[0].organization_name, format!("House {at}"));
            assert_eq!(found[0].kind, Kind::Member);
        }
        assert_eq!(searched("guest").await.unwrap().len(), MOST);
    }
}
