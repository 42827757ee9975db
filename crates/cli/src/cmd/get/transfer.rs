//! The course of a download, then of seeding.

use std::pin::pin;

use hawser_experiments::Sample;
use hawser_torrent::{Download, DownloadError, Phase, Progress, StoreError, Summary};
use tokio::sync::watch;

use super::bars::Bars;
use super::report::{self, Job, OfferedPaths};
use super::seeding::SeedReport;
use crate::cmd::network::Addresses;
use crate::cmd::print;
use crate::cmd::reported::Reported;
use crate::failure::Failure;
use crate::format;
use crate::out::{errln, outln, plain};

/// Shows a download and prints the report; then does both for seeding, if requested. Both end when
/// `interrupted` does.
pub async fn run(
    job: &Job,
    download: Download,
    offered: OfferedPaths,
    interrupted: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let mut view = View {
        job,
        progress: download.progress(),
        offered,
        samples: Vec::new(),
        bars: Bars::new(&job.name, job.verbose),
        reported: Reported::default(),
    };
    let ended = follow(download, &mut view, interrupted).await;
    view.bars.clear();
    ended
}

async fn follow(
    mut download: Download,
    view: &mut View<'_>,
    interrupted: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let job = view.job;
    let mut interrupted = pin!(interrupted);
    let completed = tokio::select! {
        completed = download.completed() => completed,
        () = &mut interrupted => {
            let text = "interrupted: the same command continues from what is on disk";
            return Err(Failure::job(text));
        }
        () = view.show() => None,
    };
    // A short download may end before its first progress is shown.
    view.update_offered();
    // Without seeding, the report is printed at the end, when all connections are closed.
    let seeded = completed.filter(|_| job.seeds);
    if let Some(summary) = &seeded {
        view.offered.complete(summary).await;
        view.print(summary)?;
        if !job.json {
            // Less than the torrent if only some of its files are selected.
            let size = summary.fetched_bytes + summary.resumed_bytes;
            let (name, size) = (plain(&job.name), format::bytes(size));
            outln!("seeding {name} ({size}) {}", job.addresses);
        }
        if job.addresses == Addresses::default() {
            errln!("nobody else can connect: --tcp 0.0.0.0:6881 lets IP peers");
        }
        tokio::select! {
            () = &mut interrupted => download.stop(),
            () = view.show() => {}
        }
    }
    let summary = download.wait().await.map_err(failure)?;
    view.bars.clear();
    if seeded.is_none() {
        tokio::select! {
            () = view.offered.complete(&summary) => {}
            () = &mut interrupted => {}
        }
        view.print(&summary)?;
    }
    match SeedReport::new(job, &summary) {
        Some(report) if job.json => print::json(&report)?,
        Some(report) => report.print(),
        None => {}
    }
    Ok(())
}

/// The display of a download.
struct View<'a> {
    job: &'a Job,
    progress: watch::Receiver<Progress>,
    offered: OfferedPaths,
    /// The progress of the download so far, with `--samples`.
    samples: Vec<Sample>,
    bars: Bars,
    reported: Reported,
}

impl View<'_> {
    /// Shows the download until it ends.
    async fn show(&mut self) {
        while self.progress.changed().await.is_ok() {
            self.update_offered();
            let progress = self.progress.borrow();
            if self.job.samples && !matches!(progress.phase, Phase::Checking | Phase::Seeding) {
                self.samples.push(report::sample(&progress));
            }
            self.reported
                .report(&progress.uploads.changed, self.job.json);
            self.reported.report_web_seeds(&progress.web_seeds);
            self.bars.show(&progress);
        }
    }

    /// Learns the paths that are offered now.
    fn update_offered(&mut self) {
        let progress = self.progress.borrow();
        self.offered
            .update(progress.paths.iter().map(|path| path.peer));
    }

    /// Prints the report.
    fn print(&mut self, summary: &Summary) -> Result<(), Failure> {
        let (job, samples) = (self.job, std::mem::take(&mut self.samples));
        let progress = self.progress.borrow();
        let report = report::report(job, summary, &progress, &self.offered, samples);
        if job.json {
            return print::json(&report);
        }
        report::print(&report, job.verbose);
        Ok(())
    }
}

/// The failure of a download; suggests `--force` if that is the remedy.
fn failure(error: DownloadError) -> Failure {
    match error {
        DownloadError::Store(error @ (StoreError::Foreign { .. } | StoreError::TooLong { .. })) => {
            Failure::job(format!("{error}, or overwrite it with --force"))
        }
        error => error.into(),
    }
}
