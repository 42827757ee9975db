//! Seeding after a download.

use std::time::Duration;

use hawser_torrent::{Progress, SeedEnd, SeedLimits, Summary};
use serde::Serialize;

use super::report::Job;
use crate::cmd::quantity::long_duration;
use crate::format;
use crate::out::{errln, outln, plain};

/// How long a download seeds when it is done.
#[derive(clap::Args)]
pub struct SeedingArgs {
    /// Continue to seed when done, until interrupted
    #[arg(long)]
    seed: bool,
    /// Seed until RATIO times the size was sent: 1.5
    #[arg(long, value_name = "RATIO", value_parser = positive, allow_hyphen_values = true)]
    seed_ratio: Option<f64>,
    /// Seed for this time: 30m
    ///
    /// With --seed-ratio until the first of both.
    #[arg(long, value_name = "TIME", value_parser = seed_time, allow_hyphen_values = true)]
    seed_time: Option<Duration>,
}

impl SeedingArgs {
    /// The limits of seeding; `None` if seeding was not requested.
    pub fn limits(&self) -> Option<SeedLimits> {
        let limits = SeedLimits {
            ratio: self.seed_ratio,
            time: self.seed_time,
        };
        (self.seed || limits != SeedLimits::default()).then_some(limits)
    }
}

/// Reads a ratio.
fn positive(text: &str) -> Result<f64, String> {
    let ratio: Option<f64> = text.parse().ok();
    ratio
        .filter(|ratio| *ratio > 0.0 && ratio.is_finite())
        .ok_or_else(|| {
            format!(
                "{text:?} is not a ratio: write a number above 0, for example 1.5, \
                 or --seed alone for no limit"
            )
        })
}

fn seed_time(text: &str) -> Result<Duration, String> {
    let time = long_duration(text)?;
    match time.is_zero() {
        true => Err("write a time above 0, or leave it out to end when done".to_owned()),
        false => Ok(time),
    }
}

/// The object that `hawser get --seed --json` prints when seeding has ended.
#[derive(Debug, Serialize)]
pub struct SeedReport {
    /// The torrent's name.
    name: String,
    /// Its info-hash, in hex.
    info_hash: String,
    /// Bytes of blocks sent to other peers, also during the download.
    uploaded_bytes: u64,
    /// `uploaded_bytes` divided by the bytes of all files.
    ratio: f64,
    /// Duration of seeding.
    seed_seconds: f64,
    /// The reason for the end: `ratio`, `time` or `interrupt`.
    ended_by: &'static str,
    /// The reason for the end, for people.
    #[serde(skip)]
    why: &'static str,
}

impl SeedReport {
    /// The report on seeding; `None` if seeding was not requested.
    pub fn new(job: &Job, summary: &Summary) -> Option<Self> {
        let seeded = summary.seeded?;
        let (ended_by, why) = match seeded.end {
            SeedEnd::Ratio => ("ratio", ", up to --seed-ratio"),
            SeedEnd::Time => ("time", ", up to --seed-time"),
            _ => ("interrupt", ""),
        };
        Some(Self {
            name: job.name.clone(),
            info_hash: job.info_hash.clone(),
            uploaded_bytes: summary.uploaded_bytes,
            ratio: ratio(summary.uploaded_bytes, job.bytes),
            seed_seconds: seeded.time.as_secs_f64(),
            ended_by,
            why,
        })
    }

    /// Prints the report for people.
    pub fn print(&self) {
        let (name, sent) = (plain(&self.name), format::bytes(self.uploaded_bytes));
        let Self {
            ratio,
            seed_seconds,
            why,
            ..
        } = self;
        outln!("{name}: {sent} sent, ratio {ratio:.2}, seeded for {seed_seconds:.1} s{why}");
    }
}

/// Bytes sent divided by bytes of the torrent; 0 for an empty torrent.
fn ratio(uploaded: u64, total: u64) -> f64 {
    match total {
        0 => 0.0,
        _ => uploaded as f64 / total as f64,
    }
}

/// The state in a few words.
pub fn state(progress: &Progress) -> String {
    let ratio = ratio(progress.uploads.uploaded_bytes, progress.total_bytes);
    let rate = format::rate(progress.uploads.rate as f64);
    format!("seeding, ratio {ratio:.2}, {rate}")
}

/// Prints the state as a line on standard error, for output without a terminal.
pub fn show_line(progress: &Progress) {
    let peers = progress.uploads.peers.len();
    errln!("{} to {peers} path-level peers", state(progress));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read() {
        assert_eq!(positive("1.5"), Ok(1.5));
        for wrong in ["0", "-1", "inf", "nan", "", "half"] {
            let error = positive(wrong).unwrap_err();
            assert!(error.contains("above 0"), "{wrong}: {error}");
        }
        assert_eq!(seed_time("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(seed_time("1.5h"), Ok(Duration::from_secs(5400)));
        assert!(seed_time("0s").unwrap_err().contains("above 0"));
        assert!(seed_time("30").unwrap_err().contains("30m"));
    }
}
