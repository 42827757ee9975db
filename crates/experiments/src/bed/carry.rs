//! Transfers between two ASes by other means than a download, and the processor time of all.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::future::try_join_all;
use hawser_topology::IsdAsn;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use super::server::{Server, first_line};
use super::{Messages, TestBed, output, start};
use crate::cpu::Meter;
use crate::error::{During, ExperimentError};
use crate::samples::Samples;
use crate::transfer::{TransferPath, TransferReport};
use crate::window::{ended, window};

/// Longest wait for an `iperf3` server to listen, which it does not report, and the time between two
/// attempts.
const ATTEMPTS: u32 = 20;
const ATTEMPT: Duration = Duration::from_millis(100);

/// What a transfer has carried, and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// Bytes without headers, as they arrived.
    pub bytes: u64,
    /// The time it took.
    pub seconds: f64,
    /// Processor time of the sending process, in seconds.
    pub sender: f64,
    /// Processor time of the receiving process, in seconds.
    pub receiver: f64,
    /// Processor time of each border router that has spent any, in seconds.
    pub routers: Vec<f64>,
    /// Number of paths that have carried anything.
    pub paths: usize,
    /// The most memory that one of the processes used, in bytes, where it was looked at.
    pub memory: Option<u64>,
}

impl Carried {
    /// Gigabits per second.
    pub fn gbit(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds.max(1e-9)
    }

    /// Seconds of processor time for each GB that arrived, of all seconds.
    pub fn per_gb(&self, seconds: f64) -> f64 {
        seconds * 1e9 / self.bytes.max(1) as f64
    }
}

/// A download of several that run at once.
#[derive(Debug, Clone)]
pub struct Fetch<'a> {
    /// The AS of the leecher.
    pub to: IsdAsn,
    /// Further arguments of `hawser get`.
    pub args: Vec<String>,
    /// The `.torrent` file.
    pub torrent: &'a Path,
    /// The first seeder; arguments name more.
    pub seeder: &'a Server,
}

/// What `hawser perf --json` prints.
#[derive(Deserialize)]
struct PerfReport {
    received_bytes: u64,
    seconds: f64,
    sender_cpu_seconds: f64,
    receiver_cpu_seconds: f64,
}

/// What `hawser internal plain-receive` prints after its address.
#[derive(Deserialize)]
struct PlainReceived {
    bytes: u64,
    seconds: f64,
    cpu_seconds: f64,
    samples: Vec<(f64, u64)>,
}

/// What `hawser internal plain-send` prints.
#[derive(Deserialize)]
struct PlainSent {
    cpu_seconds: f64,
}

impl TestBed {
    /// Sends to a server of [`TestBed::serve_perf`] for `time`, with further arguments of `hawser
    /// perf`.
    pub async fn perf(
        &self,
        from: IsdAsn,
        server: &Server,
        time: Duration,
        args: &[&str],
    ) -> Result<Carried, ExperimentError> {
        let mut command = Command::new(&self.program);
        command.args(["perf", server.address(), "--json", "--time"]);
        command.arg(format!("{}ms", time.as_millis())).args(args);
        let messages = Messages::of(&mut command)?;
        let meter = self.meter_routers()?;
        let text = output(&self.lab, from, command, Some(messages)).await?;
        let report: PerfReport =
            serde_json::from_str(&text).during("reading the report of hawser perf")?;
        Ok(Carried {
            bytes: report.received_bytes,
            seconds: report.seconds,
            sender: report.sender_cpu_seconds,
            receiver: report.receiver_cpu_seconds,
            routers: meter.used(),
            paths: 1,
            memory: None,
        })
    }

    /// Sends over plain IP for `time`: `kind` is `tcp`, `tls`, or `udp` with datagrams of `payload`
    /// bytes.
    pub async fn plain(
        &self,
        (from, to): (IsdAsn, IsdAsn),
        kind: &str,
        payload: u16,
        time: Duration,
    ) -> Result<Carried, ExperimentError> {
        let listen = SocketAddr::new(self.host(to)?, 0);
        let destination = None;
        let kind = (kind, payload);
        self.plain_to((from, to), kind, (listen, destination), time)
            .await
    }

    /// As [`TestBed::plain`], to a receiver at the address `listen`, which the sender reaches at
    /// `destination`, if that is another address.
    pub async fn plain_to(
        &self,
        (from, to): (IsdAsn, IsdAsn),
        (kind, payload): (&str, u16),
        (listen, destination): (SocketAddr, Option<SocketAddr>),
        time: Duration,
    ) -> Result<Carried, ExperimentError> {
        let addresses = (listen, destination);
        let run = self.plain_run((from, to), (kind, payload), addresses, time);
        let (sent, received) = run.await?;
        Ok(Carried {
            bytes: received.bytes,
            seconds: received.seconds,
            sender: sent.cpu_seconds,
            receiver: received.cpu_seconds,
            routers: Vec::new(),
            paths: 1,
            memory: None,
        })
    }

    /// As [`TestBed::plain_to`] with TCP. Returns what the receiving program has read over time, which
    /// begins with the first byte.
    pub async fn plain_tcp_to(
        &self,
        ends: (IsdAsn, IsdAsn),
        addresses: (SocketAddr, Option<SocketAddr>),
        time: Duration,
    ) -> Result<Samples, ExperimentError> {
        let (_, received) = self.plain_run(ends, ("tcp", 0), addresses, time).await?;
        let points = received.samples.into_iter();
        let points = points.map(|(seconds, bytes)| (seconds, bytes as f64));
        Ok(Samples(points.collect()))
    }

