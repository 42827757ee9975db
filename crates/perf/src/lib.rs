//! Throughput from one host to another, from memory to memory, with the processor time of both.
//!
//! A [`Server`] receives; [`measure`] connects to it over one SCION path and sends for some time: a
//! QUIC stream, or SCION/UDP packets. The test is requested, and its result returned, over a QUIC
//! connection of its own. [`plain`] has the baselines over plain IP: UDP, TCP, and TLS over TCP.

mod cpu;
mod error;
mod flight;
mod measure;
mod message;
pub mod plain;
mod raw;
mod server;

pub use self::cpu::cpu_time;
pub use self::error::PerfError;
pub use self::measure::{Mode, Options, Report, measure};
pub use self::message::Received;
pub use self::server::{Served, Server};
