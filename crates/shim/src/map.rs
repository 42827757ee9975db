//! The map: which IP destinations of programs go over SCION, and where to.
//!
//! A [`MapFile`] has the entries as they are written, [`Addresses`] has those of the host names in
//! them, and [`Map`] is made of both: it finds the entry of a destination. All but
//! [`MapFile::read`], [`MapFile::policy`], [`Follower`] and [`Addresses::resolve`] do no I/O.

mod check;
mod destination;
pub mod edit;
mod entry;
mod file;
mod follow;
mod resolve;
mod shila;
mod table;
mod target;
mod text;

pub use self::check::{Fault, Local, Problem, Role};
pub use self::destination::{Destination, DestinationError, HostName, Hosts};
pub use self::entry::{Entry, MAX_PATHS};
pub use self::file::{LineError, MapFile, MapFileError};
pub use self::follow::Follower;
pub use self::resolve::Addresses;
pub use self::table::{Map, Route};
pub use self::target::{Target, TargetError};
