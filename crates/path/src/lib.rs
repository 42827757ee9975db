//! What a path is, how paths are compared and chosen, and why.
//!
//! Everything here is a plain function over plain values: no I/O, no clock, no async. The words are
//! those of SCION: a path crosses ASes from interface to interface, and its [`Fingerprint`] names
//! the sequence of interfaces.
//!
//! - [`Path`], [`Interface`], [`Fingerprint`], [`Metadata`]: what a path is.
//! - [`select()`]: chooses which of the paths to a peer are used, by a combination ([`Select`]) of
//!   [`STRATEGIES`], each with its printable [`Reason`].
//! - [`explain()`]: the same with the values that were compared, for output.
//! - [`Slots`]: decides which connected paths wait because they are slow, by handshake times and
//!   then per time slot.
//! - [`Sense`]: finds out by trial whether paths that share interfaces can be used together.
//! - [`Sequence`], [`Policy`]: which paths a user wants, and which a user allows.
//! - [`Assignment`]: which paths an uploader gives to which of its downloaders.
//! - [`show`]: paths as the JSON that `scion showpaths --format json` prints.

mod assign;
mod bits;
mod carbon;
mod decision;
mod explain;
mod fingerprint;
mod interface;
mod metadata;
mod path;
mod policy;
mod predicate;
mod reason;
mod select;
mod sense;
mod sequence;
pub mod show;
pub mod simplex;
mod slots;
#[cfg(test)]
mod testing;
mod text;

pub use self::assign::{Assignment, Change, SensingAssignment};
pub use self::carbon::{Carbon, CarbonError};
pub use self::decision::{Decision, Verdict};
pub use self::explain::{Explained, Explanation, explain};
pub use self::fingerprint::{Fingerprint, FingerprintParseError};
pub use self::interface::{Interface, InterfaceParseError};
pub use self::metadata::{Discovery, Geo, LinkType, Metadata};
pub use self::path::{Path, PathError};
pub use self::policy::{Acl, AclEntry, AclError, Policies, Policy, PolicyError};
pub use self::reason::{Overlap, PeerOverlap, Reason, Sensed};
pub use self::select::{
    Measured, Part, Rank, Ranked, STRATEGIES, Select, SelectError, Selection, StrategyKind, select,
    select_measured,
};
pub use self::sense::{Sense, SenseOptions};
pub use self::sequence::{Sequence, SequenceError};
pub use self::slots::{SlotOptions, Slots, TIME_SLOT};
