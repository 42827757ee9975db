//! Who listens on the Unix socket of a service.

use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::process::ProcessId;

/// Whether a process listens on a socket.
pub(crate) fn answers(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

/// The process that listens on a socket (`SO_PEERCRED` of unix(7)); None when nothing does, or it
/// cannot be seen from here.
pub(crate) fn listener(socket: &Path) -> Option<ProcessId> {
    let stream = UnixStream::connect(socket).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    ProcessId::of(peer.pid.as_raw_nonzero().get()).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_listening_process_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        assert!(!answers(&socket));
        let listener_ = UnixListener::bind(&socket).unwrap();
        assert!(answers(&socket));
        assert_eq!(listener(&socket), Some(ProcessId::own().unwrap()));
        drop(listener_);
        assert!(!answers(&socket));
        assert_eq!(listener(&socket), None);
    }
}
