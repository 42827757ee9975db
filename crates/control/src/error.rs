//! Errors of a control plane.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hawser_kernel::bind::Refused;
use hawser_rpc::{Code, RpcError};
use hawser_topology::{FileError, IsdAsn};

use crate::segment::{MAX_LIFETIME, MIN_LIFETIME};

/// An error of reading or serving a control plane.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The network, or a file of an AS's folder, cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The TRCs of the AS cannot be used.
    #[error(transparent)]
    Trust(#[from] hawser_trust::LoadError),
    /// The folder has no parent.
    #[error("{dir} is not in a lab's folder: name the AS's folder inside it", dir = .0.display())]
    NoLab(PathBuf),
    /// The network does not have the AS of the folder.
    #[error("the network has no AS {0}: topology.json is of another network")]
    NotInNetwork(IsdAsn),
    /// The lifetime of segments is out of bounds.
    #[error("segments cannot live for {0:?}: at least {MIN_LIFETIME:?}, at most {MAX_LIFETIME:?}")]
    Lifetime(Duration),
    /// A segment cannot be signed.
    #[error("segments cannot be signed: {0}")]
    Unsigned(String),
    /// A TCP address cannot be bound.
    #[error("cannot serve {what} on {address}: {}", Refused::tcp(*.address, source))]
    Address {
        /// The service at this address.
        what: &'static str,
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The live socket cannot be opened.
    #[error("cannot listen on {socket}: {source}", socket = socket.display())]
    Socket {
        /// The socket.
        socket: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another control service of the same AS runs, and has this live socket.
    #[error("a control service runs already on {socket}: stop it first", socket = .0.display())]
    Runs(PathBuf),
    /// A changed topology takes a restart.
    #[error(
        "the control service must start again: {file} has another AS, or other addresses of its \
         control services",
        file = .0.display()
    )]
    Restart(PathBuf),
    /// Files could not be read again, for a fault of this program.
    #[error("the files were not read again: {0}")]
    Panicked(String),
    /// A server ended without a request to stop.
    #[error("a server of the control service failed: {0}")]
    Server(String),
}

/// An error of a lookup.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// The ISD-AS is neither an AS nor the core of an ISD.
    #[error("{0} is not one AS: name one such as 1-ff00:0:110")]
    Wildcard(IsdAsn),
    #[error("no AS {0} in this network: network.json lists its ASes")]
    Unknown(IsdAsn),
    #[error("paths and segments start in the AS of this service, {local}, not in {requested}")]
    Foreign { local: IsdAsn, requested: IsdAsn },
    #[error("segments cannot be signed: {0}")]
    Unsigned(String),
    #[error("the network cannot be read: {0}")]
    NoNetwork(String),
    /// A fault of this program.
    #[error("the answer could not be computed: {0}")]
    Panicked(String),
}

impl From<LookupError> for RpcError {
    fn from(error: LookupError) -> Self {
        let code = match error {
            LookupError::Unknown(_) => Code::NotFound,
            LookupError::Unsigned(_) | LookupError::NoNetwork(_) | LookupError::Panicked(_) => {
                Code::Internal
            }
            LookupError::Wildcard(_) | LookupError::Foreign { .. } => Code::InvalidArgument,
        };
        Self::new(code, error.to_string())
    }
}
