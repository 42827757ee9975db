//! Errors of operations on a lab.

use std::io;

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

/// What may be done about a file of a lab; a damaged one's error says so itself.
fn hint(error: &FileError) -> &'static str {
    match error.is_damaged() {
        true => "",
        false => {
            ": is the lab coming up right now? if not, clear up with `hawser lab down --name NAME`"
        }
    }
}
