//! Files that say how fast links may be, and where links are.
//!
//! - `link_info.json`, as SCIONLab's coordinator writes it (004, section 5.2.1), with optional keys
//!   added;
//! - the same in TOML or YAML, with rates as in `.topo` files;
//! - an AS's `topology.json`, in which the links are found, so that only rates need to be named.
//!
//! [`LinkFile`] is what such a file says; [`LinkFile::limits`] turns it into limits by device.

mod error;
mod json;
mod limits;
mod link;
mod named;
mod read;
mod topology;

pub use self::error::{LimitsError, LinkFileError};
pub use self::limits::{FailedLink, FileLimits};
pub use self::link::{Link, LinkFile, Place, Rates};
pub use self::read::LARGEST_FILE;
