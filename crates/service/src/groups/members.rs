//! The members of a group: the persons with events of it.

use weir_model::PersonId;
use weir_model::pagination::Page;
use weir_model::persons::PersonRef;
use weir_store::counts::{self, PersonCounts};
use weir_store::persons;

use super::Groups;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::persons::display_name;

/// A page of the members of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMembers {
    /// The number of all members.
    pub count: usize,
    /// Whether that is all of them. Otherwise there are more, and their numbers are lower
    /// bounds.
    pub is_complete: bool,
    /// The members of the page, those with most events first.
    pub members: Vec<GroupMember>,
}

/// A person with events of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// The person.
    pub id: PersonId,
    /// Its display name.
    pub name: String,
    /// The counts of its events within the group.
    pub counts: PersonCounts,
}

impl Groups {
    /// A page of the members of a group. `None`: events from before an update are still
    /// being counted.
    ///
    /// # Errors
    /// [`Error::Unavailable`](crate::Error::Unavailable) while a large group is read.
    pub async fn members(
        &self,
        project: &ProjectCtx,
        index: u8,
        key: &str,
        page: Page,
    ) -> Result<Option<GroupMembers>> {
        let (store, id) = (&self.core.store, project.project);
        let Some(all) = counts::members(store, id, index, key).await? else { return Ok(None) };
        let (count, is_complete) = (all.members.len(), all.is_complete);
        let shown = page.slice(all.members.iter().collect());
        let needed = |person: PersonRef| Some((person.id, display_name(&person)));
        let ids = shown.iter().map(|member| member.person);
        let found = persons::resolve_as(store, id, ids, needed).await?;
        let member = |one: &counts::Member| {
            let (id, name) = found.get(&one.person).map(|found| (**found).clone())?;
            if id != one.person {
                // It was merged since they were read, into a member with a place of its own.
                return None;
            }
            Some(GroupMember { id, name, counts: one.counts })
        };
        let members = shown.into_iter().filter_map(member).collect();
        Ok(Some(GroupMembers { count, is_complete, members }))
    }
}
