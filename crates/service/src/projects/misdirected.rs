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
pub struct UnknownKeyRequest {
    /// When the last request came.
    pub at: Timestamp,
    /// The IP address of the sender, where it is known.
    pub address: Option<IpAddr>,
    /// The likely origin of the key.
    pub likeness: LikelyOrigin,
}

/// The likely origin of an unknown key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikelyOrigin {
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
    ) -> Result<Vec<UnknownKeyRequest>> {
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
            let is_theirs = matches!(likeness, LikelyOrigin::Damaged | LikelyOrigin::Ended);
            let is_visitor = visitor.is_some() && address == visitor;
            let request = UnknownKeyRequest { at: key.last_at, address, likeness };
            (is_theirs || is_visitor).then_some(request)
        });
        Ok(audit_entry.collect())
    }
}

fn likeness(start: &str, token: &str, previous: Option<&str>) -> LikelyOrigin {
    // A start that is hardly longer than the prefix fits every key.
    let tells = start.len() > PROJECT_PREFIX.len() + 3;
    if tells && token.starts_with(start) {
        LikelyOrigin::Damaged
    } else if tells && previous.is_some_and(|previous| previous.starts_with(start)) {
        LikelyOrigin::Ended
    } else if start.starts_with(PREFIX) {
        LikelyOrigin::Personal
    } else {
        LikelyOrigin::Other
    }
}

#[cfg(test)]
mod tests {
    use super::{LikelyOrigin, likeness};

    #[test]
    fn likenesses() {
        for (start, expected) in [
            ("phc_abcdefgh", LikelyOrigin::Damaged),
            ("phc_abcd", LikelyOrigin::Damaged),
            ("phc_", LikelyOrigin::Other),
            ("phc_zyxwvuts", LikelyOrigin::Ended),
            ("phx_", LikelyOrigin::Personal),
            ("what", LikelyOrigin::Other),
        ] {
            let found = likeness(start, "phc_abcdefghijkl", Some("phc_zyxwvutsrq"));
            assert_eq!(found, expected, "{start}");
        }
    }
}
