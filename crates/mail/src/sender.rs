//! Sending a message to the mail server.
//!
//! What belongs here: one delivery over SMTP. What does not: protecting the connection
//! (`line`), and when a mail is sent or retried (`weir-service`).

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use lettre::address::Envelope;
use lettre::message::header::{ContentType, ContentTypeErr};
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::extension::ClientId;
use lettre::{Address, Message as SmtpMessage};
use rustls::{ClientConfig, RootCertStore};
use weir_model::{MailId, Timestamp};

use crate::line;
use crate::message::{Message, content_id};
use crate::smtp_url::SmtpServer;
use crate::texts::Site;

/// The timeout for a mail, from opening the connection to the last answer of the server.
const LIMIT: Duration = Duration::from_secs(30);
/// The display name of the sender.
const NAME: &str = "Weir";

/// Why sending mail cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// The configured sender is not a valid address.
    #[error("`{0}` cannot be the address that mails come from; add ?from=address to smtp_url")]
    From(String),
    /// TLS cannot be set up.
    #[error("TLS for mail cannot be set up")]
    Tls(#[from] rustls::Error),
}

/// Why a message was not delivered. The texts are for logs and operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No mail server answered, or the session with it failed.
    #[error("{0}")]
    Unreachable(String),
    /// The mail server refused the message for now.
    #[error("{0}")]
    Refused(String),
    /// The message can never be sent as it is.
    #[error("{0}")]
    Hopeless(String),
}

/// Sends messages to one mail server. Cheap to clone.
#[derive(Clone)]
pub struct MailSender {
    server: SmtpServer,
    from: Mailbox,
    host: String,
    tls: Arc<ClientConfig>,
}

impl MailSender {
    /// A courier to this server, which trusts the certificate authorities of the system.
    pub fn new(server: SmtpServer, site: &Site) -> Result<Self, SetUpError> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate authority of the system cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        Self::trusting(server, site, roots)
    }

    /// A courier that trusts these certificate authorities.
    pub fn trusting(
        server: SmtpServer,
        site: &Site,
        roots: RootCertStore,
    ) -> Result<Self, SetUpError> {
        let host = site.host();
        let from = server.from.clone().unwrap_or_else(|| format!("weir@{host}"));
        let address: Address = from.parse().map_err(|_| SetUpError::From(from))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let from = Mailbox::new(Some(NAME.to_owned()), address);
        Ok(Self { server, from, host, tls: Arc::new(tls) })
    }

    /// Delivers a message. The id makes two deliveries of the same mail recognizable.
    pub async fn deliver(
        &self,
        id: MailId,
        message: &Message,
        written_at: Timestamp,
    ) -> Result<(), Failure> {
        let (sender, message) = (self.clone(), message.clone());
        // Drawing charts takes a while.
        let made =
            tokio::task::spawn_blocking(move || sender.smtp_message(id, &message, written_at));
        let smtp_message = made.await.map_err(|error| Failure::Refused(error.to_string()))??;
        match tokio::time::timeout(LIMIT, self.hand_over(&smtp_message)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => {
                let seconds = LIMIT.as_secs();
                Err(Failure::Unreachable(format!("the mail server took more than {seconds} s")))
            }
        }
    }

    /// The SMTP message to exactly one address.
    pub(crate) fn smtp_message(
        &self,
        id: MailId,
        message: &Message,
        written_at: Timestamp,
    ) -> Result<SmtpMessage, Failure> {
        let hopeless = |what: &str, error: &dyn std::fmt::Display| {
            Failure::Hopeless(format!("{what}: {error}"))
        };
        // A list, a name or a line break is not an address.
        let to: Address =
            message.to.parse().map_err(|error| hopeless("the address is none", &error))?;
        let envelope = Envelope::new(Some(self.from.email.clone()), vec![to.clone()])
            .map_err(|error| hopeless("no envelope", &error))?;
        let micros = u64::try_from(written_at.micros()).unwrap_or(0);
        let mut builder = SmtpMessage::builder()
            .envelope(envelope)
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(message.subject.clone())
            .date(UNIX_EPOCH + Duration::from_micros(micros))
            .message_id(Some(format!("<{id}@{}>", self.host)));
        if let Some((name, address)) = &message.reply_to {
            let address = address
                .parse()
                .map_err(|error| hopeless("the address for answers is none", &error))?;
            builder = builder.reply_to(Mailbox::new(Some(name.clone()), address));
        }
        let body = body(message).map_err(|error| hopeless("no images", &error))?;
        builder.multipart(body).map_err(|error| hopeless("no message", &error))
    }

    async fn hand_over(&self, message: &SmtpMessage) -> Result<(), Failure> {
        let unreachable = |error: &dyn std::error::Error| Failure::Unreachable(chain(error));
        let line = line::open(&self.server, &self.host, Arc::clone(&self.tls))
            .await
            .map_err(|error| unreachable(&error))?;
        let hello = ClientId::Domain(self.host.clone());
        let mut talk = AsyncSmtpConnection::connect_with_transport(Box::new(line), &hello)
            .await
            .map_err(|error| unreachable(&error))?;
        if let Some((user, password)) = &self.server.credentials {
            let credentials = Credentials::new(user.clone(), password.clone());
            talk.auth(&[Mechanism::Plain, Mechanism::Login], &credentials)
                .await
                .map_err(|error| unreachable(&error))?;
        }
        let sent = talk.send(message.envelope(), &message.formatted()).await;
        match sent {
            Ok(_) => {
                // The server has accepted the mail, so a fault of `QUIT` is ignored.
                let _ = talk.quit().await;
                Ok(())
            }
            Err(error) if error.is_permanent() => Err(Failure::Hopeless(chain(&error))),
            Err(error) if error.is_transient() => Err(Failure::Refused(chain(&error))),
            Err(error) => Err(unreachable(&error)),
        }
    }
}

/// Both forms of a message. The images of its charts belong to the form in HTML.
fn body(message: &Message) -> Result<MultiPart, ContentTypeErr> {
    let (plain, html) = (message.plain(), message.html());
    if message.charts().next().is_none() {
        return Ok(MultiPart::alternative_plain_html(plain, html));
    }
    let mut related = MultiPart::related().singlepart(SinglePart::html(html));
    for (number, chart) in (1..).zip(message.charts()) {
        let image = Attachment::new_inline(content_id(number));
        let image = image.body(weir_charts::png(chart), ContentType::parse("image/png")?);
        related = related.singlepart(image);
    }
    Ok(MultiPart::alternative().singlepart(SinglePart::plain(plain)).multipart(related))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests;
