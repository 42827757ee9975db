//! The course of a download, then of seeding.

use std::pin::pin;

use hawser_torrent::{Download, DownloadError, Phase, Progress, StoreError, Summary};
use tokio::sync::watch;

use super::bars::Bars;
use super::job::Job;
use super::offered::OfferedPaths;
use super::report::{Report, Sample};
use super::seeding::SeedReport;
use super::table;
use crate::cmd::changes::Changes;
use crate::cmd::{print, process};
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

/// Shows a download and prints the report; then does the same for seeding, if requested.
pub async fn run(job: &Job, download: Download, offered: OfferedPaths) -> Result<(), Failure> {
    let mut view = View {
        progress: download.progress(),
        offered,
        samples: job.args.samples.then(Vec::new),
        bars: Bars::new(&job.name, job.args.verbose),
        changes: Changes::default(),
        json: job.args.json,
    };
    let ended = follow(job, download, &mut view).await;
    view.bars.clear();
    ended
}

async fn follow(job: &Job, mut download: Download, view: &mut View) -> Result<(), Failure> {
    let mut interrupted = pin!(process::interrupted());
    let completed = tokio::select! {
        completed = download.completed() => completed,
        signal = &mut interrupted => {
            signal?;
            let text = "interrupted: the same command goes on from what is on disk";
            return Err(Failure::job(text));
        }
        () = view.show() => None,
    };
    // A short download may be done before its first progress was seen.
    view.offered.update();
    let seeding = job.args.seeding.limits().is_some();
    let ended = match completed.filter(|_| seeding) {
        // The report follows the end, when all connections are closed.
        None => {
            let summary = download.wait().await.map_err(failure)?;
            view.bars.clear();
            job.print(&summary, view)?;
            summary
        }
        Some(summary) => {
            job.print(&summary, view)?;
            job.print_seeding();
            view.samples = None;
            tokio::select! {
                signal = &mut interrupted => {
                    signal?;
                    download.stop();
                }
                () = view.show() => {}
            }
            let summary = download.wait().await.map_err(failure)?;
            view.bars.clear();
            summary
        }
    };
    match SeedReport::new(job, &ended) {
        Some(report) if job.args.json => print::json(&report),
        Some(report) => {
            report.print();
            Ok(())
        }
        None => Ok(()),
    }
}

impl Job {
    /// Prints the report.
    fn print(&self, summary: &Summary, view: &View) -> Result<(), Failure> {
        let mut report = Report::new(self, summary, &view.offered);
        report.samples = view.samples.clone().unwrap_or_default();
        report.add_verdicts(&view.progress.borrow(), &view.offered);
        if self.args.json {
            return print::json(&report);
        }
        table::print(&report, self.args.verbose);
        Ok(())
    }

    /// Prints that the torrent is seeded now, and where peers connect.
    fn print_seeding(&self) {
        if !self.args.json {
            let (name, size) = (plain(&self.name), format::bytes(self.bytes));
            outln!("seeding {name} ({size}) {}", self.addresses);
        }
        if self.addresses.is_none() {
            errln!("nobody else can connect: --tcp 0.0.0.0:6881 lets IP peers");
        }
    }
}

/// What shows a download.
struct View {
    progress: watch::Receiver<Progress>,
    offered: OfferedPaths,
    /// The progress so far, with `--samples`.
    samples: Option<Vec<Sample>>,
    bars: Bars,
    changes: Changes,
    json: bool,
}

impl View {
    /// Shows it until it ends.
    async fn show(&mut self) {
        while self.progress.changed().await.is_ok() {
            self.offered.update();
            let progress = self.progress.borrow_and_update();
            if let Some(samples) = &mut self.samples
                && !matches!(progress.phase, Phase::Checking | Phase::Seeding)
            {
                samples.push(Sample::of(&progress));
            }
            self.changes.report(&progress.uploads.changed, self.json);
            self.bars.show(&progress);
        }
    }
}

/// The failure of a download; names `--force` if that is the remedy.
fn failure(error: DownloadError) -> Failure {
    match error {
        DownloadError::Store(error @ (StoreError::Foreign { .. } | StoreError::TooLong { .. })) => {
            Failure::job(format!("{error}, or overwrite it with --force"))
        }
        error => Failure::job(error),
    }
}
