//! What is counted, for Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};

use hawser_http::{MetricKind, Metrics};

use crate::job::{Job, JobState};

/// What a service has done since it started.
#[derive(Debug, Default)]
pub struct Counters {
    submitted: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    retries: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    received_transfers: AtomicU64,
}

impl Counters {
    /// Counts that a job has a new version; `before` was its state.
    pub(super) fn count(&self, before: Option<JobState>, job: &Job) {
        let add = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        match (before, job.state) {
            (None, _) => add(&self.submitted),
            (Some(before), now) if before == now => 0,
            (_, JobState::Done) => add(&self.done),
            (_, JobState::Failed) => add(&self.failed),
            (_, JobState::Cancelled) => add(&self.cancelled),
            (_, JobState::Waiting { .. }) => add(&self.retries),
            (_, JobState::Queued | JobState::Running) => 0,
        };
    }

    /// Counts bytes of content that were delivered to a server.
    pub(super) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a transfer from another host, and its bytes of content.
    pub(crate) fn received(&self, bytes: u64) {
        self.received_transfers.fetch_add(1, Ordering::Relaxed);
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The counters, and how many jobs are in which state, in Prometheus' text format.
    #[must_use]
    pub fn text<'a>(&self, jobs: impl Iterator<Item = &'a Job>) -> String {
        let mut metrics = Metrics::default();
        let mut states = [
            ("queued", 0_u64),
            ("waiting", 0),
            ("running", 0),
            ("done", 0),
            ("failed", 0),
            ("cancelled", 0),
        ];
        for job in jobs {
            let state = states
                .iter_mut()
                .find(|(name, _)| *name == job.state.name());
            if let Some((_, count)) = state {
                *count += 1;
            }
        }
        let help = "Jobs that are listed, by state.";
        let mut listed = metrics.add("hawser_service_jobs", MetricKind::Gauge, help);
        for (name, count) in states {
            listed.value(&[("state", &name)], count);
        }
        let counters = [
            ("jobs_submitted", "Jobs accepted.", &self.submitted),
            ("jobs_done", "Jobs delivered.", &self.done),
            ("jobs_failed", "Jobs that failed.", &self.failed),
            ("jobs_cancelled", "Jobs cancelled.", &self.cancelled),
            (
                "retries",
                "Attempts that failed and are made again.",
                &self.retries,
            ),
            (
                "sent_bytes",
                "Bytes of content delivered to servers.",
                &self.sent,
            ),
            (
                "received_bytes",
                "Bytes of content received.",
                &self.received,
            ),
            (
                "received_transfers",
                "Transfers received.",
                &self.received_transfers,
            ),
        ];
        for (name, help, counter) in counters {
            let name = format!("hawser_service_{name}_total");
            let mut metric = metrics.add(name, MetricKind::Counter, help);
            metric.value(&[], counter.load(Ordering::Relaxed));
        }
        metrics.into_text()
    }
}
