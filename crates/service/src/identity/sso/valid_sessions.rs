//! Which sessions are valid, by the rule of the domain of their user's address (SSO-31).
//!
//! What belongs here: comparing a session with the rule, and ending the sessions that the
//! rule refuses. What does not: how long a session lasts (`sessions`), and changing the rule
//! (`domains`).

use std::time::{Duration, Instant};

use weir_model::sso::OpenedBy;
use weir_store::sessions::{self, SessionRow};

use super::{domain_of, is_required};
use crate::identity::sessions::has_ended;
use crate::identity::{Identity, emails};
use crate::{Core, Result};

impl Identity {
    /// Ends the sessions that have expired or that a rule refuses. Begins with `part`: 0, or
    /// the result of the previous call. Returns the part to continue with; `None`: all
    /// sessions were checked. No further part begins after `within`.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn end_refused_sessions(&self, part: u8, within: Duration) -> Result<Option<u8>> {
        self.core.end_refused_sessions(part, within).await
    }
}

impl Core {
    /// The session with this hash, if it is valid: its user is active, and the domain of the
    /// user's address allows how it was opened. So a session with a password becomes invalid
    /// when its domain requires a provider. A session of a linked account at that provider
    /// becomes invalid if the account does not have the user's address.
    pub(in crate::identity) async fn valid_session(
        &self,
        hash: &str,
    ) -> Result<Option<SessionRow>> {
        let found = sessions::of_active_user(&self.store, hash, domain_of).await?;
        let Some((session, email, domain)) = found else { return Ok(None) };
        let proves = session.proves.as_deref() == Some(&*emails::normalise(&email));
        let is_valid = match (&domain, session.opened_by) {
            (None, _) | (_, OpenedBy::Operator) => true,
            (Some(domain), opened_by) => match self.in_force(domain).await? {
                None => true,
                Some(sso) => match opened_by {
                    OpenedBy::Connection(connection) => {
                        proves && is_required(domain, sso, connection)
                    }
                    OpenedBy::Password | OpenedBy::Operator | OpenedBy::Passkey => false,
                },
            },
        };
        Ok(is_valid.then_some(session))
    }

    /// As [`Identity::end_refused_sessions`].
    pub(crate) async fn end_refused_sessions(
        &self,
        part: u8,
        within: Duration,
    ) -> Result<Option<u8>> {
        let until = Instant::now() + within;
        for part in part..=u8::MAX {
            if Instant::now() >= until {
                return Ok(Some(part));
            }
            for (hash, user) in sessions::part(&self.store, part).await? {
                let valid = self.valid_session(&hash).await?;
                if valid.is_none_or(|session| has_ended(&session, self.clock.now())) {
                    sessions::delete(&self.store, user, &hash).await?;
                }
            }
        }
        Ok(None)
    }
}
