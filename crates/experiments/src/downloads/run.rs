//! One run of one variant: its downloads, cross traffic and measurements.

use std::time::Duration;

use futures_util::future::try_join_all;

use super::Downloads;
use super::bed::Seeded;
use crate::bed::{Flows, Server, TestBed};
use crate::ceiling::{PathCost, ceiling};
use crate::content::Load;
use crate::error::ExperimentError;
use crate::experiment::{DownloadExperiment, Means, Rival, Variant, Window};
use crate::samples::Samples;
use crate::transfer::{TransferPath, TransferReport};

/// Second of a download before which it is still starting up.
const WARM_UP_SECONDS: f64 = 4.0;
/// How long plain TCP is measured.
const PLAIN_TCP_TIME: Duration = Duration::from_secs(5);

/// The measurements of a run.
#[derive(Debug, Default)]
pub struct Run {
    /// Bytes of each download.
    pub bytes: u64,
    /// Seconds from the first path lookup to the last verified piece of the last download.
    pub seconds: f64,
    /// Bits of all files per second, in Mbit/s: until the last download is complete, or in the
    /// window.
    pub goodput_mbit: f64,
    /// The limits less headers, in Mbit/s; `None` without limits.
    pub ceiling_mbit: Option<f64>,
    /// With a window: the goodput before it, and the seconds after it until nine tenths of that
    /// goodput were reached again, infinite if never.
    pub around: Option<(f64, f64)>,
    /// Beside a TCP flow of the kernel: that flow's goodput in the same time, in Mbit/s, and the bits
    /// on the link that the download had for each of the flow's.
    pub rival: Option<(f64, f64)>,
    /// The most memory that one of the programs used, in bytes.
    pub peak_memory: u64,
    /// The paths of all downloads that carried blocks.
    pub(crate) paths: Vec<TransferPath>,
    /// The bytes of all files together over time.
    pub(crate) samples: Samples,
}

/// Runs a variant on a network with its seeders.
pub(super) async fn run(
    downloads: &Downloads,
    bed: &Seeded,
    variant: &Variant,
    load: &Load,
) -> Result<Run, ExperimentError> {
    let experiment = &downloads.experiment;
    if variant.means == Means::PlainTcp {
        return plain_tcp(bed, variant).await;
    }
    let window = experiment.window;
    let cross = window.iter().flat_map(|window| {
        let sources = variant.cross.iter();
        sources.map(move |&(interface, rate)| async move {
            tokio::time::sleep(Duration::from_secs_f64(window.from)).await;
            let time = Duration::from_secs_f64(window.to - window.from);
            bed.cross_traffic(interface, rate, time).await
        })
    });
    let mut ready = None;
    if let Some(rival) = &variant.rival {
        let flows = Flows {
            ends: rival.ends,
            algorithm: rival.algorithm,
            count: 1,
            seconds: rival.window().to + rival.lead,
            port: Flows::PORT,
        };
        ready = Some(bed.prepare_tcp(&flows).await?);
    }
    let lead = variant.rival.map_or(0.0, |rival| rival.lead);
    let after = |seconds: f64| tokio::time::sleep(Duration::from_secs_f64(seconds.max(0.0)));
    let rival = async {
        after(-lead).await;
        match ready {
            Some(ready) => bed.run_tcp(ready).await.map(Some),
            None => Ok(None),
        }
    };
    let show = downloads.options.show_downloads;
    let fetched = async {
        after(lead).await;
        let downloads = variant.downloads.iter();
        let fetched = downloads.map(|one| async move {
            let seeder = bed.servers.get(one.seeder);
            let seeder = seeder.ok_or_else(|| ExperimentError::step("there is no seeder"))?;
            bed.fetch((one.isd_as, &one.args), seeder, load, show).await
        });
        let named = |error| ExperimentError::step(format!("{}: {error}", variant.name));
        try_join_all(fetched).await.map_err(named)
    };
    let (reports, rival, _) = tokio::try_join!(fetched, rival, try_join_all(cross))?;
    let mut run = measure(experiment, variant, reports)?;
    run.bytes = load.content.bytes;
    let seeders = &bed.servers;
    run.peak_memory = seeders
        .iter()
        .filter_map(Server::peak_memory)
        .fold(run.peak_memory, u64::max);
    if let (Some(rival), Some(carried)) = (variant.rival, rival) {
        compare(&mut run, variant, rival, &carried)?;
    }
    Ok(run)
}

