//! The trackers of one torrent, kept asked.

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_tracker::message::{Answer, MAX_ANSWER_PEERS, TrackerError};
use hawser_tracker::{AnnounceId, Announcer, Host, Order, Stats, TrackerStatus, TrackerUrl};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::error::AnnounceError;
use crate::mapped::MappedPort;
use crate::tracker::Client;

/// How long trackers have to be told that the client leaves.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// The trackers of one torrent: a task that asks them while the torrent is there.
///
/// Dropping it stops the task, which then still tells the trackers that the client leaves, for at most
/// three seconds; [`stop`](Self::stop) waits for that.
#[derive(Debug)]
pub struct Trackers {
    status: watch::Receiver<Vec<TrackerStatus>>,
    refresh: mpsc::Sender<()>,
    /// The latest that the torrent is to have in place of those that it began with.
    tiers: watch::Sender<Vec<Vec<String>>>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Trackers {
    /// Has `client` ask trackers as `announcer` orders, with the numbers in `stats`, and with the port
    /// `mapped` while there is one, except where a tracker sees no address of the gateway; a download is complete
    /// when its `left` becomes 0 and something was downloaded. Peers of answers go to `sink`; while that is full, the latest thousand are
    /// kept. Ends when `stop` is cancelled. To be called inside a tokio runtime.
    pub fn spawn(
        client: Client,
        announcer: Announcer,
        mapped: MappedPort,
        stats: watch::Receiver<Stats>,
        sink: mpsc::Sender<Vec<PeerAddr>>,
        stop: &CancellationToken,
    ) -> Self {
        let (status_sender, status) = watch::channel(announcer.status());
        // One wish is as good as several.
        let (refresh, refreshes) = mpsc::channel(1);
        let (tiers, changes) = watch::channel(Vec::new());
        let stop = stop.child_token();
        let task = Task {
            client,
            announcer,
            mapped,
            status: status_sender,
            announces: JoinSet::new(),
            left: None,
            found: Vec::new(),
        };
        let wishes = Wishes {
            refreshes,
            tiers: changes,
        };
        let task = tokio::spawn(task.run(stats, sink, wishes, stop.clone()));
        Self {
            status,
            refresh,
            tiers,
            stop,
            task: Some(task),
        }
    }

    /// The trackers, for people, whenever that changes.
    pub fn status(&self) -> watch::Receiver<Vec<TrackerStatus>> {
        self.status.clone()
    }

    /// Asks for an announce as soon as the trackers allow it.
    pub fn refresh(&self) {
        // One that waits already is for this one, too.
        let _ = self.refresh.try_send(());
    }

    /// Asks these trackers, in tiers (BEP 12), from now on. New ones are asked, and those that are not among them
    /// are told that the client leaves.
    pub fn set(&self, tiers: Vec<Vec<String>>) {
        self.tiers.send_replace(tiers);
    }

    /// Stops asking, and tells the trackers that the client leaves. Takes at most about three seconds.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
    }
}

impl Drop for Trackers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The answer to an announce, and the port that was mapped when it was sent.
struct Outcome {
    id: AnnounceId,
    mapped: Option<u16>,
    answer: Result<Answer, AnnounceError>,
}

/// What the task is to do beside what its announcer orders.
struct Wishes {
    refreshes: mpsc::Receiver<()>,
    tiers: watch::Receiver<Vec<Vec<String>>>,
}

struct Task {
    client: Client,
    announcer: Announcer,
    mapped: MappedPort,
    status: watch::Sender<Vec<TrackerStatus>>,
    /// Bounded by the announcer: at most one for each tracker.
    announces: JoinSet<Outcome>,
    /// Bytes missing, as last seen.
    left: Option<u64>,
    /// Peers that `sink` had no room for; at most [`MAX_ANSWER_PEERS`].
    found: Vec<PeerAddr>,
}

