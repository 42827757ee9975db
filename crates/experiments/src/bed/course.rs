//! Transfers whose progress is recorded: bytes over time, by bulk transfer, QUIC and `rsync`.

use std::process::{Command, Stdio};
use std::time::Duration;

use hawser_topology::IsdAsn;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::server::Server;
use super::{Messages, TestBed, output, start};
use crate::ceiling::PathCost;
use crate::error::{During, ExperimentError};
use crate::samples::Samples;
use crate::transfer::BulkReport;

/// The time that the daemon of `rsync` has to listen, which it does not report.
const LISTENS: Duration = Duration::from_millis(500);
/// Interval at which the file that `rsync` writes is looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// The port of the daemon (RFC 5781).
const PORT: &str = "873";

/// What `hawser perf --json` prints, as far as it is used here.
#[derive(Deserialize)]
pub struct QuicSent {
    /// The largest SCION packet on the path, in bytes.
    pub path_mtu: u16,
    /// Bytes of the path in each packet's header.
    pub path_bytes: usize,
    /// Seconds from the first to the last byte.
    pub seconds: f64,
    /// Goodput in that time, in Mbit/s.
    pub goodput_mbit: f64,
}

/// What `hawser perf --server --json --samples` prints for a test.
#[derive(Deserialize)]
struct PerfServed {
    samples: Vec<(f64, u64)>,
}

impl TestBed {
    /// Sends `bytes` bytes from memory to a server of [`TestBed::receive_bulk`], over at most `paths`
    /// paths.
    pub async fn send_bulk(
        &self,
        from: IsdAsn,
        server: &Server,
        (bytes, paths): (u64, u16),
    ) -> Result<BulkReport, ExperimentError> {
        let mut send = Command::new(&self.program);
        send.args([
            "send",
            server.address(),
            "--any-server",
            "--json",
            "--samples",
        ]);
        send.args(["--zeros", &bytes.to_string(), "--paths", &paths.to_string()]);
        // A key of its own: senders may start together.
        let own = tempfile::tempdir_in(self.folder()).during("making a folder for a key")?;
        send.arg("--key").arg(own.path().join("sender.key"));
        let messages = Messages::of(&mut send)?;
        let text = output(&self.lab, from, send, Some(messages)).await?;
        parse(&text, "the report of hawser send")
    }

    /// Sends a QUIC stream over one path for `time`. Returns what arrived, and the cost of the path.
    pub async fn quic(
        &self,
        (from, to): (IsdAsn, IsdAsn),
        time: Duration,
    ) -> Result<(Samples, PathCost), ExperimentError> {
        let mut server = self.serve_perf(to, true).await?;
        let mut send = Command::new(&self.program);
        send.args(["perf", server.address(), "--json", "--time"]);
        send.arg(format!("{}ms", time.as_millis()));
        let messages = Messages::of(&mut send)?;
        let text = output(&self.lab, from, send, Some(messages)).await?;
        let report: QuicSent = parse(&text, "the report of hawser perf")?;
        let served: PerfServed = parse(&server.line().await?, "what hawser perf received")?;
        let points = served.samples.into_iter();
        let points = points.map(|(seconds, bytes)| (seconds, bytes as f64));
        let samples = Samples(std::iter::once((0.0, 0.0)).chain(points).collect());
        Ok((samples, PathCost::quic(report.path_mtu, report.path_bytes)))
    }

    /// Sends a QUIC stream over the path with this sequence of hops to a server of
    /// [`TestBed::serve_perf`] for `time`.
    pub async fn quic_over(
        &self,
        from: IsdAsn,
        (server, sequence): (&Server, &str),
        time: Duration,
    ) -> Result<QuicSent, ExperimentError> {
        let mut send = Command::new(&self.program);
        send.args(["perf", server.address(), "--json"]);
        send.args(["--sequence", sequence]);
        send.args(["--time", &format!("{}ms", time.as_millis())]);
        let messages = Messages::of(&mut send)?;
        let text = output(&self.lab, from, send, Some(messages)).await?;
        parse(&text, "the report of hawser perf")
    }

    /// Lets `rsync` send a file of `bytes` bytes to a daemon for at most `time`, from memory to
    /// memory if the bed's folder is there. Returns what the daemon wrote.
    ///
    /// # Errors
    /// [`ExperimentError::Missing`] if `rsync` is not installed.
    pub async fn rsync(
        &self,
        (from, to): (IsdAsn, IsdAsn),
        bytes: u64,
        time: Duration,
    ) -> Result<Samples, ExperimentError> {
        if Command::new("rsync").arg("--version").output().is_err() {
            return Err(ExperimentError::Missing("install the program rsync"));
        }
        let step = "preparing the files of rsync";
        let own = tempfile::tempdir_in(self.folder()).during(step)?;
        let (file, into) = (own.path().join("zeros"), own.path().join("received"));
        std::fs::File::create(&file)
            .and_then(|file| file.set_len(bytes))
            .during(step)?;
        std::fs::create_dir(&into).during(step)?;
        // The daemon would give up its user otherwise, and could not write.
        let settings = format!(
            "use chroot = no\nuid = 0\ngid = 0\n[in]\npath = {}\nread only = no\n",
            into.display()
        );
        let config = own.path().join("rsyncd.conf");
        std::fs::write(&config, settings).during(step)?;
        let host = self.host(to)?.to_string();
        let mut daemon = Command::new("rsync");
        daemon.args([
            "--daemon",
            "--no-detach",
            "--address",
            &host,
            "--port",
            PORT,
        ]);
        daemon
            .arg("--config")
            .arg(&config)
            .arg("--log-file=/dev/null");
        daemon.stdin(Stdio::null()).stdout(Stdio::null());
        let _daemon = start(&self.lab, to, daemon)?;
        tokio::time::sleep(LISTENS).await;
        let mut send = Command::new("rsync");
        send.args(["--inplace", "--whole-file", "--port", PORT]);
        send.arg(&file).arg(format!("rsync://{host}/in/"));
        send.stdin(Stdio::null()).stdout(Stdio::null());
        let messages = Messages::of(&mut send)?;
        let began = Instant::now();
        let mut sender = start(&self.lab, from, send)?;
        let (mut ticks, mut points) = (tokio::time::interval(INTERVAL), vec![(0.0, 0.0)]);
        while began.elapsed() < time {
            ticks.tick().await;
            if let Some(status) = sender.try_wait().during("waiting for rsync")? {
                if status.success() {
                    break;
                }
                let why = messages.into_last();
                return Err(ExperimentError::Step(format!("rsync failed: {why}")));
            }
            let written = std::fs::metadata(into.join("zeros")).map_or(0, |file| file.len());
            points.push((began.elapsed().as_secs_f64(), written as f64));
        }
        Ok(Samples(points))
    }
}

fn parse<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, ExperimentError> {
    serde_json::from_str(text).during(format_args!("reading {what}"))
}
