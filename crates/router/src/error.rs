//! Why a router cannot start or continue.

use std::net::SocketAddr;
use std::path::PathBuf;

use hawser_kernel::bind::Refused;
use hawser_topology::FileError;

/// Why a router cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The AS's folder is not usable.
    #[error(transparent)]
    Folder(#[from] FileError),
    /// `topology.json` or `links.json` is valid, but not for a router.
    #[error("{file} in {folder} has {what}", folder = folder.display())]
    Invalid {
        /// The file.
        file: &'static str,
        /// The AS's folder.
        folder: PathBuf,
        /// What the file contains or lacks, and what to do about it.
        what: String,
    },
    /// A socket of an interface cannot be opened.
    #[error("cannot open {} at {local}: {}", socket_name(*.id), Refused::udp(*.local, source))]
    Interface {
        /// The interface; 0 for the internal address, to which hosts of the AS send.
        id: u16,
        /// Its underlay address.
        local: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Another router serves this folder.
    #[error("a router runs on {socket} already: stop it first", socket = socket.display())]
    Running {
        /// Its control socket.
        socket: PathBuf,
    },
    /// The control socket cannot be opened.
    #[error("cannot listen at {socket}: {source}", socket = socket.display())]
    Control {
        /// The socket.
        socket: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A changed topology takes a restart.
    #[error("the router must start again: {0}")]
    Reload(&'static str),
    /// Waiting for packets failed.
    #[error("cannot wait for packets: {0}")]
    Wait(std::io::Error),
}

/// What a socket is for, with the names of `topology.json`.
fn socket_name(id: u16) -> String {
    match id {
        0 => "the router's `internal_addr`".to_owned(),
        id => format!("interface {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internal_address_is_not_called_an_interface() {
        let error = |id| {
            let local = SocketAddr::from(([10, 0, 1, 254], 30042));
            let source = std::io::ErrorKind::AddrInUse.into();
            RouterError::Interface { id, local, source }.to_string()
        };
        let internal = "cannot open the router's `internal_addr` at 10.0.1.254:30042: ";
        assert!(error(0).starts_with(internal), "{}", error(0));
        assert!(
            error(7).starts_with("cannot open interface 7 at "),
            "{}",
            error(7)
        );
    }
}
