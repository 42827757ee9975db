//! Whether paths that share interfaces share a bottleneck, found out by trying (001, section VIII).
//!
//! The outlook of the paper: observe the rates of the paths in use while one more that shares hops
//! with them is added; if none falls, the shared hops are no bottleneck. A path added so stays
//! under watch, since a bottleneck may come later.
//!
//! Rates differ from slot to slot without any cause. So how much they do is measured too, and the
//! more that is, the more slots are looked at before anything is concluded.
//!
//! Keys are the caller's: a downloader names paths, an uploader pairs of peer and path.

mod check;
mod estimate;
mod sensing;
#[cfg(test)]
mod tests;
mod trial;

pub use self::sensing::{Sense, SenseOptions};
