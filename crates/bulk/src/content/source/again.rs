//! Files that changed while they were sent, to be sent again.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use hawser_store::{Handles, StoreError};

use super::{Scanned, Skips, Source};
use crate::content::manifest::{Manifest, ManifestError};
use crate::content::skip::{SkipReason, Skipped};

impl Source {
    /// The content of these entries as their files are now, with the directories that they are in.
    /// `None` if the content is on no disk.
    ///
    /// # Errors
    /// If the files have become too large in all.
    pub(crate) fn again(&self, entries: &[usize]) -> Result<Option<Self>, ManifestError> {
        let Some(files) = &self.files else {
            return Ok(None);
        };
        // Whether each is to be looked up: its directories are not.
        let mut wanted = BTreeMap::new();
        for entry in entries {
            wanted.insert(*entry, true);
            let mut parent = self.manifest.parent(*entry);
            while let Some(entry) = parent {
                wanted.entry(entry).or_insert(false);
                parent = self.manifest.parent(entry);
            }
        }
        let skips = Skips::default();
        let mut found = Vec::with_capacity(wanted.len());
        for (index, (entry, is_file)) in wanted.iter().enumerate() {
            let before = &self.manifest.entries()[*entry];
            let now = match is_file {
                true => files.roots.look_up(*entry, before, files.carry),
                false => Ok(Some(before.clone())),
            };
            let now = now.and_then(|now| {
                let path = || files.roots.path_of(*entry, before);
                let gone = || StoreError::io("find", &path(), ErrorKind::NotFound.into());
                now.ok_or_else(gone)
            });
            found.push(now.unwrap_or_else(|error| {
                skips.add(Skipped {
                    entry: index,
                    reason: SkipReason::Failed,
                    text: error.to_string(),
                });
                before.clone()
            }));
        }
        Ok(Some(Self {
            manifest: Arc::new(Manifest::new(found)?),
            files: Some(Scanned {
                roots: files.roots.of(wanted.into_keys()),
                handles: Handles::default(),
                carry: files.carry,
            }),
            values: Mutex::default(),
            strict: self.strict,
            skips,
            unlisted: Vec::new(),
        }))
    }
}
