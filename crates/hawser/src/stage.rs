//! A network of its own, with seeders and downloads in it: what demos and experiments run on.

pub mod ceiling;
pub mod content;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hawser_lab::{Lab, Options};
use hawser_path::Interface;
use hawser_topology::{AsDir, IsdAsn, Network};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command as Spawn};

use crate::cmd::lab::program;
use crate::cmd::{get, interrupted};
use crate::failure::{Doing, Failure};
use crate::out::errln;
use crate::scratch;

/// A lab and what runs in it. Dropping it takes all of it down.
pub struct Stage {
    lab: Lab,
    program: PathBuf,
    seeders: Vec<Child>,
    down: bool,
}

impl Stage {
    /// Brings the network up; `name` begins the lab's name. It ends with this process, however that
    /// ends.
    pub fn set(network: &Network, name: &str) -> Result<Self, Failure> {
        // What earlier ones left that were killed.
        Lab::sweep().map_err(Failure::job)?;
        scratch::sweep();
        let program = program()?;
        let own = std::process::id();
        let options = Options::new(&program)
            .with_name(format!("{name}-{own}"))
            .with_owner(own);
        let up = Lab::up(network, &options).map_err(Failure::job)?;
        let stage = Self {
            lab: up.lab,
            program,
            seeders: Vec::new(),
            down: false,
        };
        match up.dead_links.first() {
            None => Ok(stage),
            Some(link) => Err(Failure::job(format!("the link {link} does not come up"))),
        }
    }

