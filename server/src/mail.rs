//! The task that sends waiting mails.
//!
//! What belongs here: connecting the outbox with the mail server. What does not: when a
//! mail is retried (`weir-service`), texts and delivery (`weir-mail`).

use std::time::Duration;

use weir_mail::{Failure, MailSender, SetUpError, Site, message};
use weir_service::Error as ServiceError;
use weir_service::mail::{Mails, SendError};

use crate::config::Config;

/// Time between two checks for mails whose next attempt is due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Wait after the outbox could not be read or written.
const PAUSE: Duration = Duration::from_secs(10);

/// Sends mail through the configured mail server.
pub struct MailWorker {
    sender: MailSender,
    site: Site,
}

impl MailWorker {
    /// The sender of mails for these settings; `None` when no mail server is configured.
    ///
    /// # Errors
    /// The sender's address is invalid, or TLS cannot be set up.
    pub fn of(config: &Config) -> Result<Option<Self>, SetUpError> {
        let Some(server) = config.smtp_url.0.clone() else { return Ok(None) };
        let Some(origin) = config.public_url.origin() else {
            tracing::warn!("public_url is not set: no mail is sent, its links would lead nowhere");
            return Ok(None);
        };
        let site = Site { origin };
        let sender = MailSender::new(server, &site)?;
        Ok(Some(Self { sender, site }))
    }

    /// Sends waiting mails as they arrive, forever.
    pub async fn send(self, mails: Mails) {
        loop {
            match self.round(&mails).await {
                // More mails may be due.
                Ok(true) => {}
                Ok(false) => {
                    // Waits for the first of both.
                    let _ = tokio::time::timeout(POLL_INTERVAL, mails.arrived()).await;
                }
                Err(error) => {
                    tracing::error!(%error, "mails are not sent for now");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Sends mails that are due, a few at a time; `false` when none was.
    async fn round(&self, mails: &Mails) -> Result<bool, ServiceError> {
        let due = mails.due().await?;
        let mut unreachable = None;
        for row in &due {
            // If the mail server is unreachable, the other mails would only wait for the
            // same error.
            let outcome = match &unreachable {
                Some(failure) => Err(Failure::clone(failure)),
                None => {
                    let message = message(&row.mail, &self.site);
                    self.sender.deliver(row.id, &message, row.created_at).await
                }
            };
            match outcome {
                Ok(()) => mails.sent(row).await?,
                Err(failure) => {
                    mails.not_sent(row, &send_error(&failure)).await?;
                    if matches!(failure, Failure::Unreachable(_)) {
                        unreachable = Some(failure);
                    }
                }
            }
        }
        Ok(!due.is_empty())
    }
}

fn send_error(failure: &Failure) -> SendError {
    match failure {
        Failure::Unreachable(reason) => SendError::Unreachable(reason.clone()),
        Failure::Refused(reason) => SendError::Refused(reason.clone()),
        Failure::Hopeless(reason) => SendError::Hopeless(reason.clone()),
    }
}