/// Measures plain TCP between the ends of a variant.
async fn plain_tcp(bed: &TestBed, variant: &Variant) -> Result<Run, ExperimentError> {
    let ends = variant.ends();
    let (from, to) = ends.ok_or_else(|| ExperimentError::step("there is no download"))?;
    let carried = bed.iperf3(from, to, PLAIN_TCP_TIME).await?;
    Ok(Run {
        bytes: carried.bytes,
        seconds: carried.seconds,
        goodput_mbit: carried.gbit() * 1e3,
        ..Run::default()
    })
}

fn measure(
    experiment: &DownloadExperiment,
    variant: &Variant,
    reports: Vec<TransferReport>,
) -> Result<Run, ExperimentError> {
    let peak_memory = reports.iter().map(|r| r.cost.peak_memory).max();
    let series: Vec<_> = reports.iter().map(|r| &r.samples[..]).collect();
    let samples = Samples::sum(&series);
    let bytes: u64 = reports.iter().map(|r| r.transferred.fetched_bytes).sum();
    let seconds = reports.iter().map(|r| r.seconds).fold(0.0, f64::max);
    let paths: Vec<_> = reports.into_iter().flat_map(|r| r.paths).collect();
    let ceiling = costs(variant, &paths)?.and_then(|costs| ceiling(&variant.network, &costs));
    let mut run = Run {
        seconds,
        goodput_mbit: bytes as f64 * 8e-6 / seconds.max(1e-9),
        ceiling_mbit: ceiling.map(|bits| bits / 1e6),
        peak_memory: peak_memory.unwrap_or_default(),
        paths,
        samples,
        ..Run::default()
    };
    if let Some(window) = experiment.window {
        refuse_early_end(variant, &run, window)?;
        let before = run.samples.rate(WARM_UP_SECONDS, window.from);
        run.goodput_mbit = run.samples.rate(window.from, window.to);
        run.around = Some((before, run.samples.recovery(window.to, 0.9 * before)));
    }
    if let Some(from) = experiment.settled {
        refuse_early_end(
            variant,
            &run,
            Window {
                from,
                to: from + 1.0,
            },
        )?;
        run.goodput_mbit = run.samples.rate(from, run.samples.end());
    }
    Ok(run)
}

/// Compares a download with what a rival carried in the same time.
fn compare(
    run: &mut Run,
    variant: &Variant,
    rival: Rival,
    carried: &Samples,
) -> Result<(), ExperimentError> {
    let window = rival.window();
    refuse_early_end(variant, run, window)?;
    let theirs = carried.rate(window.from + rival.lead, window.to + rival.lead);
    run.goodput_mbit = run.samples.rate(window.from, window.to);
    let (Some(ours), Some(tcp)) = (
        run.paths.first().map(PathCost::of).transpose()?,
        PathCost::plain_tcp(&variant.network, rival.ends.0, rival.ends.1),
    ) else {
        return Err(ExperimentError::step("the download used no path"));
    };
    let on_link = run.goodput_mbit / ours.efficiency();
    run.rival = Some((theirs, on_link * tcp.efficiency() / theirs));
    Ok(())
}

/// Refuses a download that ended before what was to be measured.
fn refuse_early_end(variant: &Variant, run: &Run, window: Window) -> Result<(), ExperimentError> {
    if run.seconds >= window.to {
        return Ok(());
    }
    Err(ExperimentError::Request(format!(
        "{}: the download was through after {:.1} s, before second {}: give it more with --size",
        variant.name, run.seconds, window.to
    )))
}

/// The costs of the used paths; `None` where plain IP has no route.
fn costs(
    variant: &Variant,
    paths: &[TransferPath],
) -> Result<Option<Vec<PathCost>>, ExperimentError> {
    if variant.means != Means::TorrentOverIp {
        let costs = paths.iter().map(PathCost::of);
        return Ok(Some(costs.collect::<Result<_, _>>()?));
    }
    let costs = variant.downloads.iter().map(|download| {
        let seeder = variant.seeders[download.seeder];
        PathCost::plain_tcp(&variant.network, seeder, download.isd_as)
    });
    Ok(costs.collect())
}
