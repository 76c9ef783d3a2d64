//! Reading groups (API-47).
//!
//! What belongs here: finding and listing. What does not: creating groups from events
//! (`weir-ingest`).

mod activity;
mod members;

use std::sync::Arc;
use std::time::Duration;

use weir_model::groups::{Group, GroupCursor, GroupQuery};
use weir_store::{ByteBudget, groups as rows};

use crate::ctx::ProjectCtx;
use crate::error::{Error, NOT_FOUND};
use crate::scan::{ScanStep, scan_limits};
use crate::{Core, Result};

pub use self::activity::GroupActivity;
pub use self::members::{GroupMember, GroupMembers};

/// The service for groups.
#[derive(Clone)]
pub struct Groups {
    core: Arc<Core>,
}

impl Groups {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The names of the group types, in order of their indexes.
    pub async fn types(&self, project: &ProjectCtx) -> Result<Vec<String>> {
        Ok(rows::types(&self.core.store, project.project).await?)
    }

    /// The index of a group type.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn index(&self, project: &ProjectCtx, kind: &str) -> Result<u8> {
        let types = self.types(project).await?;
        let index = (0_u8..).zip(&types).find(|(_, name)| *name == kind).map(|(index, _)| index);
        index.ok_or(Error::NotFound(NOT_FOUND))
    }

    /// A group by the name of its type and its key.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn get(&self, project: &ProjectCtx, kind: &str, key: &str) -> Result<Group> {
        let index = self.index(project, kind).await?;
        let keys = [(index, key)];
        let found =
            rows::by_keys(&self.core.store, project.project, &keys, &mut ByteBudget::of(1)).await?;
        let found = found.into_iter().next().ok_or(Error::NotFound(NOT_FOUND))?;
        Ok(found.group)
    }

    /// Groups with the names of their types, by type, from a cursor on. Searches no
    /// longer than `within`.
    pub async fn list(
        &self,
        project: &ProjectCtx,
        query: &GroupQuery,
        within: Duration,
    ) -> Result<ScanStep<(String, Group), GroupCursor>> {
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let limits = scan_limits(query.offset, within);
        let search = query.search.as_ref().map(|search| search.to_lowercase());
        let mut passed = 0;
        let mut wanted = |group: &Group| {
            let within = |text: &str| match &search {
                Some(search) => text.to_lowercase().contains(search),
                None => true,
            };
            if !within(&group.key) && !within(&group.properties) {
                return false;
            }
            passed += 1;
            passed > query.offset
        };
        let (begin, mut from) = match query.after {
            Some(GroupCursor { index, hash }) => (index, Some(hash)),
            None => (0, None),
        };
        let mut found = Vec::new();
        for (index, kind) in (0_u8..).zip(self.types(project).await?) {
            let is_requested = query.group_type.as_ref().is_none_or(|requested| *requested == kind);
            if index < begin || !is_requested {
                continue;
            }
            let at = from.take();
            let room = limit - found.len();
            let store = &self.core.store;
            let page =
                rows::page(store, project.project, index, at, room, limits, &mut wanted).await?;
            found.extend(page.groups.into_iter().map(|group| (kind.clone(), group)));
            if let Some(hash) = page.next {
                let rest = query.offset.saturating_sub(passed);
                return Ok(ScanStep { found, next: Some((GroupCursor { index, hash }, rest)) });
            }
        }
        Ok(ScanStep { found, next: None })
    }
}
