//! Permissions without what is not carried, and how much that is.

use std::collections::{BTreeMap, HashMap, hash_map};
use std::ffi::OsStr;
use std::path::PathBuf;

use hawser_store::{Extended, Folder, Found, FoundKind, StoreError};

use super::{Metadata, Warning};
use crate::content::manifest::{
    ACCESS_ACL, Attributes, DEFAULT_ACL, Entry, EntryKind, MODE, USER_ATTRIBUTE,
};
use crate::protocol::Choices;

/// Set-uid and set-gid.
const SET_ID: u32 = 0o6000;

/// Most bytes of extents, extended attributes and ACLs of an entry, so that it fits a message beside
/// its path.
const MAX_EXTENDED: usize = 60_000;
/// Most bytes of an extent in a message.
const EXTENT: usize = 16;

/// Permissions and attributes that are sent.
pub(super) type Sent = (u32, Option<Box<Attributes>>);

/// The bits of set-uid and set-gid that have the same meaning at the sink: with their owner.
pub(in super::super) fn set_id_bits(attributes: &Attributes) -> u32 {
    let user = attributes.user.map_or(0, |_| 0o4000);
    user | attributes.group.map_or(0, |_| 0o2000)
}

/// Attributes, if there are any.
fn pack(attributes: Attributes) -> Option<Box<Attributes>> {
    (attributes != Attributes::default()).then(|| Box::new(attributes))
}

/// Files that have further names: device and inode, and the entry of the first name.
#[derive(Debug, Default)]
pub(super) struct Links(HashMap<(u64, u64), u32>);

impl Links {
    /// Makes the entry for a file that is to be entry `index` a hard link, if another name of the file
    /// was an entry before.
    pub fn name(&mut self, found: Found, index: usize, entry: &mut Entry) {
        let EntryKind::File { extents, .. } = &mut entry.kind else {
            return;
        };
        if found.links < 2 {
            return;
        }
        match self.0.entry(found.identity) {
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(index as u32);
            }
            hash_map::Entry::Occupied(first) => {
                extents.clear();
                let attributes = entry.attributes.get_or_insert_default();
                attributes.hard_link = Some(*first.get());
            }
        }
    }
}

/// What is missing of how many files, and of which first.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<Metadata, (u64, PathBuf)>);

impl Missing {
    fn count(&mut self, metadata: Metadata, path: impl FnOnce() -> PathBuf) {
        let (count, _) = self.0.entry(metadata).or_insert_with(|| (0, path()));
        *count += 1;
    }

    /// The permissions and attributes to send for what has a name in a folder, a file in `extents`
    /// runs: no more permissions than anybody has there. Counts what is not sent.
    pub fn of(
        &mut self,
        folder: &Folder,
        (name, found): (&OsStr, Found),
        extents: usize,
        carry: Choices,
    ) -> Result<Sent, StoreError> {
        let mode = found.mode & MODE;
        let (user, group) = found.owner;
        let mut attributes = Attributes {
            user: carry.contains(Choices::OWNER).then_some(user),
            group: carry.contains(Choices::GROUP).then_some(group),
            hard_link: None,
            extended: Vec::new(),
        };
        if !matches!(found.kind, FoundKind::File | FoundKind::Folder) {
            return Ok((mode, pack(attributes)));
        }
        let path = || folder.path().join(name);
        let Extended { group, acl, user } = folder.extended(name)?;
        let (acls, others) = (Choices::ACLS, Choices::ATTRIBUTES);
        if acl && carry.contains(acls) || user && carry.contains(others) {
            attributes.extended = folder.attributes(name, |one| {
                let is_acl = one == ACCESS_ACL || one == DEFAULT_ACL;
                carry.contains(acls) && is_acl
                    || carry.contains(others) && one.starts_with(USER_ATTRIBUTE)
            })?;
            let sizes = attributes.extended.iter();
            let size: usize = sizes
                .map(|(name, value)| name.len() + value.len() + 9)
                .sum();
            if size + extents * EXTENT > MAX_EXTENDED {
                attributes.extended.clear();
                self.count(Metadata::Large, path);
            }
        }
        let is_file = found.kind == FoundKind::File;
        let is_foreign = found.owner.0 != rustix::process::geteuid().as_raw();
        let carried_bits = set_id_bits(&attributes);
        for (metadata, is_there) in [
            (
                Metadata::Owner,
                is_foreign && !carry.contains(Choices::OWNER),
            ),
            (
                Metadata::SetId,
                is_file && mode & SET_ID & !carried_bits != 0,
            ),
            (Metadata::Acl, acl && !carry.contains(acls)),
            (Metadata::Attributes, user && !carry.contains(others)),
            (
                Metadata::HardLinks,
                is_file && found.links > 1 && !carry.contains(Choices::HARD_LINKS),
            ),
        ] {
            if is_there {
                self.count(metadata, path);
            }
        }
        let mode = match group {
            // The group bits of the mode are the most that the ACL gives to anybody.
            Some(group) => mode & !(0o70 & !(group << 3)),
            None => mode,
        };
        Ok((mode, pack(attributes)))
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
