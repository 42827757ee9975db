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
//!
//! The life of a rate control. It begins in slow start, or what its algorithm has in its place, with a
//! first window or rate that may be larger where the path announces what it holds; CUBIC and BBR jump to
//! half of that once something is acknowledged (careful resume, `resume`), or to half of what trains of
//! packets show (`train`). The subflow that owns it
//! reports each packet sent, acknowledged and lost and the end of each acknowledgement, and asks for rate
//! and window after that. CUBIC then avoids congestion; BBR drains, cruises, probes and looks for the
//! shortest round-trip time by turns; PCC compares rates in intervals. A connection that may choose goes
//! from CUBIC to BBR and back as `choice` says. After a time-out all packets in flight count as lost. A
//! control is dropped with its subflow; there is nothing to end.
//!
//! A control can tell what its path [`Carried`], and the next one over that path begins with it: its first
//! train is a little faster than that.
//!
//! Nothing runs by itself and nothing is locked: a control, and the [`Coupling`] of a host, belong to the
//! task or thread that calls them. A control remembers the packets in flight, or the intervals whose
//! packets are not all acknowledged or lost; a coupling what each subflow has delivered in less than two
//! seconds, an entry for each report.

mod algorithm;
mod allegro;
mod announced;
mod bbr;
mod carried;
mod choice;
mod control;
mod coupling;
mod cubic;
mod delivery;
mod line;
mod monitor;
mod pcc;
mod quantum;
mod resume;
mod round;
mod seen;
mod slow_start;
mod start;
#[cfg(test)]
mod tests;
mod train;
mod vivace;
mod window;

pub use self::algorithm::{Algorithm, UnknownAlgorithm};
pub use self::announced::Announced;
pub use self::carried::Carried;
pub use self::choice::{Congestion, CongestionReason, CongestionState};
pub use self::control::RateControl;
pub use self::coupling::Coupling;
pub use self::window::WindowControl;
