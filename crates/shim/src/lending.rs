//! Loans of connections: while little comes, the carrier copies between the sockets of a connection over
//! MPTCP for the holder, in the thread that moves its packets. What arrives then wakes one process, not two.
//!
//! A loan begins when the holder has stopped copying and sends [`Message::Lend`] with the sockets and two
//! pipes ([`channel`]). It ends with the carrier's [`Message::Return`], which the carrier sends once it has
//! stopped copying and has closed what was lent: by itself when a direction ends, breaks, is blocked or
//! carries much, or on [`Message::Recall`]. The holder copies again after that message, or after the end of
//! the channel, and for no other reason. The carrier's thread has the only descriptor of the channel's other
//! end, and closes it after all that was lent; so does the system when the carrier is killed, once none of
//! its threads runs any more. A direction therefore has one copier at any time, also while another connection
//! between the processes breaks.
//!
//! The carrier moves bytes from socket to pipe and from pipe to socket by splice(2), each in one step that is
//! done or not. The holder has both pipes as well: whatever the carrier has read and not written when it
//! ends is there.

pub(crate) mod channel;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

/// Most bytes that the carrier copies at once for a loan. A read of more says that a connection carries
/// much: such a connection is the holder's.
pub(crate) const LITTLE: usize = 16 << 10;
/// Most loans of a carrier. The messages of that number fit the buffer of the channel: none has to wait.
pub(crate) const MAX_LOANS: usize = 128;
/// Least age of a loan that is recalled to make room for another.
const MIN_LOAN: Duration = Duration::from_secs(1);

/// Names a loan; no other of the same channel has the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LoanId(pub(crate) u64);

/// What is sent over the channel of a holder and its carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message {
    /// To the carrier, with [`channel::FILES`] descriptors: copy from now on.
    Lend(LoanId),
    /// To the carrier: stop, and return the loan.
    Recall(LoanId),
    /// To the holder: the carrier has stopped, for good. The number is that of the error with which a
    /// socket broke (errno(3)), or 0: the kernel reports an error once, and here it was to the carrier.
    Return(LoanId, u16),
}

impl Message {
    /// Bytes of every message: one that says which, the numbers of the loan and of the error, little-endian.
    pub(crate) const LENGTH: usize = 11;

    pub(crate) fn encode(self) -> [u8; Self::LENGTH] {
        let (kind, id, error) = match self {
            Self::Lend(id) => (1, id, 0),
            Self::Recall(id) => (2, id, 0),
            Self::Return(id, error) => (3, id, error),
        };
        let mut bytes = [kind; Self::LENGTH];
        bytes[1..9].copy_from_slice(&id.0.to_le_bytes());
        bytes[9..].copy_from_slice(&error.to_le_bytes());
        bytes
    }

    /// Reads a whole message; `None` for anything else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LENGTH] = bytes.try_into().ok()?;
        let (kind, rest) = bytes.split_first()?;
        let (id, error) = rest.split_first_chunk()?;
        let id = LoanId(u64::from_le_bytes(*id));
        match (kind, u16::from_le_bytes(error.try_into().ok()?)) {
            (1, 0) => Some(Self::Lend(id)),
            (2, 0) => Some(Self::Recall(id)),
            (3, error) => Some(Self::Return(id, error)),
            _ => None,
        }
    }
}

/// The other process breaks the rules of lending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Violation {
    #[error("loan {} is returned, and was not lent", .0.0)]
    NotLent(LoanId),
    #[error("loan {} is lent twice", .0.0)]
    LentTwice(LoanId),
    #[error("more than {0} connections are lent at once")]
    TooMany(usize),
}

/// The answer to a wish to lend.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lend {
    /// Lend with this number.
    Granted(LoanId),
    /// Not now; recall this loan, if any, so that there is room later.
    Full(Option<LoanId>),
    /// The channel has ended.
    Closed,
}

