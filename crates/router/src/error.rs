//! Why a router cannot start or continue.

use std::net::SocketAddr;
use std::path::PathBuf;

use hawser_topology::AsDirError;

/// Why a router cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RouterError {
    /// The AS's folder is not usable.
    #[error(transparent)]
    Folder(#[from] AsDirError),
    /// `topology.json` has no border router at all.
    #[error("topology.json in {folder} has no border router: add one", folder = folder.display())]
    NoRouter {
        /// The AS's folder.
        folder: PathBuf,
    },
    /// The AS has several border routers, and none was named.
    #[error("topology.json in {folder} has several border routers: say which one of {}", names.join(", "), folder = folder.display())]
    Unnamed {
        /// The AS's folder.
        folder: PathBuf,
        /// Their names.
        names: Vec<String>,
    },
    /// The AS has no border router of that name.
    #[error("topology.json in {folder} has no border router {name}: it has {}", names.join(", "), folder = folder.display())]
    UnknownRouter {
        /// The AS's folder.
        folder: PathBuf,
        /// The name asked for.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// An interface numbered 0, which means the internal one.
    #[error("topology.json in {folder} has an interface 0: interface numbers begin at 1", folder = folder.display())]
    InterfaceZero {
        /// The AS's folder.
        folder: PathBuf,
    },
    /// An interface without underlay addresses, which only other services of the AS can use.
    #[error("topology.json in {folder} has no underlay addresses for interface {id}: add `local` and `remote`", folder = folder.display())]
    NoUnderlay {
        /// The AS's folder.
        folder: PathBuf,
        /// The interface.
        id: u16,
    },
    /// An AS with more routers than their numbers can count.
    #[error("topology.json in {folder} has more than 256 border routers", folder = folder.display())]
    TooManyRouters {
        /// The AS's folder.
        folder: PathBuf,
    },
    /// `links.json` names an interface that `topology.json` does not have.
    #[error("links.json in {folder} has interface {id}, which topology.json does not have: remove it there or add it here", folder = folder.display())]
    UnknownLink {
        /// The AS's folder.
        folder: PathBuf,
        /// The interface.
        id: u16,
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
    /// The system cannot wait for packets.
    #[error("cannot wait for packets: {0}")]
    Wait(std::io::Error),
}
