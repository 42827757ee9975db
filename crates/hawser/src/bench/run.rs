//! One run of one variant, on a network of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::try_join_all;

use super::experiment::{SETTLED, Variant, Window};
use crate::cmd::get::{self, Sample};
use crate::failure::{Doing, Failure};
use crate::stage::content::Content;
use crate::stage::{Bars, Stage, ceiling};

/// What is transferred.
pub struct Load {
    /// The file.
    pub content: Content,
    /// Its `.torrent` file.
    pub torrent: PathBuf,
}

/// What a run gave.
pub struct Run {
    /// Bits of all files per second, in Mbit/s: until the last is there, or during the window.
    pub goodput_mbit: f64,
    /// What headers leave of the limits; none where nothing is limited.
    pub ceiling_mbit: Option<f64>,
    /// With a window: the goodput before it, and how long after it nine tenths of that were reached
    /// again, in seconds.
    pub around: Option<(f64, f64)>,
    /// Bytes of all files together as time goes by, from 0 at the start.
    pub samples: Vec<(f64, f64)>,
}

/// Runs a variant.
pub async fn run(
    variant: &Variant,
    load: &Load,
    window: Option<Window>,
    folder: &Path,
) -> Result<Run, Failure> {
    let mut stage = Stage::set(&variant.network, "bench")?;
    let mut addresses = Vec::new();
    for seeder in &variant.seeders {
        let (torrent, content) = (&load.torrent, &load.content.path);
        let seeding = stage.seed(
            seeder.isd_as,
            torrent,
            content,
            &seeder.args,
            variant.over_ip,
        );
        addresses.push(seeding.await?);
    }
    let reports = {
        let gets = variant.downloads.iter().map(|download| {
            let (stage, address) = (&stage, &addresses[download.seeder]);
            async move {
                let into = tempfile::Builder::new()
                    .prefix("get-")
                    .tempdir_in(folder)
                    .doing("making a folder for the download")?;
                let mut args = download.args.clone();
                args.push("--samples".to_owned());
                let (isd_as, torrent) = (download.isd_as, &load.torrent);
                let report = stage.get(isd_as, torrent, into.path(), address, &args, Bars::Hidden);
                let report = report.await?;
                match load.content.matches(&into.path().join(&report.name))? {
                    true => Ok(report),
                    false => Err(Failure::job(format!(
                        "{}: the downloaded file differs from the seeded one",
                        variant.name
                    ))),
                }
            }
        });
        let cross = window.iter().flat_map(|window| {
            let stage = &stage;
            variant
                .cross
                .iter()
                .map(move |(interface, rate)| async move {
                    tokio::time::sleep(Duration::from_secs_f64(window.from)).await;
                    let time = Duration::from_secs_f64(window.to - window.from);
                    stage.cross_traffic(*interface, *rate, time).await
                })
        });
        tokio::try_join!(try_join_all(gets), try_join_all(cross))?.0
    };
    stage.clear()?;
    measure(variant, &reports, window)
}

fn measure(
    variant: &Variant,
    reports: &[get::Report],
    window: Option<Window>,
) -> Result<Run, Failure> {
    let network = &variant.network;
    let costs: Option<Vec<_>> = match variant.over_ip {
        true => variant
            .downloads
            .iter()
            .map(|download| {
                let seeder = variant.seeders[download.seeder].isd_as;
                ceiling::PathCost::plain_tcp(network, seeder, download.isd_as)
            })
            .collect(),
        false => {
            let paths = reports.iter().flat_map(|report| &report.paths);
            Some(paths.map(ceiling::PathCost::of).collect::<Result<_, _>>()?)
        }
    };
    let ceiling = costs.and_then(|costs| ceiling::ceiling(network, &costs));
    let ceiling_mbit = ceiling.map(|c| c / 1e6);
    let all: Vec<&[Sample]> = reports.iter().map(|r| &r.samples[..]).collect();
    let samples = together(&all);
    let bytes: u64 = reports.iter().map(|r| r.fetched_bytes).sum();
    let seconds = reports.iter().map(|r| r.seconds).fold(0.0, f64::max);
    let Some(window) = window else {
        return Ok(Run {
            goodput_mbit: bytes as f64 * 8e-6 / seconds.max(1e-9),
            ceiling_mbit,
            around: None,
            samples,
        });
    };
    if seconds < window.to {
        return Err(Failure::usage(format!(
            "{}: the download was through after {seconds:.1} s, before the congestion ended: give it more with --size",
            variant.name
        )));
    }
    let before = rate(&samples, SETTLED, window.from);
    Ok(Run {
        goodput_mbit: rate(&samples, window.from, window.to),
        ceiling_mbit,
        around: Some((before, recovery(&samples, window.to, 0.9 * before))),
        samples,
    })
}

