//! Finds out by trial whether paths that share interfaces share a bottleneck (001, section VIII).
//!
//! This is the outlook of the paper: observe the rates of the paths in use while one more path that
//! shares hops with them is added; if no rate falls, the shared hops are no bottleneck. A path
//! added this way is still watched, since a bottleneck may arise later.
//!
//! Rates vary from slot to slot without a cause. This variation is measured too: the larger it is,
//! the more slots are compared before a conclusion.
//!
//! It is *idle* while rates are measured, until the paths that a candidate shares with are steady.
//! Then one candidate is on *trial*. If all together carry more and no rate fell, it is *kept*; if
//! not, it is left, and its pairs with those that fell (with all, if only nothing was gained) are
//! not tried for a pause, doubled each time. When a rate falls beside a kept path, that path is
//! paused for a *check*: if the rate rises without it, it is left, and used again if not. Only one
//! trial or check is under way at a time, and it takes at most five times the slots it needs, not
//! counting those in which there was little to send. The slot after each change of the paths in use
//! is not measured.
//!
//! The caller drives it with [`Sense::tick`], once for each time slot, from the task that owns it:
//! for a downloader the weighing of its path set, for an uploader the assignment. It keeps the last
//! rates of each path in use, up to five times the slots compared, and the pauses of pairs until
//! they have been over for as long as they lasted. It has no end of its own.
//!
//! The caller chooses the keys: a downloader uses paths, an uploader pairs of peer and path.

mod check;
mod estimate;
mod sensing;
#[cfg(test)]
mod tests;
mod trial;

pub use self::sensing::{Sense, SenseOptions};
