//! Runs what a [`DownloadExperiment`] declares: the experiments of the catalog, and the demo.

mod bed;
mod plot;
mod run;
mod table;

use std::fmt;
use std::path::PathBuf;

use self::bed::{DownloadBed, seeded};
pub use self::run::Run;
use crate::content::{Content, Load};
use crate::error::ExperimentError;
use crate::experiment::{DownloadExperiment, Variant};
use crate::shape::{Bed, Experiment, Figure, Observe, OnFailure, Results, Series, Table};

/// An experiment that is declared, and how it is run. Every variant is a case.
#[derive(Debug, Clone)]
pub struct Downloads {
    /// What is compared.
    pub experiment: DownloadExperiment,
    /// How it is run.
    pub options: Options,
}

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
    /// Whether every packet crosses the network by itself ([`hawser_lab::Options::no_offload`]).
    pub no_offload: bool,
}

/// The runs of a variant.
pub(crate) type Runs = Series<Variant, Run>;

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl Experiment for Downloads {
    type Place = ();
    type Bed = DownloadBed;
    type Case = Variant;
    type Run = Run;

    fn turns(&self) -> u16 {
        self.options.repeat
    }

    fn places(&self) -> Vec<()> {
        vec![()]
    }

    fn cases(&self, (): &()) -> Vec<Variant> {
        self.experiment.variants.clone()
    }

    /// Makes and hashes the files, and sets up the network if all runs share it.
    async fn set_up(&self, (): &(), observe: Observe<'_>) -> Result<DownloadBed, ExperimentError> {
        let mut bed = DownloadBed::new()?;
        match &self.options.file {
            Some(file) => {
                let file = file.clone();
                bed.add(move || Content::existing(&file), observe).await?;
            }
            None => {
                for variant in &self.experiment.variants {
                    let bytes = self.experiment.bytes_of(variant);
                    bed.add_generated(bytes, observe).await?;
                }
            }
        }
        if let Some(first) = self.experiment.variants.first()
            && self.experiment.one_network
        {
            let load = self.load(&bed, first)?;
            bed.shared = Some(seeded(self, first, load, observe).await?);
        }
        Ok(bed)
    }

    async fn measure(&self, bed: &DownloadBed, variant: &Variant) -> Result<Run, ExperimentError> {
        let load = self.load(bed, variant)?;
        if let Some(shared) = &bed.shared {
            return run::run(self, shared, variant, load).await;
        }
        let own = seeded(self, variant, load, &mut |_| ()).await?;
        let run = run::run(self, &own, variant, load).await?;
        own.take_down().await?;
        Ok(run)
    }

    /// The variants are compared with each other.
    fn on_failure(&self) -> OnFailure {
        OnFailure::End
    }

    fn summary(&self, run: &Run) -> String {
        format!("{:.1} Mbit/s", run.goodput_mbit)
    }

    fn table(&self, results: &Results<Self>) -> Table {
        table::of(self, results)
    }

    fn plot(&self, results: &Results<Self>) -> Result<Vec<Figure>, ExperimentError> {
        let runs: Vec<&Runs> = results.places.iter().flat_map(|(_, all)| all).collect();
        plot::draw(&self.experiment, &runs).map(Figure::only)
    }
}

impl Downloads {
    /// What a variant downloads.
    fn load<'a>(
        &self,
        bed: &'a DownloadBed,
        variant: &Variant,
    ) -> Result<&'a Load, ExperimentError> {
        let bytes = self.experiment.bytes_of(variant);
        let load = match &self.options.file {
            Some(_) => bed.loads.first(),
            None => bed.loads.iter().find(|load| load.content.bytes == bytes),
        };
        load.ok_or_else(|| ExperimentError::step("there is no file to transfer"))
    }
}
