//! The path manager: decides which paths a transfer uses. It receives events and gives orders.
//!
//! No I/O, no clock, no async: the caller passes the time. Nothing here depends on a protocol, or
//! on what a transfer sends over its subflows.
//!
//! - [`PathSet`]: the paths to one remote, each with a decision and its reason.
//! - [`Sharing`]: the paths to all downloaders of an uploader, assigned so that they overlap little.
//! - [`Order`]: what a transfer must do, with the [`Cause`].
//! - [`Backoff`]: when a path is retried after a [`Failure`].
//! - [`SelectBy`]: which side of a transfer chooses the paths.
//!
//! Both state machines live alike. One task of the transfer owns each of them; there is no lock in
//! this crate. It reports what happens, with the time, and carries out what [`PathSet::orders`] or
//! [`Sharing::tick`] returns: after each event, and at `next_due` if nothing happens. They begin
//! without paths, have no end of their own, and are dropped with the transfer.
//!
//! The life of a subflow begins with [`Action::Dial`], or with a connection that a downloader
//! opened. It is *dialing*, then *connected*, and *held* and *resumed* any number of times while it
//! is. It ends with [`Action::Close`], or when the transfer reports that it was lost or closed.
//! From then on the manager does not know it: a report about it that comes later changes nothing,
//! and a path that is dialed again gets a new subflow.
//!
//! `tests/copy.rs` is a whole transfer that obeys a [`PathSet`], without a network. With one, the crate
//! `hawser-session` carries out the orders to dial.

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
