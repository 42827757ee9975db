//! Access to running services over their Unix sockets.

use std::os::unix::net::UnixStream;
use std::path::Path;

use hawser_router::Counters;
use hawser_router::live::{Reply, Request, call};

use crate::process::ProcessId;

/// The process that listens on a socket (`SO_PEERCRED` of unix(7)); `None` if no process listens,
/// or it is not visible in this PID namespace.
pub(crate) fn listener(socket: &Path) -> Option<ProcessId> {
    let stream = UnixStream::connect(socket).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    ProcessId::of(peer.pid.as_raw_nonzero().get()).ok()
}

/// The counters of the router with the control socket `socket`.
pub(crate) fn counters(socket: &Path) -> Result<Counters, String> {
    match call(socket, &Request::Counters) {
        Ok(Reply::Counters(counters)) => Ok(counters),
        Ok(other) => Err(format!("{}: {other:?}", socket.display())),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether the BFD session of an interface is up; `None` if the router has no session for it.
pub(crate) fn session(counters: &Counters, id: u16) -> Option<bool> {
    counters.bfd.get(&id.to_string()).copied()
}

/// Whether the link of an interface is at rest; `None` if the router has no session for it.
pub(crate) fn at_rest(counters: &Counters, id: u16) -> Option<bool> {
    session(counters, id).map(|_| counters.at_rest.contains(&id.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use hawser_supervisor::listens;

    use super::*;

    #[test]
    fn the_listening_process_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        assert!(!listens(&socket));
        let listener_ = UnixListener::bind(&socket).unwrap();
        assert!(listens(&socket));
        assert_eq!(listener(&socket), Some(ProcessId::own().unwrap()));
        drop(listener_);
        assert!(!listens(&socket));
        assert_eq!(listener(&socket), None);
    }
}