impl Task {
    async fn run(
        mut self,
        mut stats: watch::Receiver<Stats>,
        sink: mpsc::Sender<Vec<PeerAddr>>,
        mut wishes: Wishes,
        stop: CancellationToken,
    ) {
        let mut stats_end = false;
        self.mapped.update();
        let first = *stats.borrow_and_update();
        self.take_stats(first);
        loop {
            self.advance();
            let due = self.announcer.next_due().map(Instant::from_std);
            let has_found = !self.found.is_empty() && !sink.is_closed();
            tokio::select! {
                () = stop.cancelled() => break,
                changed = stats.changed(), if !stats_end => {
                    stats_end = changed.is_err();
                    let latest = *stats.borrow_and_update();
                    self.take_stats(latest);
                }
                () = self.mapped.changed() => self.announcer.refresh(now()),
                Some(()) = wishes.refreshes.recv() => self.announcer.refresh(now()),
                // Its handle is there until `stop`.
                Ok(()) = wishes.tiers.changed() => {
                    let tiers = wishes.tiers.borrow_and_update().clone();
                    self.announcer.set_trackers(&tiers, now());
                }
                Some(outcome) = self.announces.join_next() => self.take(outcome.ok()),
                permit = sink.reserve(), if has_found => match permit {
                    Ok(permit) => permit.send(std::mem::take(&mut self.found)),
                    Err(_) => self.found.clear(),
                },
                () = until(due) => {}
            }
        }
        self.leave().await;
    }

    fn take_stats(&mut self, stats: Stats) {
        self.announcer.on_stats(stats);
        let before = self.left.replace(stats.left);
        if stats.left > 0 || before.is_none_or(|before| before == 0) {
            return;
        }
        match stats.downloaded {
            // It was complete before: the trackers are to know a seeder, and count no download (BEP 3).
            0 => self.announcer.refresh(now()),
            _ => self.announcer.completed(now()),
        }
    }

    /// Carries out what is due.
    fn advance(&mut self) {
        for order in self.announcer.advance(now()) {
            let Order::Announce {
                id,
                url,
                mut request,
            } = order;
            let mapped = self.mapped.now();
            request.port = port_at(&url, request.port, mapped);
            let client = self.client.clone();
            self.announces.spawn(async move {
                Outcome {
                    id,
                    mapped,
                    answer: client.announce(&url, &request).await,
                }
            });
        }
        let latest = self.announcer.status();
        self.status.send_if_modified(|status| {
            let changed = *status != latest;
            *status = latest;
            changed
        });
    }

    fn take(&mut self, outcome: Option<Outcome>) {
        let Some(Outcome { id, mapped, answer }) = outcome else {
            return;
        };
        match answer {
            Ok(answer) => {
                self.announcer.on_answer(now(), id, Ok(&answer));
                self.found.extend(answer.peers);
                let surplus = self.found.len().saturating_sub(MAX_ANSWER_PEERS);
                self.found.drain(..surplus);
                if mapped != self.mapped.now() {
                    // It changed on the way.
                    self.announcer.refresh(now());
                }
            }
            Err(error) => {
                tracing::debug!("an announce failed: {error}");
                let error = TrackerError::from(&error);
                self.announcer.on_answer(now(), id, Err(&error));
            }
        }
    }

    /// Tells the trackers that the client leaves.
    async fn leave(mut self) {
        let end = Instant::now() + STOP_TIMEOUT;
        self.announces.abort_all();
        self.announcer.stop(now());
        self.advance();
        while !self.announcer.is_done() {
            match timeout_at(end, self.announces.join_next()).await {
                Ok(Some(outcome)) => self.take(outcome.ok()),
                Ok(None) | Err(_) => break,
            }
        }
        let latest = self.announcer.status();
        self.status.send_replace(latest);
    }
}

/// The port to announce at a tracker: the mapped one in place of the `local` one, if there is one. A tracker
/// at an address of IPv6 or SCION sees the address of this host, where the mapped port leads nowhere.
fn port_at(url: &str, local: u16, mapped: Option<u16>) -> u16 {
    let is_beside = url
        .parse()
        .is_ok_and(|url: TrackerUrl| matches!(url.host, Host::Scion(_) | Host::Ip(IpAddr::V6(_))));
    match mapped {
        // Port 0 says that no peer can connect.
        Some(mapped) if local != 0 && !is_beside => mapped,
        _ => local,
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
