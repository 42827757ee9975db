//! Why a router cannot start or continue.

use std::net::SocketAddr;
use std::path::PathBuf;

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
    #[error("cannot open interface {id} at {local}: {source}")]
    Interface {
        /// The interface; 0 is the internal one.
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
    /// Waiting for packets failed.
    #[error("cannot wait for packets: {0}")]
    Wait(std::io::Error),
}
