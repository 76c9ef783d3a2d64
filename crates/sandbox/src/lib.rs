//! JavaScript of members, in child processes (ADR 9, PLG-38).
//!
//! ```text
//! Pool ── lane ──► child: one thread, one QuickJS runtime per program
//!   │ ◄── calls ──┘   no files, no network, limits of memory and time
//!   ▼
//!  Host: decides what a call does
//! ```
//!
//! What belongs here: the child's life, what crosses the border, the pool of
//! children, limits, and the environment that plugins find (PLG-28). Sources are
//! compiled in children too. What does not: projects, the store, the network, when
//! something is called.
//!
//! Invariant: as many events come out as went in, whatever a script does.
//! Invariant: a call that a program was not granted is refused in the parent.

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
pub use host::{Host, HostCall, LogLevel, MetricOp, NoHost};
pub use pool::{Limits, Pool, PoolSettings};
pub use program::{Attachment, Delivery, Grants, Meta, Program, ProgramKey, Source, Step, Task};
pub use wire::{Confinement, Probe};
