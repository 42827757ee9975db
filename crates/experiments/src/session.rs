//! A session: makes an experiment's files, brings its networks up, and runs its variants in turn.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_torrent::CreateOptions;

use crate::content::Content;
use crate::error::ExperimentError;
use crate::experiment::{DownloadExperiment, Variant};
use crate::run::{Load, Run, run};
use crate::scratch::Scratch;
use crate::stage::{Server, Stage};

/// How long plain TCP is measured.
const PLAIN_TCP_TIME: Duration = Duration::from_secs(5);

/// How an experiment is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The path of the `hawser` program, which runs labs, seeders and downloads.
    pub program: PathBuf,
    /// Number of runs of each variant.
    pub repeat: u16,
    /// The file to transfer; `None` for generated files of the experiment's sizes.
    pub file: Option<PathBuf>,
    /// Whether downloads draw on this process's standard error: for experiments that run one
    /// download at a time.
    pub show_downloads: bool,
    /// Whether plain TCP is measured too, with `iperf3` over [`DownloadExperiment::direct_link`]: for
    /// experiments on one network.
    pub plain_tcp: bool,
    /// Whether every packet crosses the network by itself ([`hawser_lab::Options::no_offload`]).
    pub no_offload: bool,
}

/// Progress of a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A file to transfer is ready.
    Content {
        /// Size of the file, in bytes.
        bytes: u64,
    },
    /// A file is being hashed into its torrent.
    Hashing {
        /// Bytes hashed.
        done: u64,
        /// Bytes of the file.
        total: u64,
    },
    /// The network of the next run is up.
    NetworkUp,
    /// A seeder listens.
    Seeding {
        /// Its address, as `hawser get --peer` takes it.
        address: &'a str,
    },
    /// The downloads of a variant start.
    Started {
        /// The variant.
        variant: &'a Variant,
    },
    /// The downloads of a variant are complete.
    Finished {
        /// The variant.
        variant: &'a Variant,
        /// The number of the repetition, from 1.
        turn: u16,
        /// The measurements.
        run: &'a Run,
    },
    /// Plain TCP is being measured.
    PlainTcp,
}

/// The measurements of a session.
#[derive(Debug)]
pub struct Outcome {
    /// Bytes of each download, by variant, in their order.
    pub bytes: Vec<u64>,
    /// The runs of each variant, in their order.
    pub runs: Vec<Vec<Run>>,
    /// Goodput of plain TCP over one link of the same network, in Mbit/s, if it was measured.
    pub plain_tcp_mbit: Option<f64>,
}

/// An experiment that is ready to run: its files are made and hashed.
///
/// Dropping it, or the future of [`Session::run`], takes everything down.
#[derive(Debug)]
pub struct Session<'a> {
    experiment: &'a DownloadExperiment,
    options: &'a Options,
    folder: Scratch,
    /// Bytes of each download, by variant.
    bytes: Vec<u64>,
    /// Contents by size.
    loads: BTreeMap<u64, Load>,
}

impl<'a> Session<'a> {
    /// Makes and hashes the files. Blocks until both are done.
    ///
    /// # Errors
    /// [`ExperimentError::Request`] if the user's file is empty, [`ExperimentError::Step`] if a
    /// file cannot be read or written.
    pub fn prepare(
        experiment: &'a DownloadExperiment,
        options: &'a Options,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<Self, ExperimentError> {
        let folder = Scratch::create()?;
        let mut loads = BTreeMap::new();
        let bytes: Vec<u64> = match &options.file {
            Some(file) => {
                let load = load(Content::existing(file)?, folder.path(), observe)?;
                let bytes = load.content.bytes;
                loads.insert(bytes, load);
                vec![bytes; experiment.variants.len()]
            }
            None => {
                let variants = experiment.variants.iter();
                variants.map(|one| experiment.bytes_of(one)).collect()
            }
        };
        for &size in &bytes {
            if let Entry::Vacant(entry) = loads.entry(size) {
                let content = Content::generate(folder.path(), size)?;
                entry.insert(load(content, folder.path(), observe)?);
            }
        }
        Ok(Self {
            experiment,
            options,
            folder,
            bytes,
            loads,
        })
    }

    /// Runs every variant as often as requested, one of each in turn, so that other load on the
    /// machine affects all alike.
    ///
    /// # Errors
    /// [`ExperimentError::Request`] if a download ends before the cross traffic does,
    /// [`ExperimentError::Step`] if a network does not come up or a program in it fails.
    pub async fn run(self, observe: &mut dyn FnMut(Event<'_>)) -> Result<Outcome, ExperimentError> {
        let (experiment, options) = (self.experiment, self.options);
        let mut runs: Vec<Vec<Run>> = self.bytes.iter().map(|_| Vec::new()).collect();
        let mut kept: Option<(Stage, Vec<Server>)> = None;
        for turn in 1..=options.repeat {
            for (index, variant) in experiment.variants.iter().enumerate() {
                let load = &self.loads[&self.bytes[index]];
                let (stage, seeders) = match kept.take() {
                    Some(kept) => kept,
                    None => self.set_up(variant, load, observe).await?,
                };
                observe(Event::Started { variant });
                let (folder, show) = (self.folder.path(), options.show_downloads);
                let ready = (&stage, &seeders[..]);
                let run = run(ready, experiment, variant, load, folder, show).await?;
                match experiment.one_network {
                    true => kept = Some((stage, seeders)),
                    false => stage.take_down()?,
                }
                observe(Event::Finished {
                    variant,
                    turn,
                    run: &run,
                });
                runs[index].push(run);
            }
        }
        let mut plain_tcp_mbit = None;
        if let Some((stage, _seeders)) = kept {
            let link = experiment.direct_link().filter(|_| options.plain_tcp);
            if let Some((from, to)) = link {
                observe(Event::PlainTcp);
                let carried = stage.iperf3(from, to, PLAIN_TCP_TIME).await?;
                plain_tcp_mbit = Some(carried.gbit() * 1e3);
            }
            stage.take_down()?;
        }
        Ok(Outcome {
            bytes: self.bytes,
            runs,
            plain_tcp_mbit,
        })
    }

    /// Brings up the network of a variant and starts its seeders.
    async fn set_up(
        &self,
        variant: &Variant,
        load: &Load,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<(Stage, Vec<Server>), ExperimentError> {
        let name = self.experiment.name;
        let stage = Stage::set(
            &variant.network,
            name,
            &self.options.program,
            self.options.no_offload,
        )?;
        observe(Event::NetworkUp);
        let mut seeders = Vec::new();
        for seeder in &variant.seeders {
            let (torrent, content) = (&load.torrent, &load.content.path);
            let seeding = stage.seed(*seeder, torrent, content, variant.over_ip);
            let seeder = seeding.await?;
            observe(Event::Seeding {
                address: seeder.address(),
            });
            seeders.push(seeder);
        }
        Ok((stage, seeders))
    }
}

/// Hashes the file into a torrent in `folder`.
fn load(
    content: Content,
    folder: &Path,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Load, ExperimentError> {
    let bytes = content.bytes;
    observe(Event::Content { bytes });
    let hashing = |done, total| observe(Event::Hashing { done, total });
    Load::new(content, folder, &CreateOptions::default(), hashing)
}
