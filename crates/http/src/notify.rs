//! Notifications to systemd: sd_notify(3).

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The service answers requests.
pub const READY: &str = "READY=1";
/// The service ends.
pub const STOPPING: &str = "STOPPING=1";

/// Sends `state` to the service manager, if it started this process and wants that.
///
/// # Errors
/// When the datagram cannot be sent.
pub fn notify(state: &str) -> io::Result<()> {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(socket) => send(&socket, state),
        None => Ok(()),
    }
}

/// Sends to the socket at a path, or of an abstract name after `@`.
fn send(socket: &OsString, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_notified_at_a_path_or_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("hawser-test-{}", std::process::id());
        let sockets = [
            (UnixDatagram::bind(&path), path.into_os_string()),
            (
                SocketAddr::from_abstract_name(&name).and_then(|one| UnixDatagram::bind_addr(&one)),
                format!("@{name}").into(),
            ),
        ];
        for (socket, address) in sockets {
            let socket = socket.unwrap();
            send(&address, READY).unwrap();
            let mut text = [0; 20];
            let length = socket.recv(&mut text).unwrap();
            assert_eq!(&text[..length], b"READY=1");
        }
    }
}