    async fn plain_run(
        &self,
        (from, to): (IsdAsn, IsdAsn),
        (kind, payload): (&str, u16),
        (listen, destination): (SocketAddr, Option<SocketAddr>),
        time: Duration,
    ) -> Result<(PlainSent, PlainReceived), ExperimentError> {
        let mut receiver = Command::new(&self.program);
        receiver.args(["internal", "plain-receive", kind, &listen.to_string()]);
        receiver.stdin(Stdio::null()).stdout(Stdio::piped());
        let messages = Messages::of(&mut receiver)?;
        let mut receiver = start(&self.lab, to, receiver)?;
        let (address, mut rest) = first_line(receiver.stdout.take()).await?;
        let mut sender = Command::new(&self.program);
        let destination = destination.map(|one| one.to_string());
        let address = destination.as_deref().unwrap_or(address.trim());
        sender.args(["internal", "plain-send", kind, address]);
        sender.args([time.as_millis().to_string(), payload.to_string()]);
        let sender_messages = Messages::of(&mut sender)?;
        let sent = output(&self.lab, from, sender, Some(sender_messages)).await?;
        let mut received = String::new();
        let read = rest.read_to_string(&mut received).await;
        read.during("reading what the receiver counted")?;
        let status = receiver.wait().await.during("waiting for the receiver")?;
        if !status.success() {
            return Err(ExperimentError::Step(messages.into_last()));
        }
        let sent = serde_json::from_str(&sent).during("reading what was sent")?;
        let received = serde_json::from_str(&received).during("reading what arrived")?;
        Ok((sent, received))
    }

    /// Sends by plain TCP for `time`, with `iperf3`.
    ///
    /// # Errors
    /// [`ExperimentError::Missing`] if that program is not installed.
    pub async fn iperf3(
        &self,
        from: IsdAsn,
        to: IsdAsn,
        time: Duration,
    ) -> Result<Carried, ExperimentError> {
        let mut server = Command::new("iperf3");
        server.args(["--server", "--one-off", "--json"]);
        server.stdin(Stdio::null()).stdout(Stdio::null());
        let installed = Command::new("iperf3").arg("--version").output();
        if installed.is_err() {
            return Err(ExperimentError::Missing("install the program iperf3"));
        }
        let _server = start(&self.lab, to, server)?;
        let host = self.host(to)?.to_string();
        let mut attempts = 0;
        let text = loop {
            let mut client = Command::new("iperf3");
            let seconds = time.as_secs().max(1).to_string();
            client.args(["--client", &host, "--time", &seconds, "--json"]);
            let client = output(&self.lab, from, client, None);
            match client.await {
                Ok(text) => break text,
                Err(_) if attempts < ATTEMPTS => tokio::time::sleep(ATTEMPT).await,
                Err(error) => return Err(error),
            }
            attempts += 1;
        };
        let json: Value = serde_json::from_str(&text).during("reading the report of iperf3")?;
        let end = &json["end"];
        let number = |value: &Value| {
            let number = value.as_f64();
            number.ok_or_else(|| ExperimentError::step("iperf3 reports no rate"))
        };
        let sent = number(&end["sum_sent"]["seconds"])?;
        let used = |value: &Value| Ok::<_, ExperimentError>(number(value)? / 100.0 * sent);
        let cpu = &end["cpu_utilization_percent"];
        Ok(Carried {
            bytes: number(&end["sum_received"]["bytes"])? as u64,
            seconds: number(&end["sum_received"]["seconds"])?,
            sender: used(&cpu["host_total"])?,
            receiver: used(&cpu["remote_total"])?,
            routers: Vec::new(),
            paths: 1,
            memory: None,
        })
    }

    /// Runs downloads at once, each into a folder of its own below `folder`. The processor time of their
    /// seeders is that since `seeders` began.
    pub async fn downloads(
        &self,
        downloads: &[Fetch<'_>],
        seeders: &Meter,
        folder: &Path,
    ) -> Result<Carried, ExperimentError> {
        let routers = self.meter_routers()?;
        let gets = downloads.iter().map(|fetch| async move {
            let into = tempfile::tempdir_in(folder).during("making a folder for a download")?;
            let to = (fetch.to, &*fetch.args);
            ended(self.get(to, fetch.seeder, fetch.torrent, into.path(), false)).await
        });
        let all = try_join_all(gets).await?;
        let reports = || all.iter().map(|download| &download.it);
        let carried = |path: &&TransferPath| path.bytes > 0;
        let paths = |report: &TransferReport| report.paths.iter().filter(carried).count();
        Ok(Carried {
            bytes: reports()
                .map(|report| report.transferred.fetched_bytes)
                .sum(),
            seconds: window(&all, |report| report.seconds),
            sender: seeders.total(),
            receiver: reports().map(|report| report.cost.cpu_seconds).sum(),
            routers: routers.used(),
            paths: reports().map(paths).max().unwrap_or(0),
            memory: None,
        })
    }

    /// Begins to measure the processor time of all border routers.
    pub(crate) fn meter_routers(&self) -> Result<Meter, ExperimentError> {
        let status = self.lab.status().map_err(ExperimentError::step)?;
        let routers = status.ases.iter().flat_map(|as_| &as_.routers);
        let processes = routers.filter_map(|router| router.process.pid?.try_into().ok());
        Ok(Meter::new(processes))
    }
}
