//! How fast a subflow may send: rate control of one path, without I/O and without a clock.
//!
//! [`Algorithm::start`] makes a [`RateControl`] for a subflow:
//!
//! - CUBIC (RFC 9438), BBRv3 (draft-ietf-ccwg-bbr), or the one of them that suits the path's losses;
//!   QUIC connections use this [`WindowControl`] too;
//! - PCC Allegro (Dong et al., NSDI 2015), as published and as Hercules runs it (003);
//! - PCC Vivace-Latency (Dong et al., NSDI 2018).
//!
//! [`Coupling`] finds out which subflows of a host share links, and what they may take of each other.

mod algorithm;
mod allegro;
mod announced;
mod bbr;
mod choice;
mod control;
mod coupling;
mod cubic;
mod delivery;
mod line;
mod monitor;
mod pcc;
mod quantum;
mod round;
mod slow_start;
mod start;
#[cfg(test)]
mod tests;
mod vivace;
mod window;

pub use self::algorithm::{Algorithm, UnknownAlgorithm};
pub use self::announced::Announced;
pub use self::choice::{Congestion, CongestionReason, CongestionState};
pub use self::control::RateControl;
pub use self::coupling::Coupling;
pub use self::quantum::quantum;
pub use self::window::WindowControl;
