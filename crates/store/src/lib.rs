//! Content as one run of bytes over files, verified range by range.
//!
//! The caller provides the list of files ([`Layout`]), the division of the bytes into ranges with
//! their hashes ([`Ranges`]), and the bytes. This crate keeps them on disk:
//!
//! - [`Target`]: files to download into. Opening it refuses files that must not be overwritten,
//!   locks the files against a second download, and verifies what an earlier download left. Files
//!   that are not selected are not created: what is needed of them is in a part file.
//! - [`Folder`]: names below a folder, which no link leads out of.
//! - [`Files`]: reads and writes at any position of the run of bytes.
//! - [`Disk`]: threads that write and verify, so that no async task waits for a disk.
//! - [`Budget`]: bounds the data that waits for the disk, over all jobs of the process.
//! - [`check`], [`hash_ranges`]: hash whole content on all cores.
//! - [`Recorder`]: keeps what was verified from one run to the next, so that it is not hashed again.
//! - [`Watch`]: detects files that change while they are served.

mod budget;
mod check;
mod disk;
mod error;
mod files;
mod folder;
mod handles;
mod layout;
mod lock;
mod mark;
mod names;
mod options;
mod partial;
mod partial_names;
mod parts;
mod range;
mod stamp;
mod status;
mod survey;
mod target;
mod vectored;
mod verified;
mod watch;

pub use self::budget::{Account, Budget, Reservation};
pub use self::check::{check, hash_ranges};
pub use self::disk::{Disk, DiskEvent};
pub use self::error::StoreError;
pub use self::files::Files;
pub use self::folder::Folder;
pub use self::handles::Handles;
pub use self::layout::{Entry, Layout};
pub use self::lock::{Lock, lock};
pub use self::names::{Found, FoundKind, Room, set_status};
pub use self::options::{Allocation, FileOptions};
pub use self::partial_names::{PART_SUFFIX, part_name};
pub use self::range::{Hash, Ranges};
pub use self::stamp::Stamps;
pub use self::status::{Attribute, Extended};
pub use self::target::{Resumed, Target};
pub use self::verified::{Recorder, Verified, VerifiedFile};
pub use self::watch::{ChangedFile, News, Watch};