/// The holder's loans over one channel. Each has a `T`, which comes back with its end.
#[derive(Debug)]
pub(crate) struct Ledger<T> {
    /// In the order in which they began.
    loans: BTreeMap<LoanId, Loan<T>>,
    next: u64,
    limit: usize,
    is_closed: bool,
}

#[derive(Debug)]
struct Loan<T> {
    began: Duration,
    is_recalled: bool,
    of: T,
}

impl<T> Ledger<T> {
    /// Without loans, of which there may be `limit` at once.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            loans: BTreeMap::new(),
            next: 0,
            limit,
            is_closed: false,
        }
    }

    /// Begins a loan. When there are as many as there may be, the oldest is to be recalled: its connection
    /// may be at rest, and can be lent again otherwise.
    pub(crate) fn lend(&mut self, now: Duration, of: T) -> Lend {
        if self.is_closed {
            return Lend::Closed;
        }
        if self.loans.len() >= self.limit {
            let oldest = self.loans.iter_mut().find(|(_, loan)| !loan.is_recalled);
            let oldest = oldest.filter(|(_, loan)| now.saturating_sub(loan.began) >= MIN_LOAN);
            return Lend::Full(oldest.map(|(id, loan)| {
                loan.is_recalled = true;
                *id
            }));
        }
        let id = LoanId(self.next);
        self.next += 1;
        let loan = Loan {
            began: now,
            is_recalled: false,
            of,
        };
        self.loans.insert(id, loan);
        Lend::Granted(id)
    }

    /// Takes back a loan of which the carrier has not been told.
    pub(crate) fn cancel(&mut self, id: LoanId) {
        self.loans.remove(&id);
    }

    /// Whether [`Message::Recall`] is to be sent for a loan that is wanted back.
    pub(crate) fn recall(&mut self, id: LoanId) -> bool {
        let loan = self.loans.get_mut(&id);
        loan.is_some_and(|loan| !std::mem::replace(&mut loan.is_recalled, true))
    }

    /// The carrier has returned a loan: the holder copies from now on.
    ///
    /// # Errors
    /// [`Violation::NotLent`].
    pub(crate) fn on_return(&mut self, id: LoanId) -> Result<T, Violation> {
        let loan = self.loans.remove(&id).ok_or(Violation::NotLent(id))?;
        Ok(loan.of)
    }

    /// The channel has ended, and the carrier copies nothing any more: returns what was lent.
    pub(crate) fn on_close(&mut self) -> Vec<T> {
        self.is_closed = true;
        let loans = std::mem::take(&mut self.loans);
        loans.into_values().map(|loan| loan.of).collect()
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.loans.len()
    }
}

/// The carrier's loans. Each has a `T`, with what was lent: the carrier copies while it is here.
#[derive(Debug)]
pub(crate) struct Borrowings<T> {
    loans: BTreeMap<LoanId, T>,
    limit: usize,
}

impl<T> Borrowings<T> {
    /// Without loans, of which there may be `limit` at once.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            loans: BTreeMap::new(),
            limit,
        }
    }

    /// A loan begins.
    ///
    /// # Errors
    /// [`Violation`]; what was lent is closed then.
    pub(crate) fn on_lend(&mut self, id: LoanId, of: T) -> Result<&mut T, Violation> {
        if self.loans.contains_key(&id) {
            return Err(Violation::LentTwice(id));
        }
        if self.loans.len() >= self.limit {
            return Err(Violation::TooMany(self.limit));
        }
        Ok(self.loans.entry(id).or_insert(of))
    }

    /// What is lent under this number.
    pub(crate) fn get(&mut self, id: LoanId) -> Option<&mut T> {
        self.loans.get_mut(&id)
    }

    /// Stops copying for all loans.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.loans).into_values()
    }

    /// Stops copying for a loan: once what this returns is closed, [`Message::Return`] is to be sent. `None`
    /// if the loan was returned before, as when a recall crosses a return.
    pub(crate) fn give_back(&mut self, id: LoanId) -> Option<T> {
        self.loans.remove(&id)
    }
}
