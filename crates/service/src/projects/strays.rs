//! Requests to capture whose key no project has: the last few, in memory. The start
//! page of a project tells of those that were surely meant for it.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use weir_model::Timestamp;
use weir_model::keys::{PREFIX, PROJECT_PREFIX};

use super::Projects;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::policy::{self, Action};

/// Requests that are remembered.
const KEPT: usize = 50;
/// Characters of a key that are remembered: enough to know a key by.
const START: usize = PROJECT_PREFIX.len() + 8;
/// Seconds for which a request is told of.
const LATELY: i64 = 60 * 60;

/// The last requests with a key that no project has.
#[derive(Debug, Default)]
pub(super) struct Strays(Mutex<VecDeque<Stray>>);

#[derive(Debug, Clone)]
struct Stray {
    at: Timestamp,
    address: Option<IpAddr>,
    /// The beginning of the key; of one that may be a secret only its kind.
    start: String,
}

/// A request with another key than those of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrayRequest {
    /// When.
    pub at: Timestamp,
    /// From where.
    pub address: Option<IpAddr>,
    /// What the key was like.
    pub likeness: Likeness,
}

/// What a key that no project has is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// It begins like the project's key: it was cut or changed.
    Damaged,
    /// It begins like the key that the project had before, which has ended.
    Ended,
    /// It is a personal API key.
    Personal,
    /// It is like none of them.
    Other,
}

impl Projects {
    /// Notes a request with a key that no project has.
    pub fn note_stray(&self, token: &str, address: Option<IpAddr>, now: Timestamp) {
        let known = token.starts_with(PROJECT_PREFIX) || PROJECT_PREFIX.starts_with(token);
        let length = if known { START } else { PREFIX.len() };
        let start: String = token.chars().take(length).collect();
        let mut kept = self.strays.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(KEPT - 1);
        kept.push_front(Stray { at: now, address, start });
    }

    /// The requests of the last hour with a key that no project has, newest first:
    /// those whose key begins like one of the project, and those from `visitor`,
    /// the address of whoever asks. Others may be anybody's.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope).
    pub async fn strays(
        &self,
        project: &ProjectCtx,
        visitor: Option<IpAddr>,
    ) -> Result<Vec<StrayRequest>> {
        policy::check(&project.org, Action::ReadProject)?;
        let row = self.row(project).await?;
        let since = project.org.ctx.now.plus_seconds(-LATELY);
        let previous = row.previous.as_ref().map(|previous| previous.token.as_str());
        let kept = self.strays.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = kept.iter().filter(|stray| stray.at >= since);
        let told = lately.filter_map(|stray| {
            let likeness = likeness(&stray.start, &row.brief.api_token, previous);
            let is_theirs = matches!(likeness, Likeness::Damaged | Likeness::Ended);
            let is_visitor = visitor.is_some() && stray.address == visitor;
            let request = StrayRequest { at: stray.at, address: stray.address, likeness };
            (is_theirs || is_visitor).then_some(request)
        });
        Ok(told.collect())
    }
}

fn likeness(start: &str, token: &str, previous: Option<&str>) -> Likeness {
    // A start that says nothing more than the kind is like every key.
    let tells = start.len() > PROJECT_PREFIX.len() + 3;
    if tells && token.starts_with(start) {
        Likeness::Damaged
    } else if tells && previous.is_some_and(|previous| previous.starts_with(start)) {
        Likeness::Ended
    } else if start.starts_with(PREFIX) {
        Likeness::Personal
    } else {
        Likeness::Other
    }
}

#[cfg(test)]
mod tests {
    use super::{Likeness, likeness};

    #[test]
    fn likenesses() {
        for (start, expected) in [
            ("phc_abcdefgh", Likeness::Damaged),
            ("phc_abcd", Likeness::Damaged),
            ("phc_", Likeness::Other),
            ("phc_zyxwvuts", Likeness::Ended),
            ("phx_", Likeness::Personal),
            ("what", Likeness::Other),
        ] {
            let found = likeness(start, "phc_abcdefghijkl", Some("phc_zyxwvutsrq"));
            assert_eq!(found, expected, "{start}");
        }
    }
}