/// The bytes of several downloads together, every tenth of a second.
fn together(all: &[&[Sample]]) -> Vec<(f64, f64)> {
    let end = all
        .iter()
        .filter_map(|samples| samples.last())
        .map(|last| last.seconds)
        .fold(0.0, f64::max);
    let series: Vec<Vec<(f64, f64)>> = all
        .iter()
        .map(|samples| {
            let points = samples.iter().map(|s| (s.seconds, s.bytes as f64));
            std::iter::once((0.0, 0.0)).chain(points).collect()
        })
        .collect();
    let steps = (end * 10.0).ceil() as usize;
    (0..=steps)
        .map(|step| {
            let time = (step as f64 / 10.0).min(end);
            (time, series.iter().map(|one| at(one, time)).sum())
        })
        .collect()
}

/// Bytes at a time, between two samples in proportion.
pub fn at(samples: &[(f64, f64)], time: f64) -> f64 {
    let after = samples.partition_point(|(t, _)| *t < time);
    match (after.checked_sub(1).map(|i| samples[i]), samples.get(after)) {
        (Some((t0, b0)), Some(&(t1, b1))) if t1 > t0 => b0 + (b1 - b0) * (time - t0) / (t1 - t0),
        (_, Some(&(_, bytes))) => bytes,
        (Some((_, bytes)), None) => bytes,
        (None, None) => 0.0,
    }
}

/// The goodput between two times, in Mbit/s.
pub fn rate(samples: &[(f64, f64)], from: f64, to: f64) -> f64 {
    (at(samples, to) - at(samples, from)) * 8e-6 / (to - from).max(1e-9)
}

/// Seconds after `from` until a second passes at `wanted` Mbit/s or more; infinite if none does.
fn recovery(samples: &[(f64, f64)], from: f64, wanted: f64) -> f64 {
    let end = samples.last().map_or(0.0, |(time, _)| *time);
    let mut time = from;
    while time + 1.0 <= end {
        if rate(samples, time, time + 1.0) >= wanted {
            return time - from;
        }
        time += 0.1;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_between_samples() {
        // 1 MB/s for 10 s, then half of that for 10 s, then again as before.
        let samples: Vec<_> = (0..=300)
            .map(|step| {
                let t = f64::from(step) / 10.0;
                let slow = (t - 10.0).clamp(0.0, 10.0);
                (t, 1e6 * (t - slow / 2.0))
            })
            .collect();
        assert!((rate(&samples, 2.0, 9.95) - 8.0).abs() < 1e-6);
        assert!((rate(&samples, 10.0, 20.0) - 4.0).abs() < 1e-6);
        assert!(recovery(&samples, 20.0, 7.2) < 0.15);
        assert!(recovery(&samples, 20.0, 8.8).is_infinite());
        assert_eq!(at(&samples, 99.0), at(&samples, 30.0));
    }

    #[test]
    fn downloads_are_added_up() {
        let sample = |seconds: f64, bytes| Sample {
            seconds,
            bytes,
            paths: Default::default(),
        };
        let (one, two) = ([sample(1.0, 100)], [sample(2.0, 400)]);
        let both = together(&[&one, &two]);
        assert_eq!(at(&both, 1.0), 300.0);
        assert_eq!(at(&both, 2.0), 500.0);
    }
}
