//! Hosts in toy networks: daemons, paths, sockets, lanes. One program, as the networks take longer to
//! compile than the tests.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod daemon;
mod lanes;
mod paths;
mod probe;
mod router_down;
mod socket;
mod standalone;
mod toy;
