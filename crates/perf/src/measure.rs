//! The sending side of a test.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hawser_endhost::{Endhost, Path, ScionAddr};
use hawser_quic::{Connection, Endpoint};
use serde::Serialize;
use tokio::io::BufReader;

use crate::cpu::cpu_time;
use crate::error::PerfError;
use crate::message::{Ready, Received, Request, line, read};
use crate::raw::{self, Sent, Shape};
use crate::server::config;

/// Bytes handed to a stream at once.
const CHUNK: usize = 256 << 10;

/// What is sent, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What is sent.
    pub mode: Mode,
    /// How long the client sends.
    pub time: Duration,
}

/// What a test sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// A QUIC stream, as fast as congestion control allows.
    Quic,
    /// SCION/UDP packets, without congestion control: for networks of one's own.
    Raw {
        /// Bytes of each SCION packet; `None` for as many as the path takes.
        packet: Option<u16>,
        /// Bits of SCION packets per second; `None` for as fast as the receiver answers, with 1 MiB
        /// in flight.
        rate: Option<u64>,
    },
}

/// The result of a test.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `quic` or `raw`.
    pub mode: &'static str,
    /// Bytes of the largest SCION packet on the path.
    pub path_mtu: u16,
    /// Bytes of the data-plane path in each packet's header.
    pub path_bytes: usize,
    /// Bytes that the client sent, without headers.
    pub sent_bytes: u64,
    /// Bytes that the server received, without headers.
    pub received_bytes: u64,
    /// Packets sent; only of raw packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_packets: Option<u64>,
    /// Packets received; only of raw packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_packets: Option<u64>,
    /// Seconds from the first to the last byte, at the server.
    pub seconds: f64,
    /// Received bits per second, without headers, in Mbit/s.
    pub goodput_mbit: f64,
    /// Processor time of the client's process during the test, in seconds.
    pub sender_cpu_seconds: f64,
    /// Processor time of the server's process during the test, in seconds.
    pub receiver_cpu_seconds: f64,
}

/// Sends from `host` to the server at `peer` over `path`, and returns what arrived there.
///
/// # Errors
/// [`PerfError`] when the server does not answer, the path does not take the packets, or the
/// connection ends.
pub async fn measure(
    host: &Endhost,
    peer: ScionAddr,
    path: Path,
    options: &Options,
) -> Result<Report, PerfError> {
    let endpoint = Endpoint::bind(host.clone(), None, config())?;
    let connection = endpoint.connect(peer, path.clone()).await?;
    let test = Test {
        host,
        path: &path,
        connection: &connection,
        time: options.time,
    };
    let cpu = cpu_time();
    let (mode, sent, received) = match options.mode {
        Mode::Quic => {
            let (sent, received) = test.stream().await?;
            ("quic", sent, received)
        }
        Mode::Raw { packet, rate } => {
            let (sent, received) = test.packets(Shape { packet, rate }).await?;
            ("raw", sent, received)
        }
    };
    let sender_cpu_seconds = (cpu_time() - cpu).as_secs_f64();
    endpoint.close().await;
    let of_packets = |packets| (mode == "raw").then_some(packets);
    Ok(Report {
        mode,
        path_mtu: path.mtu(),
        path_bytes: path.raw().len(),
        sent_bytes: sent.bytes,
        received_bytes: received.bytes,
        sent_packets: of_packets(sent.packets),
        received_packets: of_packets(received.packets),
        seconds: received.seconds,
        goodput_mbit: received.bytes as f64 * 8e-6 / received.seconds.max(1e-9),
        sender_cpu_seconds,
        receiver_cpu_seconds: received.cpu_seconds,
    })
}

/// A test over an open connection.
struct Test<'a> {
    host: &'a Endhost,
    path: &'a Path,
    connection: &'a Connection,
    time: Duration,
}

impl Test<'_> {
    async fn stream(&self) -> Result<(Sent, Received), PerfError> {
        let (mut requests, answers) = self.connection.open_bi().await?;
        requests.write_all(&line(&Request::Stream)?).await?;
        let (mut data, _) = self.connection.open_bi().await?;
        let chunk = Bytes::from(vec![0; CHUNK]);
        let (began, mut bytes) = (Instant::now(), 0);
        while began.elapsed() < self.time {
            data.write_chunk(chunk.clone()).await?;
            bytes += CHUNK as u64;
        }
        data.finish()?;
        let received = read(&mut BufReader::new(answers)).await?;
        Ok((Sent { packets: 0, bytes }, received))
    }

    async fn packets(&self, shape: Shape) -> Result<(Sent, Received), PerfError> {
        let (mut requests, answers) = self.connection.open_bi().await?;
        let mut answers = BufReader::new(answers);
        let id = fastrand::u64(..);
        requests.write_all(&line(&Request::Packets { id })?).await?;
        let Ready { port } = read(&mut answers).await?;
        let mut peer = self.connection.peer();
        peer.host.set_port(port);
        let send = raw::send(self.host, peer, self.path, id, shape, self.time);
        let sent = send.await?;
        requests.finish()?;
        Ok((sent, read(&mut answers).await?))
    }
}
