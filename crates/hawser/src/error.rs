//! Why operations of a connection fail, one type for each.

use std::path::PathBuf;

use hawser_keys::PeerKey;
use thiserror::Error;

use crate::MAX_DATAGRAM;
use crate::addr::Addr;
use crate::host::PathsError;

/// Why a connection could not be set up.
///
/// ```no_run
/// # async fn example(host: hawser::Host, addr: hawser::Addr) {
/// match host.connect(addr).await {
///     Err(hawser::ConnectError::UnknownServerKey { key, .. }) => {
///         eprintln!("if {key} is the server's key, give it with `server_key`");
///     }
///     Err(error) => eprintln!("{error}"),
///     Ok(connection) => drop(connection),
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There are no paths to its AS.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The policy or the selector allows none of the paths, or no packet can be sent over them.
    #[error("no path to {addr} can be used: {reason}")]
    NoPathAllowed {
        /// The server.
        addr: Addr,
        /// Why the first one cannot.
        reason: String,
    },
    /// The server's key is not known here.
    #[error(
        "the key of {addr} is {key}, which is not known here: if that is the key its owner names, give it with `server_key`, or add a line for it to {file}",
        file = file.display()
    )]
    UnknownServerKey {
        /// The server.
        addr: Addr,
        /// The key that it shows.
        key: PeerKey,
        /// The file that has no line for it.
        file: PathBuf,
    },
    /// The server shows another key than the one that is known, or another one over one path than over
    /// others.
    #[error("{addr} shows the key {key}, not the known one (possible man-in-the-middle)")]
    WrongServerKey {
        /// The server.
        addr: Addr,
        /// The key that it shows.
        key: PeerKey,
    },
    /// The user's file of known keys cannot be used, or there is no folder for it.
    #[error("{0}")]
    KeysFile(String),
    /// The server does not allow this host's key.
    #[error("{addr} does not allow this host's key, {key}")]
    KeyRefused {
        /// The server.
        addr: Addr,
        /// The key of this host.
        key: PeerKey,
    },
    /// The server does not accept the connection.
    #[error("{addr} refuses the connection: {reason}")]
    Refused {
        /// The server.
        addr: Addr,
        /// Why.
        reason: String,
    },
    /// No path works, or no server of this protocol is there.
    #[error("{reason}")]
    Unreachable {
        /// The server.
        addr: Addr,
        /// What happened over the latest path.
        reason: String,
    },
    /// Nothing was answered within 20 s.
    #[error("no connection to {addr} within 20 s")]
    TimedOut {
        /// The server.
        addr: Addr,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

impl ConnectError {
    pub(crate) fn is_of_keys(&self) -> bool {
        matches!(
            self,
            Self::UnknownServerKey { .. }
                | Self::WrongServerKey { .. }
                | Self::KeysFile(_)
                | Self::KeyRefused { .. }
        )
    }
}

/// Why [`Connection::close`](crate::Connection::close) cannot say that the peer has received everything.
///
/// ```no_run
/// # async fn example(connection: hawser::Connection) {
/// if let Err(error) = connection.close().await {
///     eprintln!("the peer may lack the end: {error}");
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseError {
    /// The peer closed or dropped the connection before it had received everything.
    #[error("the peer closed the connection before it had received everything")]
    Peer,
    /// The connection has ended for another reason.
    #[error("the connection had ended before: {0}")]
    Lost(String),
}

/// Why a message is not sent.
///
/// ```no_run
/// # fn example(datagrams: hawser::Datagrams) {
/// let error = datagrams.send(&[0; hawser::MAX_DATAGRAM + 1]).unwrap_err();
/// assert_eq!(error, hawser::SendError::TooLarge { size: 1025 });
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// It is larger than [`MAX_DATAGRAM`].
    #[error("a message of {size} bytes: at most {MAX_DATAGRAM} can be sent")]
    TooLarge {
        /// Its size, in bytes.
        size: usize,
    },
    /// No path works now.
    #[error("no path works now")]
    NoPath,
    /// The connection has ended.
    #[error("the connection has ended")]
    Ended,
}

/// Why no message can be received.
///
/// ```no_run
/// # async fn example(datagrams: hawser::Datagrams) {
/// while let Ok(message) = datagrams.receive().await {
///     println!("{} bytes", message.len());
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The connection has ended, and all messages that arrived were received.
    #[error("the connection has ended")]
    Ended,
}
