//! Responses of identity providers and of attackers, and the outcome of each.

mod certificates;
mod checks;
mod corpus;
mod hostile;
mod requests;
mod texts;

// The file `checks`, which the fuzz target includes, refers to these names.
use crate::{
    Certificate, Check, CheckOutcome, Connection, Outcome, PendingLogin, Received, Remembered,
    ReplayCache, ReplayUnavailable, ServiceProvider,
};
