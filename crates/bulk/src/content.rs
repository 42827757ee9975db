//! The content of a transfer: files as one run of bytes, verified range by range.
//!
//! On the source, [`scan`] lists files and folders as a [`Manifest`], and a [`Source`] reads the
//! bytes at any position. On the sink, a [`ManifestBuilder`] checks the entries that arrive, and a
//! [`Landing`] finds what of them is there, and writes the rest. Both hash with [`tree`].
//!
//! All calls block; a [`Source`] and a [`Landing`] can be used by several threads at once.

pub mod tree;

mod exclude;
mod landing;
mod manifest;
mod scan;
mod skip;
mod source;

pub use self::exclude::{Pattern, PatternError};
pub use self::landing::{Existing, Landing, LandingError, LandingOptions};
pub use self::manifest::{
    Attributes, Entry, EntryKind, Extent, Manifest, ManifestBuilder, ManifestError, Modified, Piece,
};
pub use self::scan::{
    Metadata, Scan, ScanError, ScanOptions, Warning, scan, scan_shared, scan_shared_as,
};
pub use self::skip::{SkipReason, Skipped};
pub use self::source::{Source, SourceError};
