//! Errors of a node.

use std::io;
use std::path::PathBuf;

use hawser_bundle::{ContentError, UnpackError, WriteError};
use hawser_topology::IsdAsn;

use crate::event::ServiceName;

/// A configuration cannot be installed in a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The folder has another AS.
    #[error("{folder} has AS {there}, not {wanted}: name another folder", folder = .folder.display())]
    OtherAs {
        /// The folder.
        folder: PathBuf,
        /// The AS that it has.
        there: IsdAsn,
        /// The AS of the configuration.
        wanted: IsdAsn,
    },
    /// The folder has something else.
    #[error("{folder} is neither empty nor the folder of an AS: name another folder", folder = .0.display())]
    NotAnAs(PathBuf),
    /// The configuration in the folder is not valid.
    #[error("the configuration in {folder} cannot be used: {reason}", folder = .folder.display())]
    Broken {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        reason: ContentError,
    },
    /// The new configuration is not valid.
    #[error("the configuration cannot be used: {0}")]
    Content(#[from] ContentError),
    /// Another process runs the AS.
    #[error("another process runs the AS in {folder}: stop it first", folder = .0.display())]
    Runs(PathBuf),
    /// The path is too long for the Unix sockets in it.
    #[error(
        "{folder} is too long a path for the sockets of the services: name one with at most {most} bytes", folder = .folder.display()
    )]
    TooLong {
        /// The folder.
        folder: PathBuf,
        /// Its longest length.
        most: usize,
    },
    /// Files cannot be written or read.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file or folder cannot be used.
    #[error("cannot use {path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Something cannot be fetched from a coordinator, or reported to it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The URL is not one.
    #[error("{0:?} is not a URL such as https://coordinator.example:8040")]
    Url(String),
    /// Certificates cannot be read.
    #[error("certificates to verify the coordinator cannot be read: {0}")]
    Certificates(String),
    /// No connection comes about.
    #[error("the coordinator {url} cannot be reached: {reason}")]
    Unreachable {
        /// Its URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// The coordinator does not answer in time, or the connection breaks.
    #[error("the coordinator {url} did not answer: {reason}")]
    Broken {
        /// Its URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// The coordinator refuses this host.
    #[error(
        "the coordinator {url} refuses this host ({status}): {}",
        with_remedy(reason)
    )]
    Refused {
        /// Its URL.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        reason: String,
    },
    /// The coordinator answers with an error.
    #[error("the coordinator {url} answered {status}: {reason}")]
    Status {
        /// Its URL.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        reason: String,
    },
    /// The answer is longer than it can be.
    #[error("the coordinator {url} sent more than {most} bytes")]
    TooLong {
        /// Its URL.
        url: String,
        /// The longest answer.
        most: u64,
    },
    /// The archive is not valid.
    #[error("the coordinator {url} sent a configuration that cannot be used: {reason}")]
    Archive {
        /// Its URL.
        url: String,
        /// Why.
        reason: UnpackError,
    },
    /// The segments are not valid.
    #[error("the coordinator {url} sent segments that cannot be used: {reason}")]
    Segments {
        /// Its URL.
        url: String,
        /// Why.
        reason: String,
    },
}

/// A node cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The folder cannot be used.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The coordinator in the configuration cannot be used.
    #[error(transparent)]
    Coordinator(#[from] FetchError),
    /// A service does not start.
    #[error("the {service} does not start: {reason}")]
    Service {
        /// The service.
        service: ServiceName,
        /// What it said last, or how it ended.
        reason: String,
    },
    /// A process cannot be started or waited for.
    #[error("cannot run {program}: {source}", program = program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The reason of a refusal, with the remedy, which the coordinator may have named already.
fn with_remedy(reason: &str) -> String {
    const REMEDY: &str = "fetch a new archive";
    match reason.contains(REMEDY) {
        true => reason.to_owned(),
        false => format!("{reason}: {REMEDY}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_named_once() {
        let once = "the secret was replaced: fetch a new archive";
        assert_eq!(with_remedy("the secret was replaced"), once);
        assert_eq!(with_remedy(once), once);
    }
}
