//! Errors of an export.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use hawser_bundle::NameError;
use hawser_control::ControlError;
use hawser_topology::IsdAsn;
use hawser_trust::{IssueError, SignError, WriteError};

/// The reason why a network is not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The name of the export cannot be that of a namespace or of a lab.
    #[error(
        "{name:?} is not a name for an export: write up to {most} of a-z, 0-9 and '-', with a letter or digit at both ends"
    )]
    Name {
        /// The name.
        name: String,
        /// Its largest length.
        most: usize,
    },
    /// The reference of the image is not valid.
    #[error(
        "{0:?} is not the name of an image: write for example registry.example:5000/hawser:0.1.0"
    )]
    Image(String),
    /// The file of hosts is not valid.
    #[error("line {line} of the hosts: {reason}")]
    Host {
        /// The line, from 1.
        line: usize,
        /// What is wrong, and the remedy.
        reason: String,
    },
    /// There are too few or too many hosts.
    #[error("{0}")]
    HostCount(String),
    /// Hosts were given where none are chosen.
    #[error(
        "hosts are for containerlab: Kubernetes places ASes by itself, and podman runs them on one machine"
    )]
    UnusedHosts,
    /// The network exceeds a bound of exports.
    #[error("{0}")]
    Network(String),
    /// The folder is something else.
    #[error("{folder} is not a folder: name a folder, which is made if there is none", folder = .0.display())]
    NotAFolder(PathBuf),
    /// The path of the folder cannot stand in a manifest.
    #[error("the path of {folder} is not UTF-8, as manifests must be: name another folder", folder = .0.display())]
    FolderName(PathBuf),
    /// The folder has an export for another program or of another name.
    #[error("{folder} has an export of {there}: name another folder for this one", folder = .folder.display())]
    OtherExport {
        /// The folder.
        folder: PathBuf,
        /// What is there.
        there: String,
    },
    /// A file is in the way that no export wrote.
    #[error("{path} is in the way, which no export wrote: move it away, or name another folder", path = .0.display())]
    Foreign(PathBuf),
    /// The list of the export's files is damaged or of a newer version.
    #[error("{path} cannot be used: {reason}: name another folder", path = .path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Segments need more room than there is.
    #[error(
        "{segments} segments take {size} MiB, and a network with more than {most} MiB is not supported yet: export fewer ASes or links"
    )]
    TooManySegments {
        /// How many segments there are.
        segments: usize,
        /// What they take, in MiB.
        size: usize,
        /// What is supported, in MiB.
        most: usize,
    },
    /// Keys, certificates or TRCs cannot be made.
    #[error(transparent)]
    Keys(#[from] WriteError),
    /// The certificate of an AS cannot be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// A master key cannot be made.
    #[error("cannot make the keys of {isd_as}: {source}")]
    MasterKey {
        /// The AS.
        isd_as: IsdAsn,
        /// Why.
        source: SignError,
    },
    /// A name of a file is not one for an archive.
    #[error(transparent)]
    FileName(#[from] NameError),
    /// The segments cannot be made.
    #[error(transparent)]
    Segments(#[from] ControlError),
    /// A file cannot be written as YAML, for a fault of this program.
    #[error("{what} cannot be written as YAML: {reason}")]
    Yaml {
        /// The file.
        what: String,
        /// Why.
        reason: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot use {path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ExportError {
    /// Whether arguments are wrong, rather than that the job failed.
    pub fn is_wrong_use(&self) -> bool {
        matches!(
            self,
            Self::Name { .. }
                | Self::Image(_)
                | Self::Host { .. }
                | Self::HostCount(_)
                | Self::UnusedHosts
                | Self::FolderName(_)
                | Self::NotAFolder(_)
                | Self::OtherExport { .. }
                | Self::Foreign(_)
        )
    }

    /// Adds a path to an error of the system.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn yaml(what: &str, error: impl fmt::Display) -> Self {
        Self::Yaml {
            what: what.to_owned(),
            reason: error.to_string(),
        }
    }
}
