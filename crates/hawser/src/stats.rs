//! What the paths of a connection carry.

use std::time::Duration;

use hawser_path::Fingerprint;

/// Whether something is sent over a path of a connection.
///
/// ```
/// assert_ne!(hawser::PathState::Used, hawser::PathState::Held);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathState {
    /// It is used.
    Used,
    /// It is connected, and nothing is sent over it for now.
    Held,
}

/// What one path of a [`Connection`](crate::Connection) carries, and what is known of it.
///
/// ```no_run
/// # fn example(connection: hawser::Connection) {
/// for path in connection.stats() {
///     println!("{} {:?} {} bytes", path.path.short(), path.rtt, path.bytes_sent);
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathStats {
    /// The path.
    pub path: Fingerprint,
    /// Whether something is sent over it.
    pub state: PathState,
    /// Its smoothed round-trip time.
    pub rtt: Duration,
    /// Bytes of the stream sent over it, with those that were sent again.
    pub bytes_sent: u64,
    /// Bytes of QUIC packets received over it, headers and acknowledgements included.
    pub bytes_received: u64,
    /// Bytes that congestion control lets be under way.
    pub congestion_window: u64,
    /// QUIC packets sent over it.
    pub packets_sent: u64,
    /// How many of them count as lost.
    pub packets_lost: u64,
}
