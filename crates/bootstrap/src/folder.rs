//! The folder in which a host keeps what it has fetched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hawser_file::PUBLIC;
use hawser_topology::{FileError, IsdAsn};
use hawser_trust::{LoadError, Store, Trc};

use crate::error::JoinError;

/// The folder of one AS.
pub(crate) struct Folder {
    path: PathBuf,
    trusted: Store,
}

impl Folder {
    /// The folder of the AS in `state`, with the TRCs in it. It may not exist.
    pub fn open(state: &Path, isd_as: IsdAsn) -> Result<Self, JoinError> {
        // A colon ends a path in some variables.
        let path = state.join(isd_as.to_string().replace(':', "_"));
        let certs = path.join("certs");
        let trusted = match certs.try_exists() {
            Ok(false) => Store::default(),
            _ => Store::load(&certs)?,
        };
        Ok(Self { path, trusted })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The TRCs that are trusted.
    pub fn trusted(&self) -> &Store {
        &self.trusted
    }

    /// Adds TRCs, and replaces the topology.
    pub fn write(&self, topology: &[u8], trcs: &[Trc]) -> Result<(), JoinError> {
        let certs = self.path.join("certs");
        fs::create_dir_all(&certs).map_err(FileError::at(&certs))?;
        let write = |path: PathBuf, bytes: &[u8]| match fs::read(&path) {
            Ok(found) if found == bytes => Ok(()),
            _ => hawser_file::write(&path, bytes, PUBLIC).map_err(FileError::at(&path)),
        };
        // In order: each is an update of the one before.
        for trc in trcs {
            write(certs.join(format!("{}.trc", trc.id())), trc.to_der())?;
        }
        Ok(write(self.path.join("topology.json"), topology)?)
    }
}

/// Why TRCs could not be loaded once they are in a folder, if so.
pub(crate) fn damage(trcs: &[Trc]) -> Result<Option<String>, JoinError> {
    let failed = |error: io::Error| FileError::at(&std::env::temp_dir())(error);
    let folder = tempfile::tempdir().map_err(failed)?;
    for trc in trcs {
        let path = folder.path().join(format!("{}.trc", trc.id()));
        fs::write(path, trc.to_der()).map_err(failed)?;
    }
    match Store::load(folder.path()) {
        Ok(_) => Ok(None),
        Err(LoadError::File { path, reason }) => {
            let name = path.file_stem().unwrap_or_default().display().to_string();
            Ok(Some(format!("{name}: {reason}")))
        }
        Err(error) => Err(error.into()),
    }
}
