//! The channel over which connections are lent: messages between the holder and a thread of its carrier,
//! in order, with the descriptors that are lent (`SCM_RIGHTS` of unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::pipe::{PipeFlags, pipe_with};

use super::Message;

/// Descriptors of a loan: those of [`Lent`] and its pipes, in this order.
pub(crate) const FILES: usize = 6;

/// Two ends that are connected with each other, which do not block.
///
/// # Errors
/// As the system says.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (kind, family) = (SocketType::SEQPACKET, AddressFamily::UNIX);
    Ok(rustix::net::socketpair(family, kind, flags, None)?)
}

/// A pipe whose bytes have been read from a connection, and are to be written to the other one.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) read: OwnedFd,
    pub(crate) write: OwnedFd,
}

impl Pipe {
    /// An empty one, which does not block.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { read, write })
    }
}

/// What is lent: both ends of a connection, and a pipe for each direction.
#[derive(Debug)]
pub(crate) struct Lent {
    /// The connection to the program or server.
    pub(crate) local: OwnedFd,
    /// The connection to the other holder.
    pub(crate) peer: OwnedFd,
    /// For what the program or server sends.
    pub(crate) out: Pipe,
    /// For what comes from the other holder.
    pub(crate) into: Pipe,
}

impl Lent {
    fn new(mut files: impl Iterator<Item = OwnedFd>) -> Option<Self> {
        let mut next = || files.next();
        Some(Self {
            local: next()?,
            peer: next()?,
            out: Pipe {
                read: next()?,
                write: next()?,
            },
            into: Pipe {
                read: next()?,
                write: next()?,
            },
        })
    }
}

/// Sends a message without waiting, with these descriptors.
///
/// # Errors
/// As the system says: the other end is gone, or has not taken earlier messages.
pub(crate) fn send(end: impl AsFd, message: Message, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = message.encode();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(end, &[IoSlice::new(&bytes)], &mut rights, flags)?;
    Ok(())
}

/// Receives a message without waiting, and what is lent if it is [`Message::Lend`]; `None` when the other
/// end is closed.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when there is none, [`io::ErrorKind::InvalidData`] when it is not valid,
/// or else as the system says.
pub(crate) fn receive(end: impl AsFd) -> io::Result<Option<(Message, Option<Lent>)>> {
    // One more, so that a longer message is not taken for a valid one.
    let mut bytes = [0; Message::LENGTH + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::net::recvmsg(end, &mut parts, &mut rights, flags)?.bytes;
    if received == 0 {
        return Ok(None);
    }
    let files = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Lent::new(files),
        _ => None,
    });
    let message = Message::decode(&bytes[..received]);
    match (message, files) {
        (Some(message @ Message::Lend(_)), Some(lent)) => Ok(Some((message, Some(lent)))),
        (Some(message @ (Message::Recall(_) | Message::Return(..))), None) => {
            Ok(Some((message, None)))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use hawser_fuzz::fuzz;

    use super::super::LoanId;
    use super::*;

    #[test]
    fn what_is_lent_arrives_with_its_message_and_the_end_after_all_messages() {
        let (holder, carrier) = pair().unwrap();
        let (out, into) = (Pipe::new().unwrap(), Pipe::new().unwrap());
        let (local, peer) = pair().unwrap();
        let files = [
            local.as_fd(),
            peer.as_fd(),
            out.read.as_fd(),
            out.write.as_fd(),
            into.read.as_fd(),
            into.write.as_fd(),
        ];
        send(&holder, Message::Lend(LoanId(7)), &files).unwrap();
        let Some((Message::Lend(LoanId(7)), Some(lent))) = receive(&carrier).unwrap() else {
            panic!("nothing is lent");
        };
        rustix::io::write(&lent.out.write, b"out").unwrap();
        rustix::io::write(&lent.local, b"local").unwrap();
        let mut bytes = [0; 8];
        assert_eq!(rustix::io::read(&out.read, &mut bytes), Ok(3));
        assert_eq!(rustix::io::read(&peer, &mut bytes), Ok(5));
        send(&carrier, Message::Return(LoanId(7), 104), &[]).unwrap();
        drop(carrier);
        let returned = receive(&holder).unwrap();
        assert!(matches!(
            returned,
            Some((Message::Return(LoanId(7), 104), None))
        ));
        assert!(receive(&holder).unwrap().is_none());
    }

    #[test]
    fn other_messages_are_an_error() {
        let (holder, carrier) = pair().unwrap();
        for bytes in [&[3; 12][..], &[3; 10], &[9; 11], &[1; 11]] {
            rustix::io::write(&holder, bytes).unwrap();
            let error = receive(&carrier).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn any_message_is_decoded_or_refused() {
        let id = LoanId(1 << 40);
        let all = [
            Message::Lend(id),
            Message::Recall(id),
            Message::Return(id, 104),
        ];
        let valid = all.map(|message| message.encode().to_vec());
        fuzz(&valid, |input| {
            if let Some(message) = Message::decode(input) {
                assert_eq!(message.encode(), input);
            }
        });
    }
}
