//! One transfer between two processes of a client.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::Run;
use super::client::{Client, Transfer};
use crate::content::Content;
use crate::cpu;
use crate::error::{During, ExperimentError};
use crate::memory;
use crate::scratch::Scratch;
use crate::shape::Bed;

/// Longest time in which a seeder verifies its file, or a leecher fetches it: at least 100 Mbit/s.
const SLOWEST: f64 = 12.5e6;

/// Time in which a seeder that is ready uses no processor time.
const REST: Duration = Duration::from_millis(300);

/// The ports at which processes listen: Linux takes those of connections from 32768 on.
const PORTS: Range<u16> = 20_000..32_000;

/// Interval at which the end of the leecher is looked for, and how many of these pass between two looks at
/// its memory.
const POLL: Duration = Duration::from_millis(1);
const LOOKS: u32 = 20;

/// This host, with the file and the folders of all transfers.
#[derive(Debug)]
pub struct Host {
    program: PathBuf,
    content: Content,
    torrent: PathBuf,
    scratch: Scratch,
}

impl Bed for Host {
    async fn take_down(self) -> Result<(), ExperimentError> {
        Ok(())
    }
}

impl Host {
    /// Makes the file of `bytes` bytes to be transferred, and its torrent with pieces of `piece` bytes,
    /// or of a size chosen by that of the file; in `folder`, or else in memory.
    pub(crate) fn prepare(
        program: &Path,
        (bytes, piece): (u64, Option<u64>),
        folder: Option<&Path>,
    ) -> Result<Self, ExperimentError> {
        let scratch = match folder {
            Some(folder) => Scratch::create_in(folder)?,
            // The seeded file and the downloaded one.
            None => Scratch::in_memory(2 * bytes)?,
        };
        let content = Content::generate(scratch.path(), bytes)?;
        let torrent = scratch.path().join("content.torrent");
        let mut create = Command::new(program);
        create.args(["torrent", "create"]).arg(&content.path);
        create.arg("-o").arg(&torrent).stdout(Stdio::null());
        if let Some(piece) = piece {
            create.args(["--piece-length", &piece.to_string()]);
        }
        let step = "making the torrent";
        let made = create.status().during(step)?;
        match made.success() {
            true => Ok(Self {
                program: program.to_owned(),
                content,
                torrent,
                scratch,
            }),
            false => Err(ExperimentError::Step(format!("{step}: {made}"))),
        }
    }

    /// Transfers the file once from `seeders` seeders, all by the same client.
    ///
    /// # Errors
    /// When a process fails or is too slow, or the downloaded file differs.
    pub(crate) async fn run(&self, client: Client, seeders: u64) -> Result<Run, ExperimentError> {
        let output = self.scratch.path().join("output");
        std::fs::create_dir(&output).during(output.display())?;
        let run = self.transfer(client, seeders, &output).await;
        std::fs::remove_dir_all(&output).during(output.display())?;
        run
    }

    async fn transfer(
        &self,
        client: Client,
        seeders: u64,
        output: &Path,
    ) -> Result<Run, ExperimentError> {
        let name = self.content.path.file_name();
        let name = name.and_then(|name| name.to_str()).unwrap_or_default();
        let ports = free_ports(1 + seeders as usize)?;
        let transfer = Transfer {
            program: &self.program,
            torrent: &self.torrent,
            seeded: self.scratch.path(),
            name,
            output,
            seeders: &ports[1..],
            leecher: ports[0],
        };
        // Seeders verify the file at the same time.
        let patience = seeders.max(1) as f64 * self.content.bytes as f64 / SLOWEST;
        let patience = Duration::from_secs(10) + Duration::from_secs_f64(patience);
        let mut processes = Vec::new();
        for (number, &port) in transfer.seeders.iter().enumerate() {
            let role = format!("seeder {}", number + 1);
            processes.push(self.start(client, role, client.seed(&transfer, port))?);
        }
        for (seeder, &port) in processes.iter_mut().zip(transfer.seeders) {
            seeder.wait_until_ready(port, patience).await?;
        }
        let used = |processes: &[Process]| {
            let all = processes.iter().map(Process::cpu);
            let all = all.sum::<Result<f64, _>>()?;
            Ok::<_, ExperimentError>((all, of_children()?))
        };
        let before = used(&processes)?;
        let begun = Instant::now();
        let mut leecher = self.start(client, "leecher".to_owned(), client.get(&transfer))?;
        let leecher_memory = leecher.wait(patience).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let after = used(&processes)?;
        let seeders = processes.iter().map(|it| memory::peak(it.child.id()));
        let most = seeders.chain([Some(leecher_memory)]).max();
        if !self.content.matches(&output.join(name))? {
            let differs = "the downloaded file differs from the seeded one";
            return Err(ExperimentError::Step(format!("{client}: {differs}")));
        }
        let gigabytes = self.content.bytes as f64 / 1e9;
        Ok(Run {
            gbit: gigabytes * 8.0 / seconds,
            seeder_cpu_per_gb: (after.0 - before.0) / gigabytes,
            leecher_cpu_per_gb: (after.1 - before.1) / gigabytes,
            memory: most.flatten().unwrap_or_default(),
        })
    }

