//! The torrent's files on disk.

pub(crate) mod check;
mod error;
mod files;
mod layout;

pub use error::StorageError;
pub(crate) use files::Files;
pub(crate) use layout::Layout;
