//! The map: which IP destinations of programs go over SCION, and where to.
//!
//! A [`MapFile`] has the entries as they are written, [`Addresses`] those of the host names in them,
//! and a [`Map`] is made of both: it finds the entry of a destination. What runs with a map follows
//! its file, and resolves the names again at intervals:
//!
//! ```
//! # use hawser_shim::map::{Addresses, Follower, Local, Map};
//! # let (mut follower, local) = (Follower::new("map.toml"), Local::default());
//! # let mut addresses = Addresses::default();
//! if let Some(Ok(file)) = follower.poll() {
//!     addresses = addresses.resolve(&file.names());
//!     let (map, problems) = Map::new(file.entries(), &addresses, &local);
//!     let prefixes = map.captured();
//!     let route = map.lookup("10.1.0.7:443".parse().expect("an address"));
//! }
//! ```
//!
//! Files are read by [`MapFile::read`], [`MapFile::policy`] and [`Follower`], and the resolver is
//! asked by [`Addresses::resolve`]; all else does no I/O.

mod check;
mod destination;
pub mod edit;
mod entry;
mod file;
mod follow;
mod lines;
mod resolve;
mod shila;
mod table;
mod target;
mod text;

pub use self::check::{Fault, Local, Problem, Role};
pub use self::destination::{Destination, DestinationError, HostName, Hosts};
pub use self::entry::{Entry, MAX_PATHS};
pub use self::file::{MapFile, MapFileError};
pub use self::follow::Follower;
pub use self::lines::LineError;
pub use self::resolve::Addresses;
pub use self::table::{Map, Route};
pub use self::target::{Target, TargetError};
