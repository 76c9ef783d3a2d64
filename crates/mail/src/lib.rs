//! Mails: their texts, their form as plain text and HTML, and sending them to a mail
//! server.
//!
//! What belongs here: turning a mail ([`weir_model::mail`]) into a [`Letter`] and a
//! letter into a message, and SMTP. What does not: when a mail is stored, retried or
//! given up (`weir-service`), and the task that sends (the server).

mod courier;
mod letter;
mod line;
mod smtp_url;
mod words;

#[cfg(test)]
mod tests;

pub use courier::{Courier, Failure, SetUpError};
pub use letter::{Letter, Part};
pub use smtp_url::{Security, SmtpServer, SmtpUrl};
pub use words::{Site, letter};
