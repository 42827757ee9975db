//! Transactions over nfnetlink (`linux/netfilter/nfnetlink.h`).

use std::io;

use hawser_kernel::socket::{set_option, set_receive_buffer, set_send_buffer};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

use super::change::Request;

/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u16 = 10;
/// `NFNL_MSG_BATCH_BEGIN` and `NFNL_MSG_BATCH_END`.
const BEGIN: u16 = 16;
const END: u16 = 17;
/// Length in bytes of `struct nlmsghdr`, and of an error with the header that it answers.
const HEADER: usize = 16;
const ERROR: usize = HEADER + 4;
/// `NETLINK_CAP_ACK`: errors come without the refused request.
const SHORT_ERRORS: i32 = 10;
/// Bytes for a datagram from the kernel, which answers each error in one of its own.
const ANSWER: usize = 8 << 10;
/// Bytes for a datagram of a list: what the kernel fills at once.
const LISTED: usize = 64 << 10;
/// Least size of the buffers in bytes.
const BUFFER: usize = 256 << 10;

/// A socket to the nf_tables of the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: OwnedFd,
    /// Sequence number of the last message sent, which its answer repeats.
    sequence: u32,
}

/// The reason why a transaction was not carried out. Nothing has changed then.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// The socket failed.
    Socket(io::Error),
    /// The kernel refused the request with this index.
    Request(usize, Errno),
    /// The kernel refused all.
    All(Errno),
    /// The kernel's answer is not as documented.
    Invalid,
}

impl CommitError {
    /// Whether the kernel does not know something that was requested.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::Request(_, Errno::OPNOTSUPP | Errno::INVAL) | Self::All(Errno::OPNOTSUPP)
        )
    }
}

impl Socket {
    pub fn open() -> io::Result<Self> {
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, Some(NETFILTER))?;
        // Port 0 is the kernel. A connected socket receives no messages from other processes.
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        set_option(&socket, libc::SOL_NETLINK, SHORT_ERRORS, 1)?;
        set_receive_buffer(&socket, BUFFER)?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Asks for all objects of a kind, by the message `kind`, and gives each answer, without the header
    /// of netlink, to `take`.
    pub fn list(&mut self, kind: u8, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut bytes = Vec::new();
        let kind = SUBSYSTEM << 8 | u16::from(kind);
        self.message(&mut bytes, kind, libc::NLM_F_DUMP as u16, &[]);
        // struct nfgenmsg: all families.
        bytes[HEADER] = libc::NFPROTO_UNSPEC as u8;
        retry_on_intr(|| send(&self.socket, &bytes, SendFlags::empty()))?;
        let mut answer = vec![0; LISTED];
        loop {
            let none = RecvFlags::empty();
            let (length, _) = retry_on_intr(|| recv(&self.socket, &mut answer[..], none))?;
            for message in messages(&answer[..length]) {
                match message {
                    Answer::Object(body) => take(body),
                    Answer::Done => return Ok(()),
                    Answer::Error(number) => {
                        return Err(io::Error::from_raw_os_error(number.saturating_neg()));
                    }
                }
            }
        }
    }

    /// Another descriptor of the socket, as a child process has one until exec.
    #[cfg(test)]
    pub fn duplicate(&self) -> OwnedFd {
        self.socket.try_clone().unwrap()
    }

    /// Carries out all requests at once, or none of them.
    pub fn commit(&mut self, requests: &[Request]) -> Result<(), CommitError> {
        if requests.is_empty() {
            return Ok(());
        }
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        self.message(&mut bytes, BEGIN, 0, &[]);
        for (i, request) in requests.iter().enumerate() {
            // The kernel answers requests that it refuses, and this one.
            let answered = match i + 1 == requests.len() {
                true => libc::NLM_F_ACK as u16,
                false => 0,
            };
            let kind = SUBSYSTEM << 8 | u16::from(request.kind);
            let flags = request.flags | answered;
            self.message(&mut bytes, kind, flags, request.attributes.as_slice());
        }
        let last = self.sequence;
        self.message(&mut bytes, END, 0, &[]);

        // A transaction is one datagram.
        set_send_buffer(&self.socket, (2 * bytes.len()).max(BUFFER))
            .map_err(CommitError::Socket)?;
        self.exchange(&bytes, first, last)
    }

