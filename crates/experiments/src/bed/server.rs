//! Servers inside the network.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use hawser_topology::IsdAsn;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout};

use super::{Messages, TestBed, name, start};
use crate::cpu::Meter;
use crate::error::{During, ExperimentError};
use crate::memory;

/// A server inside the network, killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
    /// Without a reader it would end.
    out: BufReader<ChildStdout>,
}

impl Server {
    /// What clients connect to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The next line that it prints.
    pub async fn line(&mut self) -> Result<String, ExperimentError> {
        let mut line = String::new();
        let read = self.out.read_line(&mut line).await;
        read.during("reading what a server prints")?;
        Ok(line)
    }

    /// The most memory that it has used so far, in bytes.
    pub fn peak_memory(&self) -> Option<u64> {
        memory::peak(self.child.id()?)
    }

    /// Begins to measure the processor time of servers.
    pub fn meter(servers: &[Self]) -> Meter {
        Meter::new(servers.iter().filter_map(|server| server.child.id()))
    }
}

impl TestBed {
    /// Starts a seeder; with `over_ip`, its address is that for IP peers.
    pub async fn seed(
        &self,
        isd_as: IsdAsn,
        torrent: &Path,
        content: &Path,
        over_ip: bool,
    ) -> Result<Server, ExperimentError> {
        let mut seed = Command::new(&self.program);
        seed.arg("seed").arg(torrent).arg(content).arg("--json");
        if !over_ip {
            return self.server(isd_as, seed, "listening").await;
        }
        let listen = SocketAddr::new(self.host(isd_as)?, 0);
        seed.args(["--tcp", &listen.to_string()]);
        self.server(isd_as, seed, "listening_tcp").await
    }

    /// Starts a seeder for SCION peers that serves this many leechers at once, at least one.
    pub async fn seed_to(
        &self,
        isd_as: IsdAsn,
        (torrent, content): (&Path, &Path),
        leechers: u64,
    ) -> Result<Server, ExperimentError> {
        let mut seed = Command::new(&self.program);
        seed.arg("seed").arg(torrent).arg(content).arg("--json");
        seed.args(["--slots", &leechers.to_string()]);
        self.server(isd_as, seed, "listening").await
    }

    /// Starts a server that takes bulk transfers, 64 at once, and writes nothing. Its key is in the bed's folder.
    pub async fn receive_bulk(&self, isd_as: IsdAsn) -> Result<Server, ExperimentError> {
        let mut receive = Command::new(&self.program);
        receive.args(["receive", "--discard", "--allow-any", "--json", "--key"]);
        receive.arg(self.folder().join("receiver.key"));
        receive.args(["--sessions", "64"]);
        self.server(isd_as, receive, "listening").await
    }

    /// Starts a server for SCION packets and QUIC streams; with `samples`, it prints what had arrived of
    /// each stream over time.
    pub async fn serve_perf(
        &self,
        isd_as: IsdAsn,
        samples: bool,
    ) -> Result<Server, ExperimentError> {
        let mut serve = Command::new(&self.program);
        serve.args(["perf", "--server", "--json"]);
        serve.args(samples.then_some("--samples"));
        self.server(isd_as, serve, "listening").await
    }

    /// Starts a server of [`TestBed::set_up`] at a port of an AS's host.
    pub async fn serve_answers(
        &self,
        isd_as: IsdAsn,
        port: u16,
    ) -> Result<Server, ExperimentError> {
        let address = SocketAddr::new(self.host(isd_as)?, port).to_string();
        let mut answer = Command::new(&self.program);
        answer.args(["internal", "plain-answer", &address]);
        answer.stdin(Stdio::null()).stdout(Stdio::piped());
        let messages = Messages::of(&mut answer)?;
        let mut child = start(&self.lab, isd_as, answer)?;
        let (line, out) = first_line(child.stdout.take()).await?;
        match line.is_empty() {
            true => Err(ExperimentError::Step(messages.into_last())),
            false => Ok(Server {
                child,
                address,
                out,
            }),
        }
    }

    /// Starts a server that prints its address as this field of an object.
    async fn server(
        &self,
        isd_as: IsdAsn,
        mut command: Command,
        field: &str,
    ) -> Result<Server, ExperimentError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let name = name(&command);
        let messages = Messages::of(&mut command)?;
        let mut child = start(&self.lab, isd_as, command)?;
        let (line, out) = first_line(child.stdout.take()).await?;
        // Without a line, its messages say why.
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        let address = ready[field].as_str().map(str::to_owned);
        let failed = || {
            let why = messages.into_last();
            ExperimentError::Step(format!("{name} did not start to serve: {why}"))
        };
        Ok(Server {
            child,
            address: address.ok_or_else(failed)?,
            out,
        })
    }
}

/// The first line of a program's output, and the rest.
pub(super) async fn first_line(
    out: Option<ChildStdout>,
) -> Result<(String, BufReader<ChildStdout>), ExperimentError> {
    let out = out.ok_or_else(|| ExperimentError::step("a program has no standard output"))?;
    let (mut line, mut out) = (String::new(), BufReader::new(out));
    let read = out.read_line(&mut line).await;
    read.during("reading the address of a server")?;
    Ok((line, out))
}
