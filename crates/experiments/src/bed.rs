//! What experiments run on: a network with hosts, on which servers, transfers and cross traffic run.

mod carry;
mod course;
mod dialogue;
mod link;
mod server;
mod shim;
mod shim_pair;
pub mod tcp;

use std::fs::File;
use std::io::{Read, Seek};
use std::net::IpAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hawser_lab::{Lab, Options};
use hawser_path::Interface;
use hawser_topology::{self as topology, AsDir, IsdAsn, Network};
use tokio::process::Child;

pub use self::carry::{Carried, Fetch};
pub use self::server::Server;
pub use self::shim::ShimPath;
pub use self::shim_pair::ShimPair;
pub use self::tcp::{Flows, has_congestion_control};
use crate::content::Load;
use crate::error::{During, ExperimentError};
use crate::scratch::{self, Scratch};
use crate::shape::Bed;
use crate::transfer::TransferReport;

/// A network that is up, and a folder for the files of its runs. Dropping it takes it down, with
/// everything that runs in it.
#[derive(Debug)]
pub struct TestBed {
    /// What the network consists of.
    pub network: Network,
    lab: Lab,
    program: PathBuf,
    folder: Scratch,
    down: bool,
}

/// A test bed with servers, or else what all runs share.
#[derive(Debug)]
pub struct Shared<S> {
    /// What all runs share.
    pub servers: S,
    bed: TestBed,
}

impl TestBed {
    /// Brings the network up; the lab's name begins with `name`. The network ends with this
    /// process, even if that is killed. With `no_offload`, every packet crosses it by itself.
    pub fn up(
        network: Network,
        name: &str,
        program: &Path,
        no_offload: bool,
        folder: Scratch,
    ) -> Result<Self, ExperimentError> {
        // Remove labs and folders of sessions whose process was killed.
        Lab::sweep().map_err(ExperimentError::step)?;
        scratch::sweep();
        let own = std::process::id();
        let options = Options {
            name: format!("{name}-{own}"),
            owner: Some(own),
            no_offload,
            ..Options::new(program)
        };
        let up = Lab::up(&network, &options).map_err(ExperimentError::step)?;
        let bed = Self {
            network,
            lab: up.lab,
            program: program.to_owned(),
            folder,
            down: false,
        };
        match up.dead_links.first() {
            None => Ok(bed),
            Some(link) => {
                let text = format!("the link {link} does not come up");
                Err(ExperimentError::Step(text))
            }
        }
    }

