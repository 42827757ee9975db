//! How fast a subflow may send: rate control of one path, without I/O and without a clock.
//!
//! [`Algorithm::start`] makes a [`RateControl`] for a subflow:
//!
//! - PCC Allegro (Dong et al., NSDI 2015), as published and as Hercules runs it (003);
//! - PCC Vivace-Latency (Dong et al., NSDI 2018).

mod algorithm;
mod allegro;
mod announced;
mod control;
mod line;
mod monitor;
mod pcc;
#[cfg(test)]
mod tests;
mod vivace;

pub use self::algorithm::{Algorithm, UnknownAlgorithm};
pub use self::announced::Announced;
pub use self::control::RateControl;
