//! What is transferred: files, folders and symbolic links, and where the bytes of each file are in
//! the content (`docs/bulk-protocol.md`, *Manifest*).

mod builder;
mod codec;
mod error;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use self::builder::ManifestBuilder;
pub(crate) use self::builder::{MAX_PATH, is_part_name, stays_within};
pub use self::error::ManifestError;

/// Most extents of a file, so that its entry fits a message. A source merges the ones with the
/// smallest holes between them.
pub(crate) const MAX_EXTENTS: usize = 3500;

/// What the name of a file ends with until the file is complete.
pub(crate) const PART_SUFFIX: &[u8] = b".hawser-part";

/// The extended attribute with the ACL of a file or directory.
pub(crate) const ACCESS_ACL: &[u8] = b"system.posix_acl_access";

/// The extended attribute with the ACL that what is made in a directory gets.
pub(crate) const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// What the names of extended attributes begin with that users set.
pub(crate) const USER_ATTRIBUTE: &[u8] = b"user.";

/// The bits of a mode that are transferred: permissions, set-uid, set-gid, sticky.
pub(crate) const MODE: u32 = 0o7777;

/// A file, directory or symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the folder of the transfer, of any bytes but NUL.
    pub path: PathBuf,
    /// Permission bits, at most `0o7777`.
    pub mode: u32,
    /// Modification time.
    pub modified: Modified,
    /// What else is carried of it, if anything is.
    pub attributes: Option<Box<Attributes>>,
    /// The kind, with what only that kind has.
    pub kind: EntryKind,
}

impl Entry {
    /// The file of which this one is a further name.
    #[must_use]
    pub fn hard_link(&self) -> Option<usize> {
        let attributes = self.attributes.as_deref()?;
        attributes.hard_link.map(|entry| entry as usize)
    }

    /// Length of a file in bytes, holes included; 0 of others.
    #[must_use]
    pub const fn size(&self) -> u64 {
        match self.kind {
            EntryKind::File { size, .. } => size,
            EntryKind::Directory | EntryKind::Link { .. } => 0,
        }
    }
}

/// What is carried of an entry only where both sides want it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// The number of the owning user.
    pub user: Option<u32>,
    /// The number of the owning group.
    pub group: Option<u32>,
    /// The entry before of which this file, which has no content of its own, is a further name.
    pub hard_link: Option<u32>,
    /// Extended attributes: names, which begin with `user.` or are those of ACLs, and values.
    pub extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A modification time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modified {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds on top, below 10^9.
    pub nanoseconds: u32,
}

/// The kind of an [`Entry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// Length in bytes, holes included.
        size: u64,
        /// What of it is content, ascending; the rest are holes, which read as zeros.
        extents: Vec<Extent>,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Link {
        /// What it leads to, relative to the folder of the link.
        target: PathBuf,
    },
}

impl EntryKind {
    /// The number of extents.
    pub(crate) const fn extents(&self) -> usize {
        match self {
            Self::File { extents, .. } => extents.len(),
            Self::Directory | Self::Link { .. } => 0,
        }
    }
}

/// A run of bytes of a file that is content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Position of its first byte in the file.
    pub offset: u64,
    /// Length in bytes, at least 1.
    pub length: u64,
}

impl Extent {
    /// Position of the first byte behind it in the file.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.offset + self.length
    }
}

/// A run of content that is in one extent of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index of the file in [`Manifest::entries`].
    pub entry: usize,
    /// Position of its first byte in the file.
    pub offset: u64,
    /// Position of its first byte in the content.
    pub position: u64,
    /// Length in bytes, at least 1.
    pub length: u64,
}

/// The entries of a transfer in order, all of them valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    entries: Vec<Entry>,
    /// Of each entry the index of its directory.
    parents: Vec<Option<u32>>,
    /// The extents of all files in order.
    spans: Vec<Span>,
    /// Bytes of content.
    length: u64,
    hash: [u8; 32],
}

/// An extent as part of the content. It ends where the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    /// Position in the content.
    position: u64,
    /// Position in the file.
    offset: u64,
    entry: u32,
}

impl Piece {
    /// Position of the first byte behind it in the file.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.offset + self.length
    }
}

impl Manifest {
    /// The manifest of these entries, directories before what they contain.
    ///
    /// # Errors
    /// If an entry is invalid.
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Result<Self, ManifestError> {
        let mut builder = ManifestBuilder::default();
        for entry in entries {
            builder.append(entry)?;
        }
        builder.build()
    }

    /// The entries in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes of content: of all extents of all files.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// BLAKE3 of the fields of all `Entry` messages in order, as `ManifestEnd` has it.
    #[must_use]
    pub const fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// The directory of an entry; `None` at the top.
    #[must_use]
    pub fn parent(&self, entry: usize) -> Option<usize> {
        self.parents[entry].map(|parent| parent as usize)
    }

    /// The positions of a file in the content; empty for a file of holes, directory or link.
    #[must_use]
    pub fn content_of(&self, entry: usize) -> Range<u64> {
        let first = self
            .spans
            .partition_point(|span| (span.entry as usize) < entry);
        let after =
            first + self.spans[first..].partition_point(|span| span.entry as usize == entry);
        self.position_of(first)..self.position_of(after)
    }

    /// The pieces of files that make up these positions of the content, in order. Positions beyond
    /// the content are left out.
    pub fn pieces(&self, positions: Range<u64>) -> impl Iterator<Item = Piece> + '_ {
        let Range { start, end } = positions;
        let end = end.min(self.length);
        let after = self.spans.partition_point(|span| span.position <= start);
        (after.saturating_sub(1)..self.spans.len())
            .map(|index| (self.spans[index], self.position_of(index + 1)))
            .take_while(move |(span, _)| span.position < end && start < end)
            .map(move |(span, span_end)| {
                let position = span.position.max(start);
                Piece {
                    entry: span.entry as usize,
                    offset: span.offset + (position - span.position),
                    position,
                    length: span_end.min(end) - position,
                }
            })
    }

    /// The position where a span begins, or the end of the content.
    fn position_of(&self, span: usize) -> u64 {
        self.spans
            .get(span)
            .map_or(self.length, |span| span.position)
    }

    /// Assembles checked entries.
    fn assemble(
        entries: Vec<Entry>,
        parents: Vec<Option<u32>>,
        hash: [u8; 32],
    ) -> Result<Self, ManifestError> {
        refuse_repeated(&entries)?;
        let mut manifest = Self {
            entries,
            parents,
            spans: Vec::new(),
            length: 0,
            hash,
        };
        for (index, entry) in manifest.entries.iter().enumerate() {
            let EntryKind::File { extents, .. } = &entry.kind else {
                continue;
            };
            for extent in extents {
                manifest.spans.push(Span {
                    position: manifest.length,
                    offset: extent.offset,
                    entry: index as u32,
                });
                manifest.length += extent.length;
            }
        }
        Ok(manifest)
    }
}

/// Refuses two entries with the same path.
fn refuse_repeated(entries: &[Entry]) -> Result<(), ManifestError> {
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    let path = |index: &u32| entries[*index as usize].path.as_os_str();
    order.sort_unstable_by_key(path);
    match order
        .windows(2)
        .find(|pair| path(&pair[0]) == path(&pair[1]))
    {
        Some(pair) => Err(ManifestError::Repeated(path(&pair[0]).into())),
        None => Ok(()),
    }
}

/// The directories so far, by path.
type Directories = HashMap<PathBuf, u32>;

/// The directory that contains `path`; `None` at the top.
fn containing(path: &Path) -> Option<&Path> {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
}

#[cfg(test)]
mod tests;
