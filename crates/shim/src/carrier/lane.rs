//! The lanes that connections work.

#[cfg(test)]
pub(super) use crate::plane::lane::tests;
pub(super) use crate::plane::lane::{LaneEvent, LaneKey, SealedLane};