    /// The same with servers.
    pub fn with<S>(self, servers: S) -> Shared<S> {
        let bed = self;
        Shared { servers, bed }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Downloads from a seeder, with further arguments of `hawser get`; with `show`, the download draws
    /// on this process's standard error.
    pub async fn get(
        &self,
        (isd_as, args): (IsdAsn, &[String]),
        seeder: &Server,
        torrent: &Path,
        into: &Path,
        show: bool,
    ) -> Result<TransferReport, ExperimentError> {
        let mut command = Command::new(&self.program);
        command.arg("get").arg(torrent).arg("-o").arg(into);
        command.args(["--peer", seeder.address(), "--json", "--samples"]);
        command.args(args);
        let messages = (!show).then(|| Messages::of(&mut command)).transpose()?;
        let text = output(&self.lab, isd_as, command, messages).await?;
        serde_json::from_str(&text).during("reading the download's report")
    }

    /// Downloads what a seeder has, and checks that it is that.
    pub async fn fetch(
        &self,
        to: (IsdAsn, &[String]),
        seeder: &Server,
        load: &Load,
        show: bool,
    ) -> Result<TransferReport, ExperimentError> {
        let into = tempfile::tempdir_in(self.folder()).during("making a folder for a download")?;
        let report = self.get(to, seeder, &load.torrent, into.path(), show);
        let report = report.await?;
        match load.content.matches(&into.path().join(&report.name))? {
            true => Ok(report),
            false => {
                let differs = "the downloaded file differs from the seeded one";
                Err(ExperimentError::step(differs))
            }
        }
    }

    /// Sends UDP of `rate` bit/s (Ethernet frames) out of an interface to the router at its other
    /// end, for `time`.
    pub async fn cross_traffic(
        &self,
        from: Interface,
        rate: u64,
        time: Duration,
    ) -> Result<(), ExperimentError> {
        let link = self.link_at(from)?.underlay;
        let ends = (link.local.ip(), link.remote.ip());
        self.send_udp(from.isd_as, ends, rate, time).await
    }

    async fn send_udp(
        &self,
        isd_as: IsdAsn,
        (from, to): (IpAddr, IpAddr),
        rate: u64,
        time: Duration,
    ) -> Result<(), ExperimentError> {
        let mut command = Command::new(&self.program);
        command.args(["internal", "cross-traffic"]);
        command.args([from.to_string(), to.to_string(), rate.to_string()]);
        command.arg(time.as_millis().to_string());
        let messages = Messages::of(&mut command)?;
        let output = output(&self.lab, isd_as, command, Some(messages));
        output.await.map(drop)
    }

    /// Sends UDP of `rate` bit/s (Ethernet frames) from one AS's host to another's, for `time`.
    pub async fn flood(
        &self,
        (from, to): (IsdAsn, IsdAsn),
        rate: u64,
        time: Duration,
    ) -> Result<(), ExperimentError> {
        let (here, there) = (self.host(from)?, self.host(to)?);
        self.send_udp(from, (here, there), rate, time).await
    }

    /// The link at an interface.
    fn link_at(&self, at: Interface) -> Result<topology::Interface, ExperimentError> {
        let folder = self.lab.dir().join(topology::as_folder(at.isd_as));
        let own = AsDir::new(folder).topology();
        let own = own.map_err(ExperimentError::step)?;
        let mut routers = own.border_routers.into_values();
        routers
            .find_map(|mut router| router.interfaces.remove(&at.id))
            .ok_or_else(|| ExperimentError::Step(format!("there is no interface {at}")))
    }

    /// The address of an AS's host.
    pub fn host(&self, isd_as: IsdAsn) -> Result<IpAddr, ExperimentError> {
        let host = self.lab.host(isd_as).map_err(ExperimentError::step)?;
        host.ok_or_else(|| ExperimentError::Step(format!("{isd_as} has no host")))
    }
}

impl Bed for TestBed {
    async fn take_down(mut self) -> Result<(), ExperimentError> {
        self.down = true;
        self.lab.down(|_| ()).map_err(ExperimentError::step)
    }
}

impl Drop for TestBed {
    fn drop(&mut self) {
        if !self.down
            && let Err(error) = self.lab.down(|_| ())
        {
            tracing::error!("{error}");
        }
    }
}

impl<S> Bed for Shared<S> {
    async fn take_down(self) -> Result<(), ExperimentError> {
        drop(self.servers);
        self.bed.take_down().await
    }
}

impl<S> Deref for Shared<S> {
    type Target = TestBed;

    fn deref(&self) -> &TestBed {
        &self.bed
    }
}

/// Starts a program in an AS; dropping the result kills the program.
fn start(lab: &Lab, isd_as: IsdAsn, command: Command) -> Result<Child, ExperimentError> {
    let name = name(&command);
    let command = lab.command(isd_as, command);
    tokio::process::Command::from(command.map_err(ExperimentError::step)?)
        // What is measured does not depend on the user's defaults.
        .env("HAWSER_CONFIG", "/dev/null")
        .kill_on_drop(true)
        .spawn()
        .during(format_args!("starting {name}"))
}

/// Runs a program in an AS to its end and returns its standard output. Its standard error is that
/// of this process, or `messages`.
async fn output(
    lab: &Lab,
    isd_as: IsdAsn,
    mut command: Command,
    messages: Option<Messages>,
) -> Result<String, ExperimentError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let name = name(&command);
    let output = start(lab, isd_as, command)?.wait_with_output().await;
    let output = output.during(format_args!("running {name}"))?;
    if !output.status.success() {
        let why = messages.map_or_else(|| output.status.to_string(), Messages::into_last);
        return Err(ExperimentError::Step(format!("{name} failed: {why}")));
    }
    String::from_utf8(output.stdout).during(format_args!("reading the output of {name}"))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// A file with the standard error of a program.
struct Messages(File);

impl Messages {
    /// Redirects the standard error of a command into a new file.
    fn of(command: &mut Command) -> Result<Self, ExperimentError> {
        let file = tempfile::tempfile().during("making a file for messages")?;
        command.stderr(file.try_clone().during("making a file for messages")?);
        Ok(Self(file))
    }

    /// The last line, without the program's name.
    fn into_last(mut self) -> String {
        let mut text = String::new();
        let read = self.0.rewind();
        if let Err(error) = read.and_then(|()| self.0.read_to_string(&mut text)) {
            return format!("its messages cannot be read: {error}");
        }
        let line = text.trim_end().lines().next_back();
        let line = line.unwrap_or("it printed no message");
        line.strip_prefix("hawser: ").unwrap_or(line).to_owned()
    }
}
