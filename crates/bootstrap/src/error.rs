//! Why a host could not join its AS.

use std::path::PathBuf;

use hawser_topology::FileError;
use hawser_trust::LoadError;

/// Why a host could not join its AS by a bootstrap server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No connection, or no HTTP.
    #[error(
        "no bootstrap server answers at {url}: {reason}; ask the operator of the AS for its address, \
         which is the control service's with port 8041 where hawser runs it"
    )]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Why.
        reason: String,
    },
    /// An answer that is an error.
    #[error("{url} answered {status}: {reason}; is this the address of a bootstrap server?")]
    Status {
        /// What was asked for.
        url: String,
        /// The status of HTTP.
        status: u16,
        /// What the server says.
        reason: String,
    },
    /// An answer that is too large.
    #[error("the answer of {url} is larger than {most} bytes: is this a bootstrap server?")]
    TooLarge {
        /// What was asked for.
        url: String,
        /// The largest answer in bytes.
        most: usize,
    },
    /// An answer of another form.
    #[error("the answer of {url} cannot be used: {reason}; tell the operator of the AS")]
    Invalid {
        /// What was asked for.
        url: String,
        /// Why.
        reason: String,
    },
    /// A TRC that nothing proves, in place of one that is trusted.
    #[error(
        "{url} is not trusted: {reason}; if the network was set up anew, remove {}",
        folder.display()
    )]
    Trust {
        /// What was asked for.
        url: String,
        /// The folder with what is trusted.
        folder: PathBuf,
        /// Why.
        reason: String,
    },
    /// What was fetched before is damaged.
    #[error("{source}; or remove the folder, to fetch and trust it anew")]
    Kept {
        /// The error.
        #[from]
        source: LoadError,
    },
    /// The folder cannot be written.
    #[error("{source}; set XDG_STATE_HOME to a folder that can be written")]
    Folder {
        /// The error.
        #[from]
        source: FileError,
    },
}
