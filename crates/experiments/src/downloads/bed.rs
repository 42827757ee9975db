//! What downloads run on: files, and a network with seeders.

use hawser_torrent::CreateOptions;

use crate::bed::{Server, Shared, TestBed};
use crate::content::{Content, Load};
use crate::downloads::Downloads;
use crate::error::ExperimentError;
use crate::experiment::{Means, Variant};
use crate::scratch::Scratch;
use crate::shape::{Bed, Observe, Progress};
use crate::thread::watched;

/// The files, and the network if all runs share it.
#[derive(Debug)]
pub struct DownloadBed {
    /// What is transferred, of each size.
    pub loads: Vec<Load>,
    pub shared: Option<Seeded>,
    folder: Scratch,
}

impl DownloadBed {
    /// A bed without files.
    pub fn new() -> Result<Self, ExperimentError> {
        Ok(Self {
            loads: Vec::new(),
            shared: None,
            folder: Scratch::create()?,
        })
    }

    /// Adds a file, and hashes it into its torrent.
    pub async fn add(
        &mut self,
        content: impl FnOnce() -> Result<Content, ExperimentError> + Send + 'static,
        observe: Observe<'_>,
    ) -> Result<(), ExperimentError> {
        let folder = self.folder.path().to_owned();
        let load = watched("hashing", observe, move |hashing| {
            Load::new(content()?, &folder, &CreateOptions::default(), hashing)
        });
        self.loads.push(load.await?);
        Ok(())
    }

    /// The same with a new file of `bytes` bytes, unless there is one.
    pub async fn add_generated(
        &mut self,
        bytes: u64,
        observe: Observe<'_>,
    ) -> Result<(), ExperimentError> {
        if self.loads.iter().any(|load| load.content.bytes == bytes) {
            return Ok(());
        }
        let folder = self.folder.path().to_owned();
        let content = move || Content::generate(&folder, bytes);
        self.add(content, observe).await
    }
}

impl Bed for DownloadBed {
    async fn take_down(self) -> Result<(), ExperimentError> {
        match self.shared {
            Some(shared) => shared.take_down().await,
            None => Ok(()),
        }
    }
}

/// A network with the seeders of a variant.
pub type Seeded = Shared<Vec<Server>>;

/// Brings up the network of a variant and starts its seeders.
pub async fn seeded(
    downloads: &Downloads,
    variant: &Variant,
    load: &Load,
    observe: Observe<'_>,
) -> Result<Seeded, ExperimentError> {
    let (name, options) = (downloads.experiment.name, &downloads.options);
    let (network, folder) = (variant.network.clone(), Scratch::create()?);
    let bed = TestBed::up(network, name, &options.program, options.no_offload, folder)?;
    observe(Progress::Ready("network up"));
    let mut seeders = Vec::new();
    if variant.means != Means::PlainTcp {
        for seeder in &variant.seeders {
            let (torrent, content) = (&load.torrent, &load.content.path);
            let over_ip = variant.means == Means::TorrentOverIp;
            let seeding = bed.seed(*seeder, torrent, content, over_ip);
            let seeder = seeding.await?;
            let ready = format!("seeding at {}", seeder.address());
            observe(Progress::Ready(&ready));
            seeders.push(seeder);
        }
    }
    Ok(bed.with(seeders))
}
