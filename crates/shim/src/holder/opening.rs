//! The beginning of a connection to another holder.
//!
//! When the first packets of a connection are lost, or overtake each other, the kernel may have it
//! fall back to plain TCP (RFC 8684, section 3.7). Such a connection stays on one path, and Linux
//! 6.18 loses what is still to be sent when its direction is closed. The other holder sees that before
//! it connects to the server, and says so. Until it answers, what the program writes is kept, to be
//! sent again over another connection.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use hawser_endhost::patience::wait;
use hawser_mptcp::{Info, InfoError};
use thiserror::Error;

use super::network::Network;
use super::relays::{End, Failed, Relayed};
use crate::address::Slot;
use crate::protocol::{Preamble, Status, preamble};
use crate::relay::{self, Endpoint, Watched};

/// Most bytes that are written first: one segment on every path.
const MAX_FIRST_WRITE: usize = 1000;
/// Most bytes that are kept until the other holder answers; the program's further ones wait.
const MAX_KEPT: usize = 16 << 10;
/// How often a connection that falls back to plain TCP is opened again.
const ATTEMPTS: usize = 8;

/// How long a program's connection waits for a carrier and a path, and then for the other holder: as long
/// as TCP tries to connect over IP (Linux: 127 s). Time in which this process did not run is not counted.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);

/// Why a captured connection ends.
#[derive(Debug, Error)]
pub(super) enum OutgoingError {
    #[error("the listener is only for connections that are captured")]
    NotCaptured,
    #[error("{0}")]
    TooMany(String),
    #[error("{0}")]
    NoSession(String),
    #[error("the shim's holder has no MPTCP: take the shim down and bring it up again")]
    NoMptcp,
    #[error("the other host does not answer: {0}")]
    Unreachable(io::Error),
    #[error("the other host does not answer within {} s", CONNECT_TIMEOUT.as_secs())]
    Silent,
    #[error("{0}")]
    Refused(Status),
    #[error(
        "MPTCP falls back to plain TCP again and again: packets are lost before the connection exists"
    )]
    PlainTcp,
    #[error(transparent)]
    Ended(End),
    #[error("it broke: {0}")]
    Broken(#[from] io::Error),
}

impl OutgoingError {
    pub(super) fn when(&self) -> Failed {
        match self {
            Self::Broken(_) | Self::Ended(_) => Failed::Broken,
            _ => Failed::SetUp,
        }
    }
}

/// A connection that is being opened for `program`.
pub(super) struct Opening<'a> {
    program: &'a Watched,
    to: Remote<'a>,
    /// What was written to the other holder.
    kept: Vec<u8>,
    /// Whether the program writes no more.
    is_finished: bool,
}

/// The other holder, as seen from one slot of this host.
#[derive(Clone, Copy)]
pub(super) struct Remote<'a> {
    pub network: &'a Network,
    pub slot: Slot,
    pub peer: Ipv6Addr,
}

impl Remote<'_> {
    /// Begins to connect.
    ///
    /// # Errors
    /// As the system says.
    pub(super) async fn connect(self) -> Result<Arc<Watched>, OutgoingError> {
        let socket = self.network.connect(self.slot, self.peer).await;
        let socket = socket.map_err(OutgoingError::Unreachable)?;
        Ok(Arc::new(Watched::new(socket)))
    }
}

/// Whether `stream` is plain TCP, though it began as MPTCP. Known once something has arrived.
pub(super) fn is_plain_tcp(stream: &impl AsFd) -> bool {
    matches!(Info::read(stream), Err(InfoError::PlainTcp))
}

impl<'a> Opening<'a> {
    /// Begins with what the program has written so far.
    pub(super) fn new(program: &'a Watched, ends: &Preamble, to: Remote<'a>) -> Self {
        let mut kept = ends.encode().to_vec();
        kept.resize(MAX_FIRST_WRITE, 0);
        let more = program.try_read(&mut kept[preamble::LENGTH..]);
        kept.truncate(preamble::LENGTH + more.unwrap_or(0));
        Self {
            program,
            to,
            kept,
            is_finished: false,
        }
    }

    /// Waits until the server is connected to `socket`, or to another one in its place. What the
    /// program has written meanwhile was sent.
    ///
    /// # Errors
    /// When the other holder refuses, or does not answer.
    pub(super) async fn open(
        mut self,
        mut socket: Arc<Watched>,
        relayed: &Relayed,
    ) -> Result<Arc<Watched>, OutgoingError> {
        for _ in 0..ATTEMPTS {
            if self.attempt(&socket).await? {
                return Ok(socket);
            }
            tracing::debug!("a connection fell back to plain TCP");
            relay::reset(&socket);
            socket = self.to.connect().await?;
            relayed.replace(&socket);
        }
        Err(OutgoingError::PlainTcp)
    }

    /// Whether the server is connected; `false` if the connection is of no use.
    async fn attempt(&mut self, socket: &Watched) -> Result<bool, OutgoingError> {
        let connected = wait(CONNECT_TIMEOUT, socket.writable()).await;
        connected.ok_or(OutgoingError::Silent)??;
        if let Some(error) = socket.take_error()? {
            return Err(OutgoingError::Unreachable(error));
        }
        let mut written = 0;
        loop {
            relay::write_all(socket, &self.kept[written..]).await?;
            written = self.kept.len();
            let waits = !self.is_finished && written < MAX_KEPT;
            let mut status = [0];
            tokio::select! {
                read = relay::read_exact(socket, &mut status) => {
                    // Without an answer the server may have got what the program wrote: that must
                    // not be sent again.
                    read?;
                    return match Status::from_u8(status[0]) {
                        Status::FellBack => Ok(false),
                        // Never seen: both ends fall back, or none.
                        Status::Connected if is_plain_tcp(socket) => Err(OutgoingError::PlainTcp),
                        Status::Connected => Ok(true),
                        status => Err(OutgoingError::Refused(status)),
                    };
                }
                read = self.program.readable(), if waits => {
                    read?;
                    self.read_more()?;
                }
            }
        }
    }

    /// Takes what the program has written.
    fn read_more(&mut self) -> io::Result<()> {
        let length = self.kept.len();
        self.kept.resize(MAX_KEPT, 0);
        let read = self.program.try_read(&mut self.kept[length..]);
        self.kept.truncate(length + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => self.is_finished = true,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        Ok(())
    }
}
