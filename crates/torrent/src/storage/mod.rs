//! The torrent's files on disk.

pub(crate) mod check;
mod disk;
mod error;
mod files;
mod layout;
mod links;
mod lock;
mod mark;
mod survey;
mod watch;

pub(crate) use disk::{Disk, DiskEvent};
pub use error::StorageError;
pub(crate) use files::Files;
pub(crate) use layout::Layout;
pub(crate) use lock::Lock;
pub(crate) use survey::Survey;
pub use watch::ChangedFile;
pub(crate) use watch::{ContentWatch, Stamps, read_checked};
