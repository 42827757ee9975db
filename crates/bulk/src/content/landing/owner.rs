//! Owners, ACLs and extended attributes.

use std::ffi::OsStr;
use std::sync::atomic::Ordering;

use hawser_store::{Folder, Found};

use super::disk::Disk;
use crate::content::manifest::{ACCESS_ACL, Attributes, DEFAULT_ACL, EntryKind};
use crate::content::scan::set_id_bits;
use crate::protocol::Choices;

impl Disk {
    /// Entries of which something was not taken, or could not be set.
    pub fn stripped(&self) -> u64 {
        self.taking.stripped.load(Ordering::Relaxed)
    }

    /// What is taken of an entry's attributes, and whether that is all.
    fn taken(&self, entry: usize) -> Option<(Attributes, bool)> {
        let sent = self.entry(entry).attributes.as_deref()?;
        let takes = |choice| self.taking.choices.contains(choice);
        let extended = sent.extended.iter().filter(|(name, _)| {
            let is_acl = name == ACCESS_ACL || name == DEFAULT_ACL;
            takes(if is_acl {
                Choices::ACLS
            } else {
                Choices::ATTRIBUTES
            })
        });
        let taken = Attributes {
            user: sent.user.filter(|_| takes(Choices::OWNER)),
            group: sent.group.filter(|_| takes(Choices::GROUP)),
            hard_link: sent.hard_link,
            extended: extended.cloned().collect(),
        };
        let is_all = taken == *sent;
        Some((taken, is_all))
    }

    /// Whether what is at the name of an entry may have other attributes than it is to have.
    pub(super) fn differs(&self, entry: usize, found: Found) -> bool {
        self.taken(entry).is_some_and(|(taken, is_all)| {
            let Attributes {
                user,
                group,
                extended,
                ..
            } = taken;
            !is_all
                || user.is_some_and(|user| user != found.owner.0)
                || group.is_some_and(|group| group != found.owner.1)
                || !extended.is_empty()
        })
    }

    /// Gives what has a name in a folder the attributes of an entry, before its last permissions.
    /// Returns the bits of set-uid and set-gid that it may have: they are for its owners at the
    /// source alone.
    pub(super) fn set_attributes(&self, entry: usize, folder: &Folder, name: &OsStr) -> u32 {
        let Some((mut taken, mut is_all)) = self.taken(entry) else {
            return 0;
        };
        if taken.user.is_some() || taken.group.is_some() {
            // An ordinary user may give a file to a group, and to no other user.
            let owned = folder.set_owner(name, taken.user, taken.group);
            if owned.is_err() && folder.set_owner(name, None, taken.group).is_err() {
                taken.group = None;
            }
            if owned.is_err() {
                taken.user = None;
                is_all = false;
            }
        }
        for (attribute, value) in taken.extended.iter().filter(|(name, _)| name != ACCESS_ACL) {
            is_all &= folder.set_attribute(name, attribute, value).is_ok();
        }
        if !is_all {
            self.taking.stripped.fetch_add(1, Ordering::Relaxed);
        }
        match self.entry(entry).kind {
            EntryKind::Link { .. } => 0,
            _ => set_id_bits(&taken),
        }
    }

    /// Gives a file or directory its ACL, after its permissions, which it changes.
    pub(super) fn set_acl(&self, entry: usize, folder: &Folder, name: &OsStr) {
        let Some((taken, is_all)) = self.taken(entry) else {
            return;
        };
        let mut extended = taken.extended.iter();
        if let Some((acl, value)) = extended.find(|(name, _)| name == ACCESS_ACL)
            && folder.set_attribute(name, acl, value).is_err()
            && is_all
        {
            self.taking.stripped.fetch_add(1, Ordering::Relaxed);
        }
    }
}
