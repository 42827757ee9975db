//! Why a carrier cannot work.

use std::io;

use hawser_quic::BindError;
use thiserror::Error;

/// Why the carrier cannot work.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CarrierError {
    /// The socket for connections cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The socket for datagrams cannot be bound, or its threads cannot be started.
    #[error("cannot open the socket for datagrams: {0}")]
    Socket(String),
    /// The thread that reads captured packets cannot be started.
    #[error("cannot start to read captured packets: {0}")]
    Packets(#[source] io::Error),
    /// The holder works without MPTCP, which is wanted.
    #[error(
        "the shim's connections are held without MPTCP ({0}): take it down first (`hawser shim down`)"
    )]
    NoMptcp(String),
    /// Something has ended without which it does not work.
    #[error(
        "the shim does not work any more: {0}: bring it up again, its connections wait for that"
    )]
    Stopped(String),
    /// The holder has ended.
    #[error("the holder of the shim's connections has ended: bring the shim up again")]
    HolderEnded,
}
