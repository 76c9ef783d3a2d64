//! The messages that pages showed to a user in this session. They are kept for a while,
//! because a message disappears with its page.
//!
//! What belongs here: how many are kept and how long they may be. What does not: their
//! texts, and how the next page shows them (the web app).

use std::sync::Arc;

use weir_store::sessions;

pub use weir_store::sessions::Message;

use crate::ctx::{Actor, Ctx};
use crate::{Core, Result};

/// The maximum number of messages that are kept for a session.
pub const MOST: usize = 20;
/// Maximum length of a message, in characters.
const LONGEST: usize = 500;
/// Seconds within which an equal message counts as the same one: a page that redirects
/// immediately passes it to the next page.
const AGAIN_SECONDS: i64 = 5;

/// The service for messages.
#[derive(Clone)]
pub struct Messages {
    core: Arc<Core>,
}

impl Messages {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Stores a message for the session of the caller. A key has no session, so nothing
    /// happens for it.
    pub async fn put(&self, ctx: &Ctx, text: &str) -> Result<()> {
        let Actor::Session { session, .. } = &ctx.actor else { return Ok(()) };
        let message = Message { at: ctx.now, text: text.chars().take(LONGEST).collect() };
        let store = &self.core.store;
        let newest = sessions::messages(store, session).await?.into_iter().next();
        let is_again =
            |one: Message| one.text == message.text && ctx.now < one.at.plus_seconds(AGAIN_SECONDS);
        if newest.is_some_and(is_again) {
            return Ok(());
        }
        let most = i64::try_from(MOST).unwrap_or(i64::MAX);
        Ok(sessions::put_message(store, session, &message, most).await?)
    }

    /// The messages of the caller's session, newest first.
    pub async fn list(&self, ctx: &Ctx) -> Result<Vec<Message>> {
        match &ctx.actor {
            Actor::Session { session, .. } => {
                Ok(sessions::messages(&self.core.store, session).await?)
            }
            Actor::Key { .. } => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MOST;
    use crate::test_support::{ada, restarted, set_up};

    #[tokio::test]
    async fn the_newest_of_a_session_are_kept() {
        let services = set_up().await;
        let (here, elsewhere) = (ada(&services).await, ada(&services).await);
        assert!(services.messages.list(&here).await.unwrap().is_empty());
        for number in 0..=MOST {
            services.messages.put(&here, &format!("Saved {number}.")).await.unwrap();
        }
        // A session outlives the process.
        let found = restarted(&services).messages.list(&here).await.unwrap();
        assert_eq!((found.len(), found[0].at), (MOST, here.now));
        assert_eq!(found[0].text, format!("Saved {MOST}."));
        assert_eq!(found[MOST - 1].text, "Saved 1.");
        services.messages.put(&here, &found[0].text).await.unwrap();
        assert_eq!(services.messages.list(&here).await.unwrap(), found);
        assert!(services.messages.list(&elsewhere).await.unwrap().is_empty());
    }
}
