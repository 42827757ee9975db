//! Programs' sockets, handed over by the holder to the carrier: one message for each, with what the
//! program connects to and its socket (`SCM_RIGHTS` of unix(7)).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::protocol::{Preamble, preamble};

/// The holder's end.
#[derive(Debug)]
pub struct HandoverSender(UnixDatagram);

/// The carrier's end.
#[derive(Debug)]
pub struct HandoverReceiver(UnixDatagram);

/// A socket of a program.
#[derive(Debug)]
pub struct Handed {
    /// What it connects to, and from where.
    pub ends: Preamble,
    /// The connection to the program.
    pub program: std::net::TcpStream,
}

impl Handed {
    /// Ends the program's connection with a reset.
    pub fn refuse(self) {
        // It fails only for what is no connection any more.
        let _ = sockopt::set_socket_linger(&self.program, Some(Duration::ZERO));
    }
}

/// Two ends that are connected with each other: of [`HandoverSender::new`] and of
/// [`HandoverReceiver::new`].
///
/// # Errors
/// As the system says.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (kind, family) = (SocketType::SEQPACKET, AddressFamily::UNIX);
    Ok(rustix::net::socketpair(family, kind, flags, None)?)
}

impl HandoverSender {
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// As the system says.
    pub fn new(end: OwnedFd) -> io::Result<Self> {
        Ok(Self(UnixDatagram::from_std(end.into())?))
    }

    /// Hands a socket over; this process may close it afterwards.
    ///
    /// # Errors
    /// When the carrier has ended.
    pub async fn send(&self, ends: &Preamble, program: BorrowedFd<'_>) -> io::Result<()> {
        let bytes = ends.encode();
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut rights = SendAncillaryBuffer::new(&mut space);
            let fds = [program];
            rights.push(SendAncillaryMessage::ScmRights(&fds));
            let parts = [IoSlice::new(&bytes)];
            let flags = SendFlags::NOSIGNAL;
            Ok(rustix::net::sendmsg(&self.0, &parts, &mut rights, flags)?)
        };
        self.0.async_io(Interest::WRITABLE, send).await.map(drop)
    }
}

impl HandoverReceiver {
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// As the system says.
    pub fn new(end: OwnedFd) -> io::Result<Self> {
        Ok(Self(UnixDatagram::from_std(end.into())?))
    }

    /// The next socket; `None` when the holder has ended.
    ///
    /// # Errors
    /// As the system says; [`io::ErrorKind::InvalidData`] for a message that is none of the holder's.
    pub async fn receive(&self) -> io::Result<Option<Handed>> {
        let receive = || receive(self.0.as_fd());
        self.0.async_io(Interest::READABLE, receive).await
    }
}

fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Handed>> {
    let mut bytes = [0; preamble::LENGTH];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(socket, &mut parts, &mut rights, flags)?.bytes;
    if received == 0 {
        return Ok(None);
    }
    let fd = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let ends = Preamble::decode(&bytes).map_err(|_| invalid())?;
    match fd.filter(|_| received == preamble::LENGTH) {
        Some(fd) => Ok(Some(Handed {
            ends,
            program: fd.into(),
        })),
        None => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn sockets_arrive_with_what_they_connect_to() {
        let (sender, receiver) = pair().unwrap();
        let sender = HandoverSender::new(sender).unwrap();
        let receiver = HandoverReceiver::new(receiver).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut program = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (captured, source) = listener.accept().unwrap();
        let ends = Preamble {
            destination: "192.0.2.7:443".parse().unwrap(),
            source,
        };
        sender.send(&ends, captured.as_fd()).await.unwrap();
        drop(captured);
        let mut handed = receiver.receive().await.unwrap().unwrap();
        assert_eq!(handed.ends, ends);
        handed.program.write_all(b"hello").unwrap();
        drop(handed);
        let mut text = String::new();
        program.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        drop(sender);
        assert!(receiver.receive().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn other_messages_are_an_error() {
        let (sender, receiver) = pair().unwrap();
        let receiver = HandoverReceiver::new(receiver).unwrap();
        rustix::io::write(&sender, b"no preamble").unwrap();
        let error = receiver.receive().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
