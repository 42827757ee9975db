//! The connections that the holder lends ([`crate::lending`]), copied by the thread that moves packets.
//!
//! It copies what is simple: bytes that are there, and for which there is room. A loan in which anything
//! else shows is returned, and the holder finds the same again.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};

use crate::lending::channel::{self, Lent, Pipe};
use crate::lending::{Borrowings, LITTLE, LoanId, MAX_LOANS, Message};

/// Messages that are taken at once.
const MESSAGES: usize = 16;

/// The first number of events of loans, of which each has two. Those below are of other descriptors.
pub(super) const LOANS: u64 = 4;

/// An end of a lent connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The program or server.
    Local,
    /// The other holder.
    Peer,
}

/// The number of the events of an end of a loan. Loans are numbered from 0 on, one after the other.
fn event_of(id: LoanId, side: Side) -> EventData {
    EventData::new_u64(LOANS + id.0 * 2 + u64::from(side == Side::Peer))
}

/// The loan, and the end of it, that an event with this number is of.
pub(super) fn loan_of(event: u64) -> (LoanId, Side) {
    let number = event - LOANS;
    let side = match number % 2 {
        0 => Side::Local,
        _ => Side::Peer,
    };
    (LoanId(number / 2), side)
}

/// What is lent, and the end over which it is. The methods return `None` once nothing can be lent any more:
/// then all that was lent is closed, and the end after it, which tells the holder so.
pub(super) struct Borrowed {
    loans: Borrowings<Lent>,
    end: OwnedFd,
}

/// What a copy has shown.
#[derive(Debug, PartialEq, Eq)]
enum Copied {
    /// Little, and all of it.
    Little,
    /// Something that is the holder's to do, or an error with this number.
    Else(u16),
}

impl Borrowed {
    pub(super) fn new(end: OwnedFd) -> Self {
        Self {
            loans: Borrowings::new(MAX_LOANS),
            end,
        }
    }

    /// Takes the holder's messages; what is lent is watched by `epoll`.
    pub(super) fn receive(mut self, epoll: &OwnedFd) -> Option<Self> {
        for _ in 0..MESSAGES {
            match self.receive_one(epoll) {
                Ok(true) => {}
                Ok(false) => return self.stop(epoll),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    tracing::warn!("no connections are copied for the holder any more: {error}");
                    return self.stop(epoll);
                }
            }
        }
        Some(self)
    }

    /// Takes one message; `false` at the end of the channel.
    fn receive_one(&mut self, epoll: &OwnedFd) -> io::Result<bool> {
        match channel::receive(&self.end)? {
            Some((Message::Lend(id), Some(lent))) => {
                let lent = self.loans.on_lend(id, lent).map_err(io::Error::other)?;
                let flags = EventFlags::IN | EventFlags::RDHUP;
                let watched = epoll::add(epoll, &lent.local, event_of(id, Side::Local), flags)
                    .and_then(|()| epoll::add(epoll, &lent.peer, event_of(id, Side::Peer), flags));
                if let Err(error) = watched {
                    tracing::debug!(%error, "a connection cannot be watched");
                    self.give_back(epoll, id, 0)?;
                }
            }
            Some((Message::Recall(id), _)) => self.give_back(epoll, id, 0)?,
            Some(_) => return Err(io::ErrorKind::InvalidData.into()),
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Copies what has arrived at one end of a loan.
    pub(super) fn copy(
        mut self,
        epoll: &OwnedFd,
        id: LoanId,
        side: Side,
        flags: EventFlags,
    ) -> Option<Self> {
        // It may have been returned since.
        let Some(lent) = self.loans.get(id) else {
            return Some(self);
        };
        // The holder reads the end or the error itself, after what precedes it.
        let is_simple = flags == EventFlags::IN;
        let copied = match (is_simple, side) {
            (false, _) => Copied::Else(0),
            (true, Side::Local) => copy(&lent.local, &lent.out, &lent.peer),
            (true, Side::Peer) => copy(&lent.peer, &lent.into, &lent.local),
        };
        if let Copied::Else(error) = copied
            && let Err(error) = self.give_back(epoll, id, error)
        {
            tracing::warn!("no connections are copied for the holder any more: {error}");
            return self.stop(epoll);
        }
        Some(self)
    }

    /// Stops copying for a loan, closes what was lent, and then returns it.
    fn give_back(&mut self, epoll: &OwnedFd, id: LoanId, error: u16) -> io::Result<()> {
        let Some(lent) = self.loans.give_back(id) else {
            return Ok(());
        };
        unwatch(epoll, &lent);
        drop(lent);
        // Its buffer has room for all loans there can be.
        channel::send(&self.end, Message::Return(id, error), &[])
    }

    /// Stops copying for good.
    fn stop(mut self, epoll: &OwnedFd) -> Option<Self> {
        self.loans.drain().for_each(|lent| unwatch(epoll, &lent));
        None
    }
}

/// The holder has the sockets, too: to close them is not enough. Of those that were never watched nothing is
/// removed.
fn unwatch(epoll: &OwnedFd, lent: &Lent) {
    let _ = epoll::delete(epoll, &lent.local);
    let _ = epoll::delete(epoll, &lent.peer);
}

/// Copies what is there, up to [`LITTLE`] bytes; what there is no room for stays in the pipe.
fn copy(from: impl AsFd, pipe: &Pipe, to: impl AsFd) -> Copied {
    let flags = SpliceFlags::NONBLOCK;
    let read = match splice(from, None, &pipe.write, None, LITTLE, flags) {
        // The end.
        Ok(0) => return Copied::Else(0),
        Ok(read) => read,
        // Reported, but not there: the thread would look again and again.
        Err(Errno::AGAIN) => return Copied::Else(0),
        Err(error) => return Copied::Else(number(error)),
    };
    let mut written = 0;
    while written < read {
        match splice(&pipe.read, None, &to, None, read - written, flags) {
            Ok(0) | Err(Errno::AGAIN) => return Copied::Else(0),
            Ok(bytes) => written += bytes,
            Err(error) => return Copied::Else(number(error)),
        }
    }
    match read < LITTLE {
        true => Copied::Little,
        false => Copied::Else(0),
    }
}

/// The number of an error, which is not 0.
fn number(error: Errno) -> u16 {
    u16::try_from(error.raw_os_error()).unwrap_or(Errno::IO.raw_os_error() as u16)
}

#[cfg(test)]
mod tests;
