//! Mails: their texts, their form as plain text and HTML, and sending them to a mail
//! server.
//!
//! What belongs here: turning a mail ([`weir_model::mail`]) into a [`Message`] and a
//! message into an SMTP message, and SMTP. What does not: drawing charts (`weir-charts`),
//! when a mail is stored, retried or given up (`weir-service`), and the task that sends (the
//! server).

mod line;
mod message;
mod reports;
mod sender;
mod smtp_url;
mod texts;

#[cfg(test)]
mod tests;

pub use message::{Message, Part};
pub use sender::{Failure, MailSender, SetUpError};
pub use smtp_url::{Security, SmtpServer, SmtpUrl};
pub use texts::{Site, message};
