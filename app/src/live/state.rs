//! The state of a live list: connection, pause, gaps.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// Waits for the first answer.
    Connecting,
    /// Rows arrive as the server receives them.
    Live,
    /// The connection is lost. The next attempt is in this many seconds; 0: it is in
    /// progress.
    Lost(u32),
}

/// State of a live list. It is one value, because each type of signal adds code to the wasm
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LiveState {
    /// State of the connection.
    pub(super) connection: ConnectionState,
    /// Whether the server answered a test request after the connection was lost. `None`:
    /// there was no test request yet.
    pub(super) server_answers: Option<bool>,
    /// Whether new rows are held back.
    pub(super) is_paused: bool,
    /// Number of rows held back.
    pub(super) held_back: usize,
    /// Whether rows are missing: those that arrived while the connection was lost were more
    /// than the list holds, or could not be read.
    pub(super) has_gap: bool,
}
