//! The Model Context Protocol (MCP), through which models use tools (ADR 30).
//!
//! ```text
//! model -stdio-> bridge -HTTP-> host
//!       ----------HTTP--------> host
//! ```
//!
//! What belongs here: the messages of the protocol, its versions, and `weir mcp`, which
//! passes messages from standard input to a host. What does not: the tools, and who may use
//! them (the server).
//!
//! A message is read the same way by the host and by the bridge. Nothing here keeps a state
//! between two requests.

mod bridge;
mod error;
mod host;
mod message;
mod reply;
mod versions;

pub use bridge::{Arguments, run};
pub use error::BridgeError;
pub use message::{ID_MAX, Id, Message, Refused, Request};
pub use reply::{Empty, Fault, Reply, Tool, ToolList, ToolResult};
pub use versions::{Initialized, VERSIONS, is_supported};
