//! JavaScript of members, in child processes (ADR 9, PLG-38).
//!
//! ```text
//! Pool ── lane ──► child: one thread, one QuickJS runtime per program
//!   │ ◄── calls ──┘   no files, no network, limits of memory and time
//!   ▼
//!  ScriptHost: decides what a call does
//! ```
//!
//! What belongs here: the child process, its protocol, the pool of child processes,
//! limits, and the environment of plugins (PLG-28). Sources are compiled in child
//! processes too. What does not: projects, the store, the network, and when code is
//! called (`weir-plugins`).
//!
//! Invariant: there are as many results as events, independent of the script. Invariant:
//! the parent process refuses every call that a program was not granted.

mod answer;
mod error;
mod host;
mod json;
mod numbers;
mod pool;
mod program;
mod wire;
pub mod worker;

pub use answer::{Capabilities, Delivered, Failure, Outcome, Transformed, Webhook};
pub use error::{ErrorKind, Fault, ScriptError};
pub use host::{HostCall, LogLevel, MetricOp, NoHost, ScriptHost};
pub use pool::{Limits, Pool, PoolSettings};
pub use program::{
    Attachment, DeliveryFunction, Grants, Meta, Program, ProgramKey, Source, Task,
    TransformationCall,
};
pub use wire::{Confinement, Probe};
