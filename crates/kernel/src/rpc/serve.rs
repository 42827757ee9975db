//! The server side: the socket, and requests that arrive in pieces.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length of a request or reply line in bytes, with its line end: enough for the counters
/// of thousands of links.
pub const MAX_LINE: usize = 4 << 20;

/// The file of a Unix socket, removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // An error means that the file was removed with its folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Opens a non-blocking listener at `path`. Replaces a socket that a killed process has left
/// behind.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] when a process listens there; others when the path cannot be used.
pub fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    match UnixStream::connect(path) {
        Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)?;
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok((listener, SocketFile(path.to_owned())))
}

/// A buffer of received bytes, from which complete lines are taken.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Number of leading bytes that are known to contain no line end.
    searched: usize,
}

impl Lines {
    /// Appends bytes that were received.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the first line with its line end; `None` if it has not arrived completely.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] when it is longer than [`MAX_LINE`]: no later line can be
    /// read.
    #[expect(clippy::should_implement_trait, reason = "more may come after None")]
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let rest = &self.bytes[self.searched..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        let length = self.searched + end.map_or(rest.len(), |at| at + 1);
        if length > MAX_LINE {
            let reason = format!("a line is longer than {MAX_LINE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        self.searched = if end.is_some() { 0 } else { length };
        Ok(end.map(|_| self.bytes.drain(..length).collect()))
    }
}

/// Encodes `message` as a line.
///
/// # Errors
/// When it cannot be encoded as JSON.
pub fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// The line that answers a request: the result of `answer`, or if `line` is not a valid request,
/// that of `refuse` with the reason.
///
/// # Errors
/// When the reply cannot be encoded as JSON.
pub fn answer<Q: DeserializeOwned, R: Serialize>(
    line: &[u8],
    answer: impl FnOnce(Q) -> R,
    refuse: impl FnOnce(String) -> R,
) -> io::Result<Vec<u8>> {
    self::line(&match request(line) {
        Ok(request) => answer(request),
        Err(reason) => refuse(reason),
    })
}

/// The request in a line.
///
/// # Errors
/// When it is no valid request: why not, for the reply.
pub fn request<Q: DeserializeOwned>(line: &[u8]) -> Result<Q, String> {
    serde_json::from_slice(line).map_err(|error| format!("not a request: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_socket_is_used_once_and_again_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (listener, file) = listen(&path).unwrap();
        let error = listen(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        // The state that a killed process leaves behind.
        drop(listener);
        // A process that another test starts has it until it runs its program.
        let deadline = Instant::now() + Duration::from_secs(300);
        while UnixStream::connect(&path).is_ok() {
            assert!(Instant::now() < deadline, "it is found after its end");
        }
        let (_listener, second) = listen(&path).unwrap();
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
        drop(file);
    }

    #[test]
    fn a_line_too_long_is_refused_whether_or_not_it_ends() {
        let mut lines = Lines::default();
        lines.push(&vec![b' '; MAX_LINE]);
        assert_eq!(lines.next().unwrap(), None);
        lines.push(b"\n");
        let error = lines.next().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let mut lines = Lines::default();
        lines.push(&vec![b' '; MAX_LINE + 1]);
        assert!(lines.next().is_err());
        let mut lines = Lines::default();
        lines.push(&vec![b' '; MAX_LINE - 1]);
        lines.push(b"\nx\n");
        assert_eq!(lines.next().unwrap().unwrap().len(), MAX_LINE);
        assert_eq!(lines.next().unwrap().unwrap(), b"x\n");
    }

    #[test]
    fn invalid_requests_are_refused() {
        let reply = |line: &[u8]| {
            let double = |number: u32| format!("{}", 2 * number);
            String::from_utf8(answer(line, double, |reason| reason).unwrap()).unwrap()
        };
        assert_eq!(reply(b"21\n"), "\"42\"\n");
        assert!(reply(b"x\n").starts_with("\"not a request: "));
        assert!(reply(b"\n").starts_with("\"not a request: "));
    }

    proptest! {
        #[test]
        fn lines_are_equal_for_any_split_of_the_bytes(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..64),
            cuts in prop::collection::vec(0..64usize, 0..8),
        ) {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, left) = rest.split_at(cut.min(rest.len()));
                lines.push(piece);
                rest = left;
                while let Some(line) = lines.next().unwrap() {
                    found.push(line);
                }
            }
            lines.push(rest);
            while let Some(line) = lines.next().unwrap() {
                found.push(line);
            }
            let mut whole: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            whole.retain(|line| line.ends_with(b"\n"));
            prop_assert_eq!(found, whole);
        }
    }
}
