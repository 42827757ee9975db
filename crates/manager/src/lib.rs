//! The path manager: which paths a transfer uses. It is given what happens and orders what to do.
//!
//! No I/O, no clock, no async: every call is given the time. Nothing here knows a protocol; what a
//! transfer does over its subflows is its own affair.
//!
//! - [`PathSet`]: the paths to one remote, each with a decision and its reason.
//! - [`Sharing`]: the paths to all downloaders of an uploader, assigned so that they overlap little.
//! - [`Order`]: what the manager wants done, with its [`Cause`].
//! - [`Backoff`]: when a path that failed, as [`Failure`] says, is tried again.
//! - [`SelectBy`]: which side of a transfer chooses the paths.

mod backoff;
mod order;
mod path_set;
mod policy;
mod select_by;
mod sharing;

pub use hawser_path::TIME_SLOT;

pub use self::backoff::{Backoff, Failure, Pace, STANDBY};
pub use self::order::{Action, Cause, Order, SubflowId};
pub use self::path_set::{Carried, Demand, PathOptions, PathSet, PathStatus, Replace, Room};
pub use self::policy::denied;
pub use self::select_by::{SelectBy, SelectByParseError};
pub use self::sharing::Sharing;
