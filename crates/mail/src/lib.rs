//! Mails: their words, their form as plain text and HTML, and handing them to a
//! mail server.
//!
//! What belongs here: from what happened ([`weir_model::mail`]) to a [`Letter`],
//! from that to a message, and SMTP. What does not: when a mail is written, tried
//! again or given up (`weir-service`), and the task that sends (the server).

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
