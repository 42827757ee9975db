//! The socket of a service.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The file of a Unix socket, removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // An error means that it was removed with its folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens at `path` without blocking. A socket that a killed process left is replaced.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_taken_once_and_again_after_a_crash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (listener, file) = listen(&path).unwrap();
        let error = listen(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        // As a killed process leaves it.
        drop(listener);
        let (_listener, second) = listen(&path).unwrap();
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
        drop(file);
    }
}
