//! Swarms on virtual time: the path manager with many peers in a computed network.
//!
//! Paths are chosen by `hawser-manager` as in transfers, and come from the control plane of
//! `hawser-control`; only clock and transport differ. Time advances in steps of [`STEP`], and no
//! real clock is read: the same network, [`Options`] and seed give the same [`Outcome`] to the last
//! bit.
//!
//! - The transport is a fluid: path-level peers that have something to carry share the directions
//!   of links max-min fairly ([`max_min`]), as long-lived connections with equal congestion control
//!   do at best. A link carries its `rate` in file bytes (headers are not subtracted), and each
//!   host has a rate of its own in each direction. Connecting and the first request take three
//!   round trips over the delays of the links; resuming a path-level peer takes one. Slow start,
//!   loss, jitter and queues are left out.
//! - Hosts request block by block what the picker of downloads chooses (`hawser-picker`), one block
//!   of each path-level peer at a time, and choke as downloads and seeders do (`hawser-choker`); free
//!   riders serve nobody. In the end, blocks that are late are requested twice. A leecher leaves as soon
//!   as it is complete. Requests, and what peers learn of each other, take no time; what has arrived of
//!   a block when its peer chokes is lost.
//! - [`SelectBy`] says which side chooses the paths: each leecher for itself, by selection, time
//!   slots and sensing, or each uploader for all leechers it serves, by assignment, turns and
//!   sensing (001, section VI).

mod book;
mod choose;
mod fair;
mod flow;
mod generate;
mod host;
mod names;
mod options;
mod outcome;
mod pieces;
mod random;
mod simulate;
mod swarm;
#[cfg(test)]
mod tests;

pub use hawser_manager::SelectBy;

pub use self::choose::Decided;
pub use self::fair::max_min;
pub use self::generate::{MAX_ASES, generate};
pub use self::options::{Hosts, Options, STEP, SimulateError};
pub use self::outcome::{Completion, Goodput, Outcome, Shared};
pub use self::simulate::{Progress, decisions, simulate};
