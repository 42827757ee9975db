//! Runs transfers over two good paths and a bad one.

use std::convert::Infallible;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_lab::LinkChange;
use hawser_path::Interface;
use hawser_topology::IsdAsn;
use hawser_torrent::CreateOptions;

use super::condition::{Condition, FLAP};
use super::facts::Facts;
use super::table::{BadPathTable, Cell, compare};
use super::transfer::Transfer;
use crate::content::Content;
use crate::error::{During, ExperimentError};
use crate::experiment::isd_as;
use crate::network::{LinkSpec, parallel};
use crate::run::Load;
use crate::samples::Samples;
use crate::scratch::Scratch;
use crate::stage::{Shim, ShimOptions, Stage};

/// Delay of the links in each direction.
const DELAY: Duration = Duration::from_millis(5);
/// Good paths, and all of them.
const GOOD: u16 = 2;
const PATHS: u16 = 3;
/// The start of a run, which does not count.
const SETTLED: Duration = Duration::from_secs(3);
/// A run that takes this many times longer than over the good paths has failed, after `GRACE`.
const SLOWEST: u32 = 10;
const GRACE: Duration = Duration::from_secs(30);
/// Where the program finds the receiver through the shim: an address that nobody has (RFC 5737).
const MAPPED: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// The receiving program's port.
const PORT: u16 = 5001;

/// What is measured.
#[derive(Debug, Clone)]
pub struct BadPath {
    /// The path of the `hawser` program.
    pub program: PathBuf,
    /// The transfers, in the order in which they take turns.
    pub transfers: Vec<Transfer>,
    /// The conditions, in the order in which they take turns.
    pub conditions: Vec<Condition>,
    /// The limit of each link, in bit/s.
    pub rate: u64,
    /// How long the two good paths take for a run, its start aside.
    pub time: Duration,
    /// Number of runs of each.
    pub repeat: u16,
}

/// Progress of a measurement.
#[derive(Debug)]
#[non_exhaustive]
pub enum BadPathProgress<'a> {
    /// A transfer has run.
    Run {
        /// The number of the repetition, from 1.
        turn: u16,
        /// The transfer.
        transfer: Transfer,
        /// The condition; `None` for the good paths alone.
        condition: Option<Condition>,
        /// What the run shows.
        facts: &'a Facts,
    },
    /// A transfer has failed.
    Failed {
        /// The transfer.
        transfer: Transfer,
        /// The condition; `None` for the good paths alone.
        condition: Option<Condition>,
        /// Why.
        why: &'a str,
    },
}

/// The network with what all runs share.
struct Ready<'a> {
    bad_path: &'a BadPath,
    stage: &'a Stage,
    sender: IsdAsn,
    receiver: IsdAsn,
    folder: &'a Path,
    /// What is downloaded, if anything is.
    load: Option<Load>,
}