    /// Starts a seeder; returns its address once it listens: that for IP peers if it is to have
    /// one.
    pub async fn seed(
        &mut self,
        isd_as: IsdAsn,
        torrent: &Path,
        content: &Path,
        args: &[String],
        over_ip: bool,
    ) -> Result<String, Failure> {
        let mut command = Command::new(&self.program);
        command.arg("seed").arg(torrent).arg(content).arg("--json");
        command.args(args);
        if over_ip {
            let listen = SocketAddr::new(self.host(isd_as)?, 0);
            command.args(["--tcp", &listen.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let errors = Errors::of(&mut command)?;
        let mut child = self.start(isd_as, command)?;
        let out = child.stdout.take();
        self.seeders.push(child);
        let out = out.ok_or_else(|| Failure::job("the seeder has no output"))?;
        let mut line = String::new();
        let mut out = BufReader::new(out);
        tokio::select! {
            read = out.read_line(&mut line) => read.doing("starting the seeder")?,
            stopped = interrupted() => return Err(stop(stopped)),
        };
        let ready: serde_json::Value = serde_json::from_str(&line)
            .map_err(|_| Failure::job(format!("the seeder did not start: {}", errors.last())))?;
        let listening = match over_ip {
            true => "listening_tcp",
            false => "listening",
        };
        ready[listening]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| Failure::job("the seeder does not say where it listens"))
    }

    /// Downloads from the seeder.
    pub async fn get(
        &self,
        isd_as: IsdAsn,
        torrent: &Path,
        into: &Path,
        peer: &str,
        args: &[String],
        bars: Bars,
    ) -> Result<get::Report, Failure> {
        let mut command = Command::new(&self.program);
        command.arg("get").arg(torrent).arg("-o").arg(into);
        command.args(["--peer", peer, "--json"]);
        command.args(args);
        let text = match bars {
            Bars::Shown => self.output_of(isd_as, command, None).await?,
            Bars::Hidden => self.output(isd_as, command).await?,
        };
        serde_json::from_str(&text).doing("reading what the download reports")
    }

    /// Plain TCP from one AS to another, in Mbit/s.
    pub async fn iperf3(&self, from: IsdAsn, to: IsdAsn) -> Result<f64, Failure> {
        let host = self.host(to)?.to_string();
        let mut server = Command::new("iperf3");
        server.args(["--server", "--one-off", "--json"]);
        server.stdin(Stdio::null()).stdout(Stdio::null());
        let _server = self.start(to, server).map_err(|failure| {
            Failure::job(format!("{failure}: --iperf3 needs the program iperf3"))
        })?;
        // The server tells nobody when it listens.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut client = Command::new("iperf3");
        client.args(["--client", &host, "--time", "5", "--json"]);
        let text = self.output(from, client).await?;
        let json: serde_json::Value =
            serde_json::from_str(&text).doing("reading what iperf3 reports")?;
        json["end"]["sum_received"]["bits_per_second"]
            .as_f64()
            .map(|bits| bits / 1e6)
            .ok_or_else(|| Failure::job("iperf3 reports no rate"))
    }

    /// Sends UDP of so many bit/s (Ethernet frames) out of an interface to the router at its other
    /// end, for `time`.
    pub async fn cross_traffic(
        &self,
        from: Interface,
        rate: u64,
        time: Duration,
    ) -> Result<(), Failure> {
        let folder = hawser_control::as_folder(self.lab.dir(), from.isd_as);
        let topology = AsDir::new(folder).topology().map_err(Failure::job)?;
        let mut routers = topology.border_routers.values();
        let link = routers
            .find_map(|router| router.interfaces.get(&from.id))
            .ok_or_else(|| Failure::job(format!("there is no interface {from}")))?;
        let mut command = Command::new(&self.program);
        command.args(["internal", "cross-traffic"]);
        command.arg(link.local.ip().to_string());
        command.arg(link.remote.ip().to_string());
        command.arg(rate.to_string());
        command.arg(time.as_millis().to_string());
        self.output(from.isd_as, command).await.map(drop)
    }

    /// Takes everything down.
    pub fn clear(mut self) -> Result<(), Failure> {
        self.down = true;
        self.seeders.clear();
        self.lab.down().map_err(Failure::job)
    }

    /// Where the host of an AS is.
    fn host(&self, isd_as: IsdAsn) -> Result<IpAddr, Failure> {
        self.lab
            .host(isd_as)
            .map_err(Failure::job)?
            .ok_or_else(|| Failure::job(format!("{isd_as} has no host")))
    }

    fn start(&self, isd_as: IsdAsn, command: Command) -> Result<Child, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        let command = self.lab.command(isd_as, command).map_err(Failure::job)?;
        Spawn::from(command)
            .kill_on_drop(true)
            .spawn()
            .doing(format_args!("starting {name}"))
    }

    /// Runs a command to its end and returns what it printed; the terminal shows nothing of it.
    async fn output(&self, isd_as: IsdAsn, mut command: Command) -> Result<String, Failure> {
        let errors = Errors::of(&mut command)?;
        self.output_of(isd_as, command, Some(errors)).await
    }

    /// The same, with standard error shared with this program where it does not go to `errors`.
    async fn output_of(
        &self,
        isd_as: IsdAsn,
        mut command: Command,
        errors: Option<Errors>,
    ) -> Result<String, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let name = command.get_program().to_string_lossy().into_owned();
        let child = self.start(isd_as, command)?;
        let output = tokio::select! {
            output = child.wait_with_output() => output.doing(format_args!("running {name}"))?,
            stopped = interrupted() => return Err(stop(stopped)),
        };
        if !output.status.success() {
            let why = match errors {
                Some(errors) => errors.last(),
                None => output.status.to_string(),
            };
            return Err(Failure::job(format!("{name} failed: {why}")));
        }
        String::from_utf8(output.stdout).doing(format_args!("reading what {name} prints"))
    }
}

/// Whether a download draws on the terminal: one at a time may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bars {
    /// It does.
    Shown,
    /// It does not.
    Hidden,
}

/// What a program writes to standard error, kept off the terminal.
struct Errors(File);

impl Errors {
    /// Of this command.
    fn of(command: &mut Command) -> Result<Self, Failure> {
        let file = tempfile::tempfile().doing("making a file for messages")?;
        command.stderr(file.try_clone().doing("making a file for messages")?);
        Ok(Self(file))
    }

    /// The last line, without the program's name.
    fn last(mut self) -> String {
        let mut text = String::new();
        // What cannot be read is not there.
        let _ = self.0.seek(SeekFrom::Start(0));
        let _ = self.0.read_to_string(&mut text);
        let line = text.trim_end().lines().next_back();
        let line = line.unwrap_or("it says nothing");
        line.strip_prefix("hawser: ").unwrap_or(line).to_owned()
    }
}

fn stop(interrupted: Result<(), Failure>) -> Failure {
    interrupted
        .err()
        .unwrap_or_else(|| Failure::job("interrupted: everything was taken down"))
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.down
            && let Err(error) = self.lab.down()
        {
            errln!("hawser: {error}");
        }
    }
}
