//! The measurements of an experiment or a demo: the objects that `hawser bench --json` and `hawser
//! demo --json` print.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::{DownloadExperiment, Headline};
use crate::numbers::{median, spread};
use crate::session::Outcome;
use crate::transfer::TransferPath;

/// The measurements of an experiment.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The experiment's name.
    pub experiment: &'static str,
    /// The section or figure of the paper, or what is compared.
    pub about: &'static str,
    /// Bytes of each download, by variant.
    pub bytes: BTreeMap<String, u64>,
    /// Goodput of every run in Mbit/s, by variant: of all downloads together until the last is
    /// complete; with cross traffic, in the time of that traffic.
    pub variants: BTreeMap<String, Vec<f64>>,
    /// The limits less headers on the used paths, in Mbit/s, by variant; null without limits. Cross
    /// traffic is not subtracted.
    pub ceiling_mbit: BTreeMap<String, Option<f64>>,
    /// The papers' measurements, in Mbit/s, by variant, where there are any.
    pub paper_mbit: BTreeMap<String, f64>,
    /// With cross traffic: goodput before that traffic, in Mbit/s.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub before_mbit: BTreeMap<String, Vec<f64>>,
    /// With cross traffic: seconds from the end of that traffic until nine tenths of `before_mbit`
    /// were reached for a second; null if never.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub recovered_seconds: BTreeMap<String, Vec<Option<f64>>>,
    /// Beside a TCP flow of the kernel: that flow's goodput in the same time, in Mbit/s.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rival_mbit: BTreeMap<String, Vec<f64>>,
    /// Beside a TCP flow of the kernel: bits on the link for each of the flow's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub share: BTreeMap<String, Vec<f64>>,
    /// The most memory that one of the programs used in any run, in bytes, by variant.
    pub peak_memory: BTreeMap<String, u64>,
    /// The headline ratio, of medians; null when one of its variants was not run.
    pub ratio: Option<f64>,
    /// The definition of `ratio`.
    pub ratio_of: String,
    /// The headline ratio of the papers' figures.
    pub paper_ratio: Option<f64>,
    /// Largest less smallest goodput, divided by the median, by variant.
    pub spread: BTreeMap<String, f64>,
    /// The variants in the order of the experiment.
    #[serde(skip)]
    pub order: Vec<String>,
}

impl Report {
    /// Sums up the runs of each variant, in the order of the experiment.
    pub fn new(experiment: &DownloadExperiment, outcome: &Outcome) -> Self {
        let mut report = Self {
            experiment: experiment.name,
            about: experiment.about,
            paper_ratio: experiment.paper_ratio,
            ..Self::default()
        };
        let variants = experiment.variants.iter();
        for ((variant, runs), bytes) in variants.zip(&outcome.runs).zip(&outcome.bytes) {
            let name = || variant.name.clone();
            let goodput: Vec<f64> = runs.iter().map(|run| run.goodput_mbit).collect();
            let ceilings: Option<Vec<f64>> = runs.iter().map(|run| run.ceiling_mbit).collect();
            let around: Vec<(f64, f64)> = runs.iter().filter_map(|run| run.around).collect();
            if !around.is_empty() {
                let before = around.iter().map(|(before, _)| *before).collect();
                report.before_mbit.insert(name(), before);
                let seconds = around
                    .iter()
                    .map(|(_, s)| Some(*s).filter(|s| s.is_finite()));
                report.recovered_seconds.insert(name(), seconds.collect());
            }
            let rivals: Vec<_> = runs.iter().filter_map(|run| run.rival).collect();
            if !rivals.is_empty() {
                let (mbit, share) = rivals.into_iter().unzip();
                report.rival_mbit.insert(name(), mbit);
                report.share.insert(name(), share);
            }
            let memory = runs.iter().map(|run| run.peak_memory).max();
            report
                .peak_memory
                .insert(name(), memory.unwrap_or_default());
            report.order.push(name());
            report.bytes.insert(name(), *bytes);
            report.spread.insert(name(), spread(&goodput));
            let ceiling = ceilings.map(|ceilings| median(&ceilings));
            report.ceiling_mbit.insert(name(), ceiling);
            report.variants.insert(name(), goodput);
            if let Some(mbit) = variant.paper_mbit {
                report.paper_mbit.insert(name(), mbit);
            }
        }
        let of = |from: &BTreeMap<String, Vec<f64>>, name: &str| {
            from.get(name).map(|values| median(values))
        };
        (report.ratio_of, report.ratio) = match &experiment.headline {
            Headline::Ratio(one, other, scale) => {
                let of = |name| of(&report.variants, name);
                let ratio = of(one).zip(of(other)).map(|(a, b)| scale * a / b);
                (format!("{one} / {other}"), ratio)
            }
            Headline::During(name) => {
                let during = of(&report.variants, name);
                let ratio = during.zip(of(&report.before_mbit, name));
                let ratio = ratio.map(|(during, before)| during / before);
                (format!("{name}, during / before congestion"), ratio)
            }
        };
        report
    }
}

/// The measurements of a demo.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    /// The ready topology.
    pub topology: &'static str,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether every download was the seeded file.
    pub sha256_ok: bool,
    /// The downloads, in order.
    pub runs: Vec<DemoRun>,
    /// Goodput of plain TCP over one link of the same network, in Mbit/s, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iperf3_tcp_mbit: Option<f64>,
}

/// One download.
#[derive(Debug, Serialize)]
pub struct DemoRun {
    /// The path selection strategy.
    pub select: String,
    /// Time from the first path lookup to the last verified piece.
    pub seconds: f64,
    /// File bits per second, in Mbit/s.
    pub goodput_mbit: f64,
    /// The limits less headers, in Mbit/s; `None` without limits.
    pub ceiling_mbit: Option<f64>,
    /// The paths that carried the file.
    pub paths: Vec<PathUse>,
}

/// The use of one path.
#[derive(Debug, Serialize)]
pub struct PathUse {
    /// The path's fingerprint, in hex.
    pub fingerprint: String,
    /// Number of ASes on the path, both ends included.
    pub hops: usize,
    /// Bytes of blocks received over the path.
    pub bytes: u64,
    /// The interfaces that the path crosses.
    #[serde(skip)]
    pub interfaces: Vec<String>,
}

impl DemoReport {
    /// Sums up the first run of each variant.
    pub fn new(demo: &DownloadExperiment, outcome: &Outcome) -> Self {
        let path = |path: &TransferPath| PathUse {
            fingerprint: path.fingerprint.clone(),
            hops: path.hops,
            bytes: path.bytes,
            interfaces: path.interfaces.clone(),
        };
        let runs = demo.variants.iter().zip(&outcome.runs);
        let runs = runs.filter_map(|(variant, runs)| {
            let run = runs.first()?;
            Some(DemoRun {
                select: variant.name.clone(),
                seconds: run.seconds,
                goodput_mbit: run.goodput_mbit,
                ceiling_mbit: run.ceiling_mbit,
                paths: run.paths.iter().map(path).collect(),
            })
        });
        Self {
            topology: demo.name,
            bytes: outcome.bytes.first().copied().unwrap_or_default(),
            sha256_ok: outcome.runs.iter().flatten().all(|run| run.identical),
            runs: runs.collect(),
            iperf3_tcp_mbit: outcome.plain_tcp_mbit,
        }
    }
}