    /// Starts a process that prints into a log, and keeps its files below the scratch folder.
    fn start(
        &self,
        client: Client,
        role: String,
        mut command: Command,
    ) -> Result<Process, ExperimentError> {
        let what = format!("the {role} {client}");
        let log = self.scratch.path().join(format!("{role}.log"));
        let file = File::create(&log).during(log.display())?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(file).env("HOME", self.scratch.path());
        let child = command.spawn().during(&what)?;
        Ok(Process { child, what, log })
    }
}

/// A process of a client; dropping it ends it.
struct Process {
    child: Child,
    what: String,
    log: PathBuf,
}

impl Process {
    /// Waits until a seeder takes connections and rests.
    async fn wait_until_ready(
        &mut self,
        port: u16,
        patience: Duration,
    ) -> Result<(), ExperimentError> {
        let end = Instant::now() + patience;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            self.check_running(end)?;
            sleep(REST / 10).await;
        }
        loop {
            let before = self.cpu()?;
            sleep(REST).await;
            self.check_running(end)?;
            if self.cpu()? - before < 0.02 {
                return Ok(());
            }
        }
    }

    fn check_running(&mut self, end: Instant) -> Result<(), ExperimentError> {
        match self.child.try_wait().during(&self.what)? {
            Some(status) => Err(self.failed(&format!("ended with {status}"))),
            None if Instant::now() > end => Err(self.failed("is not ready in time")),
            None => Ok(()),
        }
    }

    /// Waits until a leecher has ended with success. Returns the most memory that it used, as it was seen a
    /// moment before, in bytes.
    async fn wait(&mut self, patience: Duration) -> Result<u64, ExperimentError> {
        let end = Instant::now() + patience;
        let mut most = 0;
        for look in 0.. {
            if look % LOOKS == 0 {
                most = memory::peak(self.child.id()).unwrap_or(most);
            }
            match self.child.try_wait().during(&self.what)? {
                Some(status) if status.success() => break,
                Some(status) => return Err(self.failed(&format!("ended with {status}"))),
                None if Instant::now() > end => return Err(self.failed("is too slow")),
                None => sleep(POLL).await,
            }
        }
        Ok(most)
    }

    /// Processor time so far, in seconds.
    fn cpu(&self) -> Result<f64, ExperimentError> {
        let seconds = cpu::seconds(self.child.id());
        seconds.ok_or_else(|| ExperimentError::step(format!("{} has ended", self.what)))
    }

    /// The error of a process, with the last line it printed.
    fn failed(&self, how: &str) -> ExperimentError {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let said = said.lines().rfind(|line| !line.trim().is_empty());
        let said = said.map_or(String::new(), |line| format!(": {line}"));
        ExperimentError::Step(format!("{} {how}{said}", self.what))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of the children of this process that have ended, in seconds.
fn of_children() -> Result<f64, ExperimentError> {
    let unknown = "the processor time of ended processes is unknown";
    cpu::of_children().ok_or_else(|| ExperimentError::step(unknown))
}

/// Free ports on 127.0.0.1, all different, none of which the system gives to a connection before a program
/// listens there.
fn free_ports(count: usize) -> Result<Vec<u16>, ExperimentError> {
    let start = fastrand::usize(..PORTS.len());
    let all = PORTS.skip(start).chain(PORTS.take(start));
    let free = all.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    let ports: Vec<u16> = free.take(count).collect();
    match ports.len() == count {
        true => Ok(ports),
        false => Err(ExperimentError::step(format!(
            "of TCP ports {} to {} on 127.0.0.1 not {count} are free",
            PORTS.start, PORTS.end
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_different() {
        let mut ports = free_ports(100).unwrap();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, ports[0])).unwrap();
        assert!(ports.iter().all(|port| PORTS.contains(port)));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 100);
        let others = free_ports(PORTS.len() - 1000).unwrap();
        assert!(!others.contains(&taken.local_addr().unwrap().port()));
        assert!(free_ports(PORTS.len() + 1).is_err());
    }
}
