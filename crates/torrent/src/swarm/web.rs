//! Web seeds of a torrent at work: their runs are tasks, and what arrives goes the way of blocks of peers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::event::Event;
use super::state::Swarm;
use super::web_runs::{Running, Web, WebEvent, key};
use crate::error::{ContentSource, DownloadError};
use crate::peer::Shared;
use crate::picker::{ConnId, GroupId};
use crate::progress::WebSeedProgress;
use crate::transport::Transport;
use crate::web::{Fetch, Parts, Run, RunId, SeedId, WebOrder, fetch};
use crate::wire::Request;

/// Passes blocks of a run to the owner of the torrent, as fast as the limits and the disk allow.
struct Passed<T: Transport> {
    seed: SeedId,
    run: RunId,
    conn: ConnId,
    key: [u8; 32],
    shared: Arc<Shared>,
    events: mpsc::Sender<Event<T>>,
}

impl<T: Transport> Parts for Passed<T> {
    async fn take(&mut self, request: Request, data: Bytes) -> bool {
        let limit = &self.shared.rates.down;
        if limit.is_limited() {
            limit.acquire(self.key).await.spend(data.len() as u64);
        }
        let room = self.shared.account.reserve(data.len()).await;
        let event = WebEvent::Block {
            conn: self.conn,
            request,
            data,
            room,
        };
        let event = Event::Web(self.seed, self.run, event);
        self.events.send(event).await.is_ok()
    }
}

impl<T: Transport> Swarm<T> {
    /// Uses the web seeds that the torrent names.
    pub fn use_web_seeds(&mut self) {
        let picker = &mut self.fetching.picker;
        self.web = Web::new(&self.metainfo, picker, &mut self.conns, Instant::now());
    }

    /// Asks web seeds for what they may be asked for now: at a tick, and after something has happened.
    pub(super) fn ask_web_seeds(&mut self, ticked: bool, now: Instant) {
        if !std::mem::take(&mut self.web.is_changed) && !ticked {
            return;
        }
        let peers_idle = self.has_idle_peer();
        let (picker, limit) = (&mut self.fetching.picker, self.fetching.limit);
        let (orders, cancel) = self.web.seeds.orders(picker, peers_idle, limit, now);
        super::fetching::cancel(&mut self.conns, cancel);
        if !orders.is_empty() {
            // What was given up is for others to request.
            self.conns.touch_all();
        }
        for order in orders {
            self.obey_web(order);
        }
    }

    /// Whether a connected peer would answer requests, but has none.
    fn has_idle_peer(&self) -> bool {
        let picker = &self.fetching.picker;
        self.conns.open.iter().any(|(id, conn)| {
            let is_usable = conn.theirs.unchoked && conn.stall.since.is_none();
            let is_ordered = !conn.ordered.held && !conn.ordered.retiring;
            is_usable && is_ordered && picker.asked(*id) == 0 && picker.is_interesting(*id)
        })
    }

    fn obey_web(&mut self, order: WebOrder) {
        match order {
            WebOrder::Fetch(run) => self.fetch_run(run),
            WebOrder::Shorten(run, less) => {
                if let Some(running) = self.web.runs.get(&run) {
                    let less = |left: usize| Some(left.saturating_sub(less));
                    let left = &running.left;
                    // It is never an error to leave out more than is left.
                    let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
                }
            }
            WebOrder::Stop(run) => {
                if let Some(running) = self.web.runs.remove(&run) {
                    running.task.abort();
                }
            }
        }
    }

    fn fetch_run(&mut self, order: Run) {
        let Run {
            seed,
            run,
            conn,
            places,
            requests,
        } = order;
        let left = Arc::new(AtomicUsize::new(requests.len()));
        let job = Fetch {
            client: self.web.client.clone(),
            places,
            pieces: self.metainfo.pieces,
            requests,
            left: Arc::clone(&left),
        };
        let url = self.web.seeds.url(seed).unwrap_or_default();
        tracing::debug!(url, blocks = job.requests.len(), "a web seed is asked");
        let mut parts = Passed {
            seed,
            run,
            conn,
            key: key(url),
            shared: Arc::clone(&self.shared),
            events: self.net.events.clone(),
        };
        let task = self.net.tasks.spawn(async move {
            let ended = fetch(job, &mut parts).await;
            // Fails once the owner has ended.
            let event = Event::Web(seed, run, WebEvent::Ended(ended));
            let _ = parts.events.send(event).await;
        });
        self.web.runs.insert(run, Running { task, left });
    }

    /// Handles what the task of a run reports. Blocks of a run that was stopped still count.
    pub(super) fn on_web(&mut self, seed: SeedId, run: RunId, event: WebEvent, now: Instant) {
        match event {
            WebEvent::Block {
                conn,
                request,
                data,
                room,
            } => {
                self.ending.alive_at = now;
                self.web.seeds.on_block(seed, run, data.len() as u64, now);
                self.arrived(conn, request, data, Some(&room), now);
            }
            WebEvent::Ended(ended) => {
                self.web.runs.remove(&run);
                let picker = &mut self.fetching.picker;
                self.web.seeds.on_end(seed, run, ended, picker, now);
                self.web.is_changed = true;
                self.conns.touch_all();
            }
        }
    }

    /// Never uses the web seed `group` again, if it is one.
    pub(super) fn ban_web_seed(&mut self, group: GroupId, reason: &str) {
        let picker = &mut self.fetching.picker;
        let orders = self.web.seeds.ban(group, reason, picker);
        let Some(orders) = orders else {
            return;
        };
        orders.into_iter().for_each(|order| self.obey_web(order));
        self.web.is_changed = true;
        self.conns.touch_all();
        self.check_all_dropped();
    }

    /// Ends a download of which every peer and every web seed is dropped.
    pub(super) fn check_all_dropped(&mut self) {
        let mut remotes = self.dialing.remotes.values();
        let others_may_come = self.ending.finds_peers || self.ending.awaits_peers;
        if self.ending.give_up_after.is_some()
            && !others_may_come
            && self.conns.open.is_empty()
            && !self.web.seeds.any_usable()
            && remotes.all(|remote| remote.banned.is_some())
        {
            let sources = self.troubles();
            self.ending
                .failure
                .get_or_insert(DownloadError::AllDropped(sources));
        }
    }

    /// What each web seed does.
    pub fn web_seeds(&self) -> Vec<WebSeedProgress> {
        self.web.seeds.progress(Instant::now())
    }

    /// Every web seed, with the reason why nothing is fetched from it.
    pub(super) fn web_troubles(&self) -> impl Iterator<Item = (ContentSource, String)> {
        let troubles = self.web.seeds.troubles();
        troubles.map(|(url, why)| (ContentSource::WebSeed(url), why))
    }
}
