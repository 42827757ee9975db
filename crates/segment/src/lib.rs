//! Path segments of the control plane, and their combination to paths.
//!
//! A [`Segment`] is read from the message that control services send; [`combine`] joins up, core
//! and down segments to paths, with the metadata that the ASes announce. Both do the same as
//! scionproto's `segment` and `combinator` packages: the same segments give the same paths, in the
//! same order, with the same MTU, expiry and metadata.
//!
//! This crate does no I/O and reads no clock. `hawser-trust` verifies signatures.

mod combine;
mod edge;
mod info;
mod message;
mod path;
mod segment;
#[cfg(test)]
mod testing;

pub use self::combine::{Segments, combine};
pub use self::message::SegmentError;
pub use self::path::Combined;
pub use self::segment::Segment;
