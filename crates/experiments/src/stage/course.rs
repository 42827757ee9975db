//! Transfers whose progress is recorded: bytes over time, by bulk transfer, QUIC and `rsync`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hawser_topology::IsdAsn;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout};
use tokio::time::Instant;

use super::carry::first_line;
use super::{Messages, Stage, output, start};
use crate::ceiling::PathCost;
use crate::error::{During, ExperimentError};
use crate::samples::Samples;
use crate::transfer::{BulkReport, TransferReport};

/// The time that the daemon of `rsync` has to listen, which it does not report.
const LISTENS: Duration = Duration::from_millis(500);
/// Interval at which the file that `rsync` writes is looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// The port of the daemon (RFC 5781).
const PORT: &str = "873";

/// A server inside the network, killed when dropped.
pub struct Server {
    _child: Child,
    /// What clients connect to.
    address: String,
    out: BufReader<ChildStdout>,
}

/// What `hawser perf send --json` prints, as far as it is used here.
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

/// What `hawser perf serve --json --samples` prints for a test.
#[derive(Deserialize)]
struct PerfServed {
    samples: Vec<(f64, u64)>,
}

impl Stage {
    /// Starts a server that takes bulk transfers and writes nothing. Its key is made in `folder`.
    pub async fn receive_bulk(
        &self,
        isd_as: IsdAsn,
        folder: &Path,
    ) -> Result<Server, ExperimentError> {
        let mut receive = Command::new(&self.program);
        receive.args(["receive", "--discard", "--allow-any", "--json", "--key"]);
        receive.arg(folder.join("receiver.key"));
        self.server(isd_as, receive).await
    }

    /// Sends `bytes` bytes from memory to a server of [`Stage::receive_bulk`], over at most `paths`
    /// paths. Its key is made in `folder`.
    pub async fn send_bulk(
        &self,
        from: IsdAsn,
        server: &Server,
        (bytes, paths): (u64, u16),
        folder: &Path,
    ) -> Result<BulkReport, ExperimentError> {
        let mut send = Command::new(&self.program);
        send.args([
            "send",
            &server.address,
            "--any-server",
            "--json",
            "--samples",
        ]);
        send.args(["--zeros", &bytes.to_string(), "--paths", &paths.to_string()]);
        send.arg("--key").arg(folder.join("sender.key"));
        let messages = Messages::of(&mut send)?;
        let text = output(&self.lab, from, send, Some(messages)).await?;
        parse(&text, "the report of hawser send")
    }

    /// Starts a seeder that ends when the result is dropped.
    pub async fn serve_torrent(
        &self,
        isd_as: IsdAsn,
        torrent: &Path,
        content: &Path,
    ) -> Result<Server, ExperimentError> {
        let mut seed = Command::new(&self.program);
        seed.arg("seed").arg(torrent).arg(content).arg("--json");
        self.server(isd_as, seed).await
    }

    /// Downloads from a seeder of [`Stage::serve_torrent`].
    pub async fn get_from(
        &self,
        isd_as: IsdAsn,
        server: &Server,
        torrent: &Path,
        into: &Path,
    ) -> Result<TransferReport, ExperimentError> {
        let mut get = self.get_command(torrent, &server.address, into);
        let messages = Messages::of(&mut get)?;
        self.download(isd_as, get, Some(messages)).await
    }

    /// Sends a QUIC stream over one path for `time`. Returns what arrived, and the cost of the path.
    pub async fn quic(
        &self,
        (from, to): (IsdAsn, IsdAsn),
        time: Duration,
    ) -> Result<(Samples, PathCost), ExperimentError> {
        let mut serve = Command::new(&self.program);
        serve.args(["perf", "serve", "--json", "--samples"]);
        let mut server = self.server(to, serve).await?;
        let mut send = Command::new(&self.program);
        send.args(["perf", "send", &server.address, "--json", "--time"]);
        send.arg(format!("{}ms", time.as_millis()));
        let messages = Messages::of(&mut send)?;
        let text = output(&self.lab, from, send, Some(messages)).await?;
        let report: QuicSent = parse(&text, "the report of hawser perf")?;
        let mut line = String::new();
        let read = server.out.read_line(&mut line).await;
        read.during("reading what hawser perf received")?;
        let served: PerfServed = parse(&line, "what hawser perf received")?;
        let points = served.samples.into_iter();
        let points = points.map(|(seconds, bytes)| (seconds, bytes as f64));
        let samples = Samples(std::iter::once((0.0, 0.0)).chain(points).collect());
        Ok((samples, PathCost::quic(report.path_mtu, report.path_bytes)))
    }

    /// Sends a QUIC stream over the path with this sequence of hops to a server of
    /// [`Stage::serve_perf`] for `time`.
    pub async fn quic_over(
        &self,
        from: IsdAsn,
        (server, sequence): (&str, &str),
        time: Duration,
    ) -> Result<QuicSent, ExperimentError> {
        let mut send = Command::new(&self.program);
        send.args(["perf", "send", server, "--json", "--sequence", sequence]);
        send.args(["--time", &format!("{}ms", time.as_millis())]);
        let messages = Messages::of(&mut send)?;
        let text = output(&self.lab, from, send, Some(messages)).await?;
        parse(&text, "the report of hawser perf")
    }

    /// Lets `rsync` send a file of `bytes` bytes to a daemon for at most `time`, from memory to
    /// memory if `folder` is there. Returns what the daemon wrote.
    ///
    /// # Errors
    /// [`ExperimentError::Missing`] if `rsync` is not installed.
    pub async fn rsync(
        &self,
        (from, to): (IsdAsn, IsdAsn),
        bytes: u64,
        time: Duration,
        folder: &Path,
    ) -> Result<Samples, ExperimentError> {
        if Command::new("rsync").arg("--version").output().is_err() {
            return Err(ExperimentError::Missing("install the program rsync"));
        }
        let step = "preparing the files of rsync";
        let own = tempfile::tempdir_in(folder).during(step)?;
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

    /// Starts a server that prints its address as JSON.
    async fn server(
        &self,
        isd_as: IsdAsn,
        mut command: Command,
    ) -> Result<Server, ExperimentError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let messages = Messages::of(&mut command)?;
        let mut child = start(&self.lab, isd_as, command)?;
        let (line, out) = first_line(child.stdout.take()).await?;
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = ready["listening"].as_str().map(str::to_owned);
        Ok(Server {
            _child: child,
            address: address.ok_or_else(|| ExperimentError::Step(messages.into_last()))?,
            out,
        })
    }
}

fn parse<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, ExperimentError> {
    serde_json::from_str(text).during(format_args!("reading {what}"))
}
