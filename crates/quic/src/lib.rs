//! QUIC connections, each pinned to one SCION path.

mod config;
mod connection;
mod endpoint;
mod stream;

pub use config::Config;
pub use connection::{CloseReason, Connection, OpenStreamError, PeerKey, SetPathError, Stats};
pub use endpoint::{BindError, ConnectError, Endpoint};
pub use stream::{FinishError, ReadError, RecvStream, SendStream, WriteError};
