//! Connections over several SCION paths at once, which survive the loss of all but one.
//!
//! ```no_run
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let host = hawser::Host::bootstrap().await?;
//! let server = "1-ff00:0:110,10.0.0.1:31000".parse()?;
//! let key = "SHA256:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse()?;
//! let mut connection = host.connect(server).server_key(key).paths(4).await?;
//! connection.write_all(b"hello").await?;
//! let mut answer = [0; 5];
//! connection.read_exact(&mut answer).await?;
//! connection.close().await?;
//! # Ok(()) }
//! ```
//!
//! - [`Host`]: this host in its AS. It finds [`Path`]s to other ASes, [connects](Host::connect), and
//!   [listens](Host::bind).
//! - [`Connection`]: one reliable, ordered stream of bytes in each direction, and datagrams
//!   ([`Datagrams`]), over several paths to one peer. A [`Policy`] says which paths it may use, a
//!   [`PathSelector`] which it prefers; both sides can watch its [`PathEvents`] and [`PathStats`].
//! - [`Listener`]: accepts connections of hosts whose keys are allowed.
//!
//! # What a connection survives
//!
//! Each path of a connection has a QUIC connection of its own. A block of the stream goes over the path
//! that delivers it first. What a path has not delivered when it is lost, or late, is sent again over the
//! others: as long as one path works, nothing is lost and nothing is reordered. If no path works, the
//! connection waits [`MAX_OUTAGE`] for one to come back, and then ends with an error. It does not outlive
//! either of its two processes.
//!
//! # Who may connect
//!
//! Both sides show a key, and prove that they hold it. A client trusts the server keys that it is given
//! ([`Connect::server_key`]), or else those in the user's file `known_hosts`; a listener allows the keys
//! that it is given ([`Bind::allow`]), or else those in the user's file `allowed_keys`. These are the files
//! of the program `hawser`, in `$XDG_CONFIG_HOME/hawser` or `~/.config/hawser`.
//!
//! # Runtime
//!
//! All functions must be called inside a tokio runtime with I/O and time enabled. Each [`Host`] and each
//! [`Listener`] has a UDP socket and a thread that receives its packets.
//!
//! # The protocol between two libraries
//!
//! It is of this crate alone; the program `hawser` does not speak it. Numbers are in network byte order.
//!
//! A session is a set of QUIC connections with the ALPN `hawser-session/1`, one per path, all begun by
//! the client. On each, the client opens one bidirectional stream and sends a *greeting* of 58 bytes:
//!
//! | bytes | field |
//! | --- | --- |
//! | 1 | version, 1 |
//! | 1 | 1 if the server has accepted a greeting of this session before, or else 0 |
//! | 16 | session id, random |
//! | 32 | session secret, random |
//! | 8 | what the client calls the path |
//!
//! The server answers with 10 bytes: the version, a status, and in 8 bytes what it calls the path. The
//! statuses are 0: accepted; 1: the session is unknown here, though it was accepted before; 2: the
//! session is another host's; 3: too many sessions or paths; 4: the session has ended.
//!
//! A greeting with an unknown session id begins a session. One with a known id joins it, if the
//! connection shows the same client key as the first one did, and if the secret is the same. The
//! client sends the greeting only to a server whose key it trusts, and in one session only to one key. So
//! neither another host nor somebody on a path can join.
//!
//! Behind greeting and answer both sides send frames in the format of the crate `hawser-streams`, without
//! its Hello. There is one stream of bytes, number 0, which the client opens; its first byte is 1 and is
//! not the application's. Messages are QUIC datagrams (RFC 9221) of at most [`MAX_DATAGRAM`] bytes.
//!
//! A side that closes the session closes all QUIC connections with an application error code: 16 if
//! it has received everything up to the other side's end, 17 if it has not, 18 if it gave up without
//! waiting for what it had written, 19 after an offence against the protocol. A server closes a connection
//! with code 32 if the client's key is not allowed. Any other end of a QUIC connection ends
//! the path alone.
//!
//! ## What strangers can cost
//!
//! A host whose key is not allowed costs a QUIC handshake; these are bounded by `hawser-quic`: 64 at a
//! time, and a fixed sum of memory for all connections that are not greeted. A greeting must come within
//! 5 s. A listener has at most [`MAX_SESSIONS`] sessions, of which one key has at most
//! [`MAX_SESSIONS_PER_KEY`]; a session has at most [`MAX_PATHS`] paths and keeps up to 16 MiB of stream
//! data that was not read, and 256 messages. A session whose stream does not begin within 10 s ends.

mod addr;
mod connect;
mod connection;
mod datagrams;
mod error;
mod event;
mod events;
#[cfg(test)]
mod fuzz;
mod host;
mod identity;
mod listener;
mod path;
mod policy;
mod registry;
mod selector;
mod server;
mod session;
mod stats;
mod trust;
mod wire;

pub use hawser_keys::{PeerKey, PeerKeyError};
pub use hawser_path::{Fingerprint, FingerprintParseError};

pub use self::addr::{Addr, AddrParseError, Interface, IsdAs, IsdAsParseError};
pub use self::connect::Connect;
pub use self::connection::{Connection, ReadHalf, WriteHalf};
pub use self::datagrams::Datagrams;
pub use self::error::{CloseError, ConnectError, ReceiveError, SendError};
pub use self::event::{PathChange, PathEvent, PathReason};
pub use self::events::PathEvents;
pub use self::host::{BootstrapError, Host, HostOptions, PathsError};
pub use self::identity::{Identity, IdentityError};
pub use self::listener::{Bind, BindError, Listener};
pub use self::path::{Path, PathStatus};
pub use self::policy::{Policy, PolicyError};
pub use self::selector::PathSelector;
pub use self::stats::{PathState, PathStats};

use std::time::Duration;

/// Longest time for which a [`Connection`] waits for a path to come back when none works, 30 s, without
/// the time in which this process did not run.
///
/// ```
/// assert_eq!(hawser::MAX_OUTAGE.as_secs(), 30);
/// ```
pub const MAX_OUTAGE: Duration = Duration::from_secs(30);

/// Largest message that [`Datagrams`] carry over any path, in bytes.
///
/// ```
/// assert_eq!(hawser::MAX_DATAGRAM, 1024);
/// ```
pub const MAX_DATAGRAM: usize = 1024;

/// Most paths of one [`Connection`] at once.
///
/// ```
/// assert_eq!(hawser::MAX_PATHS, 32);
/// ```
pub const MAX_PATHS: usize = 32;

/// Most connections of one [`Listener`] at once.
///
/// ```
/// assert_eq!(hawser::MAX_SESSIONS, 1024);
/// ```
pub const MAX_SESSIONS: usize = 1024;

/// Most connections of one [`Listener`] at once that one key has.
///
/// ```
/// assert_eq!(hawser::MAX_SESSIONS_PER_KEY, 64);
/// ```
pub const MAX_SESSIONS_PER_KEY: usize = 64;
