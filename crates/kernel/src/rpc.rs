//! RPC over Unix stream sockets: requests and replies are JSON values, one per line.
//!
//! A request or a reply may come with file descriptors (`SCM_RIGHTS` of unix(7)).

mod acceptor;
mod serve;

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::acceptor::Acceptor;
pub use self::serve::{Lines, MAX_LINE, SocketFile, answer, line, listen, request};

/// Maximum number of file descriptors that come with one line.
const MAX_FDS: usize = 4;

/// A kind of service that can be called.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    /// The name in error messages, such as `router`.
    pub name: &'static str,
    /// Longest wait for the service to read the request, and again for its reply.
    pub timeout: Duration,
}

/// A call that got no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// Nothing listens on the socket.
    #[error("no {} answers at {} ({}): is it running?", .0.service, .0.socket.display(), .0.source)]
    Connect(Failure),
    /// The connection broke, or no reply arrived in time.
    #[error("the {} at {} did not answer: {}", .0.service, .0.socket.display(), .0.source)]
    Broken(Failure),
    /// The caller cannot parse the reply.
    #[error(
        "the {} at {} sent an invalid reply ({}): is it of another version of hawser?",
        .0.service, .0.socket.display(), .0.source
    )]
    Invalid(Failure),
}

/// The call that got no reply, and the cause.
#[derive(Debug)]
pub struct Failure {
    /// The service's name.
    pub service: &'static str,
    /// Its socket.
    pub socket: PathBuf,
    /// The system's error, or the defect of the reply.
    pub source: io::Error,
}

impl Service {
    /// Sends a request to the service that listens at `socket`, and waits for its reply.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call<R: DeserializeOwned>(
        &self,
        socket: &Path,
        request: &impl Serialize,
    ) -> Result<R, RpcError> {
        self.call_for_fds(socket, request).map(|(reply, _)| reply)
    }

    /// Like [`Service::call`], and also returns the file descriptors that come with the reply.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call_for_fds<R: DeserializeOwned>(
        &self,
        socket: &Path,
        request: &impl Serialize,
    ) -> Result<(R, Vec<OwnedFd>), RpcError> {
        let (reply, fds, _) = self.converse(socket, request)?;
        Ok((reply, fds))
    }

    /// Like [`Service::call`], and sends file descriptors with the request, at most three.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call_with_fds<R: DeserializeOwned>(
        &self,
        socket: &Path,
        request: &impl Serialize,
        fds: &[BorrowedFd<'_>],
    ) -> Result<R, RpcError> {
        let (reply, _, _) = self.exchange(socket, request, fds)?;
        Ok(reply)
    }

    /// Like [`Service::call_for_fds`], and also returns the connection, to be used further; its
    /// timeouts are those of the service.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn converse<R: DeserializeOwned>(
        &self,
        socket: &Path,
        request: &impl Serialize,
    ) -> Result<(R, Vec<OwnedFd>, UnixStream), RpcError> {
        self.exchange(socket, request, &[])
    }

    fn exchange<R: DeserializeOwned>(
        &self,
        socket: &Path,
        request: &impl Serialize,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(R, Vec<OwnedFd>, UnixStream), RpcError> {
        let failure = |source| Failure {
            service: self.name,
            socket: socket.to_owned(),
            source,
        };
        let stream =
            UnixStream::connect(socket).map_err(|source| RpcError::Connect(failure(source)))?;
        let exchange = || {
            stream.set_read_timeout(Some(self.timeout))?;
            stream.set_write_timeout(Some(self.timeout))?;
            send(&stream, request, fds)?;
            receive(&stream)
        };
        let exchanged = exchange().map_err(|source: io::Error| match source.kind() {
            io::ErrorKind::InvalidData => RpcError::Invalid(failure(source)),
            _ => RpcError::Broken(failure(source)),
        });
        let (reply, fds) = exchanged?;
        Ok((reply, fds, stream))
    }
}

/// Sends one line; the file descriptors are attached to its first bytes.
///
/// # Errors
/// When the connection breaks, or `message` cannot be encoded as JSON.
pub fn send(
    mut stream: &UnixStream,
    message: &impl Serialize,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let line = serve::line(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other(
            "too many file descriptors for one message",
        ));
    }
    let parts = [IoSlice::new(&line)];
    let sent = rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(stream, &parts, &mut rights, SendFlags::NOSIGNAL)
    })?;
    stream.write_all(&line[sent..])
}