impl BadPath {
    /// Runs each transfer over the good paths alone and under each condition, one run of each in turn.
    /// What fails leaves a cell that says why.
    ///
    /// # Errors
    /// [`ExperimentError::Step`] if the network does not come up.
    pub async fn run(
        &self,
        observe: &mut dyn FnMut(BadPathProgress<'_>),
    ) -> Result<BadPathTable, ExperimentError> {
        // The file, and its copy.
        let folder = Scratch::in_memory(2 * self.bytes())?;
        let link = LinkSpec::new(self.rate as f64 / 1e6, DELAY.as_secs_f64() * 1e3);
        let network = parallel(&[link; PATHS as usize])?;
        let stage = Stage::set(&network, "bad-path", &self.program, false)?;
        let ready = Ready {
            bad_path: self,
            stage: &stage,
            sender: isd_as("1-ff00:0:111")?,
            receiver: isd_as("1-ff00:0:110")?,
            folder: folder.path(),
            load: self.load(folder.path())?,
        };
        let cells = ready.cells(observe).await;
        stage.take_down()?;
        Ok(BadPathTable {
            experiment: "bad-path",
            rate_mbit: self.rate as f64 / 1e6,
            round_trip_ms: 2e3 * DELAY.as_secs_f64(),
            settled_seconds: SETTLED.as_secs_f64(),
            seconds: self.time.as_secs_f64(),
            repeat: self.repeat,
            cells,
        })
    }

    /// What the limits of the good links carry in a run, headers included.
    fn bytes(&self) -> u64 {
        let seconds = (SETTLED + self.time).as_secs_f64();
        (f64::from(GOOD) * self.rate as f64 * seconds / 8.0) as u64
    }

    fn load(&self, folder: &Path) -> Result<Option<Load>, ExperimentError> {
        if !self.transfers.contains(&Transfer::Get) {
            return Ok(None);
        }
        let content = Content::generate(folder, self.bytes())?;
        let options = CreateOptions::default();
        Load::new(content, folder, &options, |_, _| {}).map(Some)
    }
}

impl<'a> Ready<'a> {
    async fn cells(&self, observe: &mut dyn FnMut(BadPathProgress<'_>)) -> Vec<Cell> {
        let transfers = self.bad_path.transfers.iter();
        let mut cells: Vec<Cell> = transfers
            .flat_map(|&transfer| {
                let conditions = self.bad_path.conditions.iter().copied().map(Some);
                let conditions = std::iter::once(None).chain(conditions);
                conditions.map(move |condition| Cell::new(transfer, condition))
            })
            .collect();
        for turn in 1..=self.bad_path.repeat {
            for cell in &mut cells {
                let (transfer, condition) = (cell.transfer, cell.condition);
                match self.record(transfer, condition).await {
                    Ok(facts) => {
                        cell.add(facts);
                        observe(BadPathProgress::Run {
                            turn,
                            transfer,
                            condition,
                            facts: &facts,
                        });
                    }
                    Err(error) => {
                        let why = error.to_string();
                        observe(BadPathProgress::Failed {
                            transfer,
                            condition,
                            why: &why,
                        });
                        cell.failure = Some(why);
                    }
                }
            }
        }
        compare(&mut cells);
        cells
    }

    /// One run, with its servers.
    async fn record(
        &self,
        transfer: Transfer,
        condition: Option<Condition>,
    ) -> Result<Facts, ExperimentError> {
        let third = Interface {
            isd_as: self.receiver,
            id: PATHS,
        };
        let shape = LinkChange {
            rate: Some(Some(self.bad_path.rate)),
            delay: Some(DELAY),
            loss: Some(0.0),
            up: Some(condition.is_some()),
            ..LinkChange::default()
        };
        self.stage.set_link(third, &shape)?;
        if let Some(condition) = condition {
            condition.apply(self.stage, third, DELAY)?;
        }
        let changes = async {
            match condition {
                Some(Condition::Flap) => self.stage.flap(third, FLAP).await,
                _ => Ok(std::future::pending::<Infallible>().await),
            }
        };
        let patience = SLOWEST * (SETTLED + self.bad_path.time) + GRACE;
        tokio::select! {
            facts = tokio::time::timeout(patience, self.transfer(transfer)) => {
                let late = |_| ExperimentError::Step(format!("it did not end within {patience:?}"));
                facts.map_err(late)?
            }
            changed = changes => match changed? {},
        }
    }

    async fn transfer(&self, transfer: Transfer) -> Result<Facts, ExperimentError> {
        let settled = SETTLED.as_secs_f64();
        let (samples, end) = match transfer {
            Transfer::Get => self.get().await?,
            Transfer::Send => self.send().await?,
            Transfer::ShimQuic => self.through_shim("quic").await?,
            Transfer::ShimMptcp => self.through_shim("mptcp").await?,
        };
        Facts::of(&samples, (settled, end))
    }

    /// A download to its end.
    async fn get(&self) -> Result<(Samples, f64), ExperimentError> {
        let load = self.load.as_ref();
        let load = load.ok_or_else(|| ExperimentError::step("there is nothing to download"))?;
        let (torrent, content) = (&load.torrent, &load.content);
        let seeder = self.stage.seed(self.sender, torrent, &content.path, false);
        let seeder = seeder.await?;
        let into = tempfile::tempdir_in(self.folder).during("making a folder for the download")?;
        let report = self
            .stage
            .get((self.receiver, &[]), &seeder, torrent, into.path(), false);
        let report = report.await?;
        match content.matches(&into.path().join(&report.name))? {
            true => Ok((Samples::of(&report.samples), report.seconds)),
            false => Err(ExperimentError::step(
                "the downloaded file differs from the seeded one",
            )),
        }
    }

    /// A bulk transfer to its end.
    async fn send(&self) -> Result<(Samples, f64), ExperimentError> {
        let server = self.stage.receive_bulk(self.receiver, self.folder).await?;
        let size = (self.bad_path.bytes(), PATHS);
        let report = self
            .stage
            .send_bulk(self.sender, &server, size, self.folder);
        let samples = Samples::of(&report.await?.samples);
        let end = samples.end();
        Ok((samples, end))
    }

    /// A TCP program that sends for the time of a run.
    async fn through_shim(&self, carrier: &str) -> Result<(Samples, f64), ExperimentError> {
        let listen = SocketAddr::new(self.stage.address(self.receiver)?, PORT);
        let map = self.folder.join("map.toml");
        let to = (self.receiver, listen.ip());
        let text = format!("[destinations]\n\"{MAPPED}\" = \"{},{}\"\n", to.0, to.1);
        fs::write(&map, text).during("writing a map")?;
        let empty = self.folder.join("empty.toml");
        fs::write(&empty, "").during("writing a map")?;
        let served = format!("{PORT}={listen}");
        let serving = ["--allow-any", "--serve", &served];
        let server = self.shim(self.receiver, &empty, &serving).await?;
        let sending = ["--any-server", "--carrier", carrier];
        let client = self.shim(self.sender, &map, &sending).await?;
        let addresses = (listen, Some(SocketAddr::new(MAPPED, PORT)));
        let time = SETTLED + self.bad_path.time;
        let sent = self
            .stage
            .plain_tcp_to((self.sender, self.receiver), addresses, time);
        let samples = sent.await?;
        client.down().await?;
        server.down().await?;
        Ok((samples, time.as_secs_f64()))
    }

    /// Brings the shim of a host up.
    async fn shim(
        &self,
        isd_as: IsdAsn,
        map: &Path,
        args: &[&str],
    ) -> Result<Shim<'a>, ExperimentError> {
        let options = ShimOptions {
            isd_as,
            map,
            key: &self
                .folder
                .join(format!("{}.key", isd_as.to_string().replace(':', "-"))),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        };
        self.stage.shim_up(&options).await
    }
}
