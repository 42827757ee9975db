//! Baselines over plain IP, without SCION: what this machine does at best.

mod dialogue;
mod round_trip;
mod set_up;
mod tcp;
mod tls;
mod udp;

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::dialogue::Dialogue;
pub use self::round_trip::round_trip;
pub use self::set_up::{SetUp, answer, set_up};
use crate::cpu::cpu_time;
use crate::error::PerfError;
use crate::message::Received;

/// Least time between two samples of what arrives.
const MIN_SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

/// A baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plain {
    /// UDP with segmentation offload (GSO) and its counterpart at the receiver (GRO), with bounded
    /// data in flight.
    Udp {
        /// Bytes of payload in each datagram.
        payload: u16,
    },
    /// TCP.
    Tcp,
    /// TLS 1.3 over TCP.
    Tls,
}

/// What the sender of a baseline has used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct PlainSent {
    /// Bytes sent, without headers.
    pub bytes: u64,
    /// Processor time of the process, in seconds.
    pub cpu_seconds: f64,
}

/// What the receiver of a baseline has counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlainReceived {
    /// The whole.
    #[serde(flatten)]
    pub received: Received,
    /// With TCP, the bytes that the program had read, by the seconds since its first byte: up to a
    /// hundred times a second.
    #[serde(default)]
    pub samples: Vec<(f64, u64)>,
}

/// Receives one test at `listen`. Reports the address it listens at before it waits.
///
/// # Errors
/// [`PerfError::System`] when the system refuses, [`PerfError::Message`] when the sender's TLS is
/// not valid.
pub fn receive(
    kind: Plain,
    listen: SocketAddr,
    listening: impl FnOnce(SocketAddr),
) -> Result<PlainReceived, PerfError> {
    let cpu = cpu_time();
    let mut samples = Vec::new();
    let received = match kind {
        Plain::Udp { .. } => udp::receive(listen, listening),
        Plain::Tcp => tcp::receive(listen, listening, &mut samples),
        Plain::Tls => tls::receive(listen, listening),
    };
    let received = Received {
        cpu_seconds: (cpu_time() - cpu).as_secs_f64(),
        ..received?
    };
    Ok(PlainReceived { received, samples })
}

/// Sends to a receiver for `time`.
///
/// # Errors
/// As [`receive`].
pub fn send(kind: Plain, to: SocketAddr, time: Duration) -> Result<PlainSent, PerfError> {
    let cpu = cpu_time();
    let bytes = match kind {
        Plain::Udp { payload } => udp::send(to, payload.into(), time),
        Plain::Tcp => tcp::send(to, time),
        Plain::Tls => tls::send(to, time),
    };
    Ok(PlainSent {
        bytes: bytes?,
        cpu_seconds: (cpu_time() - cpu).as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        for kind in [Plain::Tcp, Plain::Tls, Plain::Udp { payload: 1000 }] {
            let (address, listening) = mpsc::channel();
            let any = "127.0.0.1:0".parse().unwrap();
            let receiver =
                std::thread::spawn(move || receive(kind, any, |at| address.send(at).unwrap()));
            let to = listening.recv().unwrap();
            let sent = send(kind, to, Duration::from_millis(20)).unwrap();
            let PlainReceived { received, samples } = receiver.join().unwrap().unwrap();
            assert!(received.bytes > 0, "{kind:?}");
            assert!(received.bytes <= sent.bytes, "{kind:?}");
            if !matches!(kind, Plain::Udp { .. }) {
                assert_eq!(received.bytes, sent.bytes);
            }
            if kind == Plain::Tcp {
                assert_eq!(samples.last().unwrap().1, received.bytes);
            }
        }
    }
}
