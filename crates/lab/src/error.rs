//! Errors of operations on a lab.

use std::io;
use std::path::PathBuf;

use hawser_kernel::rpc::RpcError;
use hawser_topology::{FileError, IsdAsn};

use crate::place::PlaceError;

/// An error of an operation on a lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The lab's folder cannot be locked.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A file of the lab cannot be used.
    #[error("{0}{hint}", hint = hint(.0))]
    File(#[from] FileError),
    /// The supervisor did not answer.
    #[error(
        "{0}; bring the lab up again with `hawser lab up`, or clear up with `hawser lab down --name NAME`"
    )]
    NoReply(#[from] RpcError),
    /// A program could not be run in an AS.
    #[error("cannot run {program:?} in AS {isd_as}: {source}")]
    Run {
        /// The program.
        program: String,
        /// The AS.
        isd_as: IsdAsn,
        /// The system's error.
        source: io::Error,
    },
    /// The lab has no such AS, interface or service, or a part of it refused or failed.
    #[error("{0}")]
    Failed(String),
}

/// The reason why a lab could not be taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DownError {
    /// The lab's folder cannot be locked.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The lab's state cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another command keeps the lab's lock.
    #[error(
        "another command holds lab {0:?}, and does not end: end it (`ps` shows `hawser lab … {0}`), \
         then take the lab down again"
    )]
    Busy(String),
    /// The command runs inside the lab and would end itself.
    #[error("this command runs inside the lab, which it is to take down: run it outside")]
    Inside,
    /// A process of the lab cannot be ended.
    #[error("cannot end all processes of the lab: {0}")]
    Process(io::Error),
    /// The lab's folder cannot be removed.
    #[error("cannot remove {path}: {source}", path = path.display())]
    Remove {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// What may be done about a file of a lab; a damaged one's error says so itself.
fn hint(error: &FileError) -> &'static str {
    match error.is_damaged() {
        true => "",
        false => {
            ": is the lab coming up right now? if not, clear up with `hawser lab down --name NAME`"
        }
    }
}