    fn exchange(&self, bytes: &[u8], first: u32, last: u32) -> Result<(), CommitError> {
        let failed = |error: Errno| CommitError::Socket(error.into());
        let sent = retry_on_intr(|| send(&self.socket, bytes, SendFlags::empty()));
        sent.map_err(failed)?;
        let mut refused = None;
        let mut answer = vec![0; ANSWER];
        loop {
            let none = RecvFlags::empty();
            let received = retry_on_intr(|| recv(&self.socket, &mut answer[..], none));
            let (length, _) = received.map_err(failed)?;
            for (sequence, error) in errors(&answer[..length]) {
                let error = error.ok_or(CommitError::Invalid)?;
                let refusal = match error {
                    0 => None,
                    number => Some(Errno::from_raw_os_error(number.saturating_neg())),
                };
                let index = sequence.wrapping_sub(first);
                // The beginning stands for the transaction as a whole.
                if let (0, Some(error)) = (index, refusal) {
                    return Err(CommitError::All(error));
                }
                // An answer to an earlier transaction.
                if index > last.wrapping_sub(first) {
                    continue;
                }
                if let (Some(error), None) = (refusal, &refused) {
                    refused = Some(CommitError::Request(index as usize - 1, error));
                }
                if sequence == last {
                    return refused.map_or(Ok(()), Err);
                }
            }
        }
    }

    /// Appends a message with the next sequence number.
    fn message(&mut self, bytes: &mut Vec<u8>, kind: u16, flags: u16, attributes: &[u8]) {
        self.sequence = self.sequence.wrapping_add(1);
        // struct nfgenmsg: family, version, and for the ends of a transaction the subsystem.
        let (family, resource) = match kind {
            BEGIN | END => (libc::NFPROTO_UNSPEC, SUBSYSTEM),
            _ => (libc::NFPROTO_INET, 0),
        };
        let length = (HEADER + 4 + attributes.len()) as u32;
        bytes.extend(length.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((libc::NLM_F_REQUEST as u16 | flags).to_ne_bytes());
        bytes.extend(self.sequence.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend([family as u8, 0]);
        bytes.extend(resource.to_be_bytes());
        bytes.extend(attributes);
    }
}

/// A message of a list.
#[derive(Debug, PartialEq, Eq)]
enum Answer<'a> {
    Object(&'a [u8]),
    Done,
    Error(i32),
}

/// The messages of a list in a datagram, as far as they are complete.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let (header, _) = bytes.split_first_chunk::<HEADER>()?;
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = i32::from(u16::from_ne_bytes([header[4], header[5]]));
        let message = bytes.get(..length.max(HEADER))?;
        let body = &message[HEADER..];
        bytes = bytes
            .get(message.len().next_multiple_of(4)..)
            .unwrap_or_default();
        Some(match kind {
            libc::NLMSG_DONE => Answer::Done,
            libc::NLMSG_ERROR => {
                let number = body.first_chunk().copied().map(i32::from_ne_bytes);
                Answer::Error(number.unwrap_or(-libc::EBADMSG))
            }
            _ => Answer::Object(body),
        })
    })
}

/// Sequence number and error of each message in a datagram; the error is `None` for a message that
/// is no error message. Error 0 confirms.
fn errors(mut bytes: &[u8]) -> impl Iterator<Item = (u32, Option<i32>)> {
    std::iter::from_fn(move || {
        let header = bytes.first_chunk::<HEADER>()?;
        let number = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (length, kind, sequence) = (number(0) as usize, number(4) as u16, number(8));
        let message = bytes.get(..length.max(HEADER))?;
        let error = message.get(HEADER..ERROR)?;
        let error = (i32::from(kind) == libc::NLMSG_ERROR)
            .then(|| i32::from_ne_bytes([error[0], error[1], error[2], error[3]]));
        bytes = bytes
            .get(message.len().next_multiple_of(4)..)
            .unwrap_or_default();
        Some((sequence, error))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parsing_any_answer_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            errors(&bytes).for_each(drop);
            messages(&bytes).for_each(drop);
        }

        #[test]
        fn errors_are_parsed(
            all in prop::collection::vec((any::<u32>(), any::<i32>(), 0..9_usize), 0..5),
        ) {
            let mut bytes = Vec::new();
            for (sequence, error, more) in &all {
                bytes.extend((ERROR as u32 + *more as u32).to_ne_bytes());
                bytes.extend([2, 0, 0, 0]);
                bytes.extend(sequence.to_ne_bytes());
                bytes.extend([0; 4]);
                bytes.extend(error.to_ne_bytes());
                bytes.resize(bytes.len() + more, 0);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            let expected = all.iter().map(|(sequence, error, _)| (*sequence, Some(*error)));
            prop_assert!(errors(&bytes).eq(expected));
        }
    }
}
