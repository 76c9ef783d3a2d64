//! Responses of identity providers and of attackers, and what becomes of each.

mod certificates;
mod corpus;
mod hostile;
mod outcomes;
mod requests;
mod texts;

// The file `outcomes`, which the fuzz target includes, refers to these names.
use crate::{
    Certificate, Check, CheckOutcome, Connection, Outcome, PendingLogin, Received, Remembered,
    ReplayCache, ReplayUnavailable, ServiceProvider,
};
