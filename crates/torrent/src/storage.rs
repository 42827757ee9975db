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

pub(crate) use self::disk::{Disk, DiskEvent};
pub use self::error::StorageError;
pub(crate) use self::files::Files;
pub(crate) use self::layout::Layout;
pub(crate) use self::lock::Lock;
pub(crate) use self::survey::Survey;
pub use self::watch::ChangedFile;
pub(crate) use self::watch::{ContentWatch, Stamps, read_checked};
