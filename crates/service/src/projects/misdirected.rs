//! Capture requests with an unknown key. The start page of a project shows those that
//! were certainly meant for it. They are the unknown keys that `traffic` counts for the
//! operator of the instance; nothing else is stored about them.

use std::net::IpAddr;

use weir_model::Timestamp;
use weir_model::keys::{PREFIX, PROJECT_PREFIX};
use weir_store::traffic as unknown;

use super::Projects;
use crate::Result;
use crate::ctx::ProjectCtx;
use crate::policy::{self, Action};

/// Seconds for which a request is shown.
const LATELY: i64 = 60 * 60;

/// Requests with an unknown key, from one sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrayRequest {
    /// When the last request came.
    pub at: Timestamp,
    /// The IP address of the sender, where it is known.
    pub address: Option<IpAddr>,
    /// The likely origin of the key.
    pub likeness: Likeness,
}

/// The likely origin of an unknown key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// It begins like the project's key: it was cut or changed.
    Damaged,
    /// It begins like the earlier key of the project, which does not work any more.
    Ended,
    /// It is a personal API key.
    Personal,
    /// None of these.
    Other,
}

impl Projects {
    /// The requests of the last hour with an unknown key, newest first: those whose key
    /// begins like a key of the project, and those from `visitor`, the address of the
    /// caller. Other requests may belong to any project.
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
        let store = &self.core.store;
        let since = project.org.ctx.now.plus_seconds(-LATELY);
        let previous = row.previous.as_ref().map(|previous| previous.token.as_str());
        let written = unknown::unknown_keys(store).await?;
        let noted = unknown::unite(written, &store.traffic().unknown_keys());
        let lately = noted.into_iter().filter(|key| key.last_at >= since);
        let audit_entry = lately.filter_map(|key| {
            // Dots replace the rest of the key.
            let start = key.mask.trim_end_matches('.');
            let likeness = likeness(start, &row.brief.api_token, previous);
            let address: Option<IpAddr> = key.caller.parse().ok();
            let is_theirs = matches!(likeness, Likeness::Damaged | Likeness::Ended);
            let is_visitor = visitor.is_some() && address == visitor;
            let request = StrayRequest { at: key.last_at, address, likeness };
            (is_theirs || is_visitor).then_some(request)
        });
        Ok(audit_entry.collect())
    }
}

fn likeness(start: &str, token: &str, previous: Option<&str>) -> Likeness {
    // A start that is hardly longer than the prefix fits every key.
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
