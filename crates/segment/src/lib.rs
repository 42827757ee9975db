//! Path segments as the control plane carries them, and the paths made of them.
//!
//! A [`Segment`] is read from the message in which control services hand it out; [`combine`] joins
//! up, core and down segments to paths, with all that the ASes announced of them. Both do the same
//! as scionproto's `segment` and `combinator` packages: the same segments give the same paths, in
//! the same order, with the same MTU, expiry and metadata.
//!
//! No I/O and no clock. Signatures are not verified here but in `hawser-trust`.

mod combine;
mod discovery;
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
