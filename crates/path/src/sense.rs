//! Finds out by trial whether paths that share interfaces share a bottleneck (001, section VIII).
//!
//! This is the outlook of the paper: observe the rates of the paths in use while one more path that
//! shares hops with them is added; if no rate falls, the shared hops are no bottleneck. A path
//! added this way is still watched, since a bottleneck may arise later.
//!
//! Rates vary from slot to slot without a cause. This variation is measured too: the larger it is,
//! the more slots are compared before a conclusion.
//!
//! The caller chooses the keys: a downloader uses paths, an uploader pairs of peer and path.

mod check;
mod estimate;
mod sensing;
#[cfg(test)]
mod tests;
mod trial;

pub use self::sensing::{Sense, SenseOptions};