/// Receives one line, and the file descriptors that come with it.
///
/// # Errors
/// When the connection breaks or ends within the line; [`io::ErrorKind::InvalidData`] when the line
/// is longer than [`MAX_LINE`] or not a `T`.
pub fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<(T, Vec<OwnedFd>)> {
    let mut lines = Lines::default();
    let mut fds = Vec::new();
    let mut chunk = [0; 4096];
    let line = loop {
        if let Some(line) = lines.next()? {
            break line;
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut chunk)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let got = match rustix::net::recvmsg(stream, &mut parts, &mut rights, flags) {
            Err(Errno::INTR) => continue,
            other => other?.bytes,
        };
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for message in rights.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        lines.push(&chunk[..got]);
    };
    let value = serde_json::from_slice(&line)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok((value, fds))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Reply {
        Done,
        Error { message: String },
    }

    #[test]
    fn descriptors_are_sent_with_the_reply() {
        let (here, there) = UnixStream::pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        send(&here, &Reply::Done, &[write.as_fd()]).unwrap();
        drop(write);
        let (reply, fds): (Reply, _) = receive(&there).unwrap();
        assert_eq!(reply, Reply::Done);
        assert_eq!(fds.len(), 1);
        rustix::io::write(&fds[0], b"x").unwrap();
        drop(fds);
        let mut bytes = Vec::new();
        std::fs::File::from(read).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"x");
    }

    #[test]
    fn long_replies_arrive_whole() {
        let (here, there) = UnixStream::pair().unwrap();
        let message = "x".repeat(1 << 20);
        let expected = message.clone();
        let sender = std::thread::spawn(move || {
            send(&here, &Reply::Error { message }, &[]).unwrap();
        });
        let (reply, fds): (Reply, _) = receive(&there).unwrap();
        sender.join().unwrap();
        assert!(fds.is_empty());
        assert_eq!(reply, Reply::Error { message: expected });
    }

    #[test]
    fn a_truncated_line_is_refused() {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(b"{\"Done\"").unwrap();
        drop(here);
        let error = receive::<Reply>(&there).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let (mut here, there) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            // Fails after the other side has closed the connection.
            let _ = here.write_all(&vec![b' '; 2 * MAX_LINE]);
        });
        let error = receive::<Reply>(&there).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        drop(there);
        sender.join().unwrap();
    }

    /// The result of a call to a service that replies with `bytes` and closes the connection.
    fn call(bytes: &'static [u8]) -> Result<Reply, RpcError> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let (listener, _file) = listen(&socket).unwrap();
        listener.set_nonblocking(false).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (request, _) = receive::<String>(&stream).unwrap();
            assert_eq!(request, "status");
            stream.write_all(bytes).unwrap();
        });
        let service = Service {
            name: "oracle",
            timeout: Duration::from_secs(60),
        };
        let reply = service.call(&socket, &"status");
        server.join().unwrap();
        reply
    }

    #[test]
    fn a_call_returns_the_reply_or_the_cause_of_failure() {
        assert_eq!(call(b"\"Done\"\n").unwrap(), Reply::Done);
        let broken = call(b"").unwrap_err();
        assert!(matches!(broken, RpcError::Broken { .. }), "{broken}");
        let invalid = call(b"\"Other\"\n").unwrap_err();
        assert!(matches!(invalid, RpcError::Invalid { .. }), "{invalid}");
        assert!(
            invalid.to_string().starts_with("the oracle at /"),
            "{invalid}"
        );
    }

    #[test]
    fn a_call_without_a_service_names_the_socket() {
        let service = Service {
            name: "oracle",
            timeout: Duration::from_secs(60),
        };
        let nowhere = Path::new("/nowhere/socket");
        let error = service.call::<Reply>(nowhere, &"status").unwrap_err();
        assert!(matches!(error, RpcError::Connect { .. }), "{error}");
        assert!(error.to_string().contains("/nowhere/socket"), "{error}");
    }

    proptest! {
        #[test]
        fn receiving_any_bytes_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..512)) {
            let (mut here, there) = UnixStream::pair().unwrap();
            bytes.push(b'\n');
            here.write_all(&bytes).unwrap();
            drop(here);
            let _ = receive::<Reply>(&there);
        }
    }
}
