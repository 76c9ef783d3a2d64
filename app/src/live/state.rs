//! The state of a live list: connection, pause, gaps.

/// State of the connection.
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

/// State of a live list. It is one value, because each type of signal is code.
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
    pub(super) waiting: usize,
    /// Whether the last gap was larger than the list, or was not filled.
    pub(super) has_gap: bool,
}
