//! The task that sends the mails that wait.
//!
//! What belongs here: joining the outbox with the mail server. What does not:
//! when a mail is tried again (`weir-service`), words and delivery (`weir-mail`).

use std::time::Duration;

use weir_mail::{Courier, Failure, SetUpError, Site, letter};
use weir_service::Error as ServiceError;
use weir_service::mail::{Mails, Setback};

use crate::config::Config;

/// Time between two looks for mails whose next try is due.
const LOOK: Duration = Duration::from_secs(1);
/// Time to wait when the outbox cannot be read or written.
const PAUSE: Duration = Duration::from_secs(10);

/// What sends mail, when the settings say how.
pub struct Post {
    courier: Courier,
    site: Site,
}

impl Post {
    /// The post of these settings; `None` when no mail is sent.
    ///
    /// # Errors
    /// The sender's address is none, or TLS cannot be set up.
    pub fn of(config: &Config) -> Result<Option<Self>, SetUpError> {
        let Some(server) = config.smtp_url.0.clone() else { return Ok(None) };
        let Some(origin) = config.public_url.origin() else {
            tracing::warn!("public_url is not set: no mail is sent, its links would lead nowhere");
            return Ok(None);
        };
        let site = Site { origin };
        let courier = Courier::new(server, &site)?;
        Ok(Some(Self { courier, site }))
    }

    /// Sends what waits, as it comes, for ever.
    pub async fn send(self, mails: Mails) {
        loop {
            match self.round(&mails).await {
                // There may be more.
                Ok(true) => {}
                Ok(false) => {
                    // Whichever comes first.
                    let _ = tokio::time::timeout(LOOK, mails.arrived()).await;
                }
                Err(error) => {
                    tracing::error!(%error, "mails are not sent for now");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Tries what is due, some at a time; `false` when nothing was.
    async fn round(&self, mails: &Mails) -> Result<bool, ServiceError> {
        let due = mails.due().await?;
        let mut unreachable = None;
        for row in &due {
            // The others would wait as long for the same answer.
            let outcome = match &unreachable {
                Some(failure) => Err(Failure::clone(failure)),
                None => {
                    let letter = letter(&row.mail, &self.site);
                    self.courier.deliver(row.id, &letter, row.created_at).await
                }
            };
            match outcome {
                Ok(()) => mails.sent(row).await?,
                Err(failure) => {
                    mails.not_sent(row, &setback(&failure)).await?;
                    if matches!(failure, Failure::Unreachable(_)) {
                        unreachable = Some(failure);
                    }
                }
            }
        }
        Ok(!due.is_empty())
    }
}

fn setback(failure: &Failure) -> Setback {
    match failure {
        Failure::Unreachable(reason) => Setback::Unreachable(reason.clone()),
        Failure::Refused(reason) => Setback::Refused(reason.clone()),
        Failure::Hopeless(reason) => Setback::Hopeless(reason.clone()),
    }
}
