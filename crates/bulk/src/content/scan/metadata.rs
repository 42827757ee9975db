//! Permissions without what is not carried, and how much that is.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use hawser_store::{Extended, Folder, Found, FoundKind, StoreError};

use super::{Metadata, Warning};
use crate::content::manifest::MODE;

/// Set-uid and set-gid.
const SET_ID: u32 = 0o6000;

/// What is missing of how many files, and of which first.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<Metadata, (u64, PathBuf)>);

impl Missing {
    fn count(&mut self, metadata: Metadata, path: impl FnOnce() -> PathBuf) {
        let (count, _) = self.0.entry(metadata).or_insert_with(|| (0, path()));
        *count += 1;
    }

    /// The permissions to send for what has a name in a folder: no more than anybody has there.
    /// Counts what is not sent.
    pub fn mode(&mut self, folder: &Folder, name: &OsStr, found: Found) -> Result<u32, StoreError> {
        let mode = found.mode & MODE;
        if !matches!(found.kind, FoundKind::File | FoundKind::Folder) {
            return Ok(mode);
        }
        let path = || folder.path().join(name);
        let Extended { group, acl, user } = folder.extended(name)?;
        let is_file = found.kind == FoundKind::File;
        for (metadata, is_there) in [
            (
                Metadata::Owner,
                found.owner.0 != rustix::process::geteuid().as_raw(),
            ),
            (Metadata::SetId, is_file && mode & SET_ID != 0),
            (Metadata::Acl, acl),
            (Metadata::Attributes, user),
            (Metadata::HardLinks, is_file && found.links > 1),
        ] {
            if is_there {
                self.count(metadata, path);
            }
        }
        Ok(match group {
            // The group bits of the mode are the most that the ACL gives to anybody.
            Some(group) => mode & !(0o70 & !(group << 3)),
            None => mode,
        })
    }

    /// A warning for each kind of what is missing.
    pub fn warnings(self) -> impl Iterator<Item = Warning> {
        let all = self.0.into_iter();
        all.map(|(metadata, (count, first))| Warning::Missing {
            metadata,
            count,
            first,
        })
    }
}
