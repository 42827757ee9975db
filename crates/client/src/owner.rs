//! The task that owns the torrents: it takes commands and reports, and carries out what is ordered.
//!
//! Everything that it knows is its own; others see clones. Commands wait in a bounded channel, and so do
//! reports of torrents, of which each has a task. A command is answered when what it changes is on disk.

mod disk;
mod peers;
mod settings;
mod views;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hawser_kernel::clock::minute_of_week;
use hawser_torrent::{InfoHash, Metainfo, PeerAddr};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use self::disk::Renamed;
use crate::completion::{Completed, Completions};
use crate::content;
use crate::engine::Engine;
use crate::event::Event;
use crate::history::History;
use crate::record::{Pending, Record};
use crate::renames::Rename;
use crate::runner::{Job, Live};
use crate::settings::Settings;
use crate::state::StateFolder;
use crate::torrents::{CommandError, Now, Order, Torrents, Traffic};
use crate::view::Rates;
use crate::windows::Windows;

/// Time between looks at the numbers of torrents.
const TICK: Duration = Duration::from_secs(1);

/// What is done with the torrents; what it returns is called with the outcome of saving.
pub(crate) type Command = Box<dyn FnOnce(&mut Owner) -> Reply + Send>;
/// What is read of the torrents.
pub(crate) type Look = Box<dyn FnOnce(&Owner) + Send>;
/// Answers a command.
pub(crate) type Reply = Box<dyn FnOnce(Result<(), String>) + Send>;

/// A torrent to add, with its metainfo if that is known.
pub(crate) struct Addition {
    pub record: Record,
    pub metainfo: Option<Vec<u8>>,
}

/// What the owner is asked.
pub(crate) enum Request {
    Add(
        Box<Addition>,
        Box<dyn FnOnce(Result<(), AddFailure>) + Send>,
    ),
    Do(Command),
    /// Changes nothing, so that those that wait for changes are not woken by looking themselves.
    Look(Look),
}

/// Why a torrent was not added.
pub(crate) enum AddFailure {
    Refused(CommandError),
    NotSaved(String),
}

/// A torrent whose task runs.
struct Running {
    stop: CancellationToken,
    settings: watch::Sender<Settings>,
    windows: watch::Sender<Windows>,
    named_peers: watch::Sender<Vec<PeerAddr>>,
    /// Has it announced to its trackers.
    reannounce: Arc<Notify>,
    /// The file that it is to rename.
    rename: watch::Sender<Option<Rename>>,
    /// How many peers it may be connected to.
    max_peers: watch::Sender<usize>,
    live: watch::Receiver<Live>,
    history: History,
}

/// A task of a torrent.
struct Task {
    info_hash: InfoHash,
    /// Makes the result from the error if the task panics.
    broken: fn(Result<(), String>) -> Done,
}

impl Task {
    fn new(info_hash: InfoHash, broken: fn(Result<(), String>) -> Done) -> Self {
        Self { info_hash, broken }
    }
}

/// The result of a task.
enum Done {
    Ended(Result<(), String>),
    Moved(Result<(), String>),
    /// The program ends before it was moved: that is continued at the next start.
    Interrupted,
    Renamed(Result<(), String>),
    Removed(Result<(), String>),
}

/// The torrents at work.
pub(crate) struct Owner {
    pub torrents: Torrents,
    state: Arc<StateFolder>,
    engine: Arc<Engine>,
    running: HashMap<InfoHash, Running>,
    tasks: JoinSet<Done>,
    /// Whose tasks these are.
    owners: HashMap<Id, Task>,
    events: mpsc::Sender<(InfoHash, Event)>,
    /// Where completed torrents are reported; `None` if no program is run for them.
    completions: Option<Completions>,
    /// Where the end of a rename is reported, by torrent.
    renames: HashMap<InfoHash, Renamed>,
    /// Reports changes other than in numbers.
    changed: watch::Sender<()>,
    /// Interrupts the copies of content that is moved.
    interrupt: CancellationToken,
    began: Instant,
    /// Which torrents come first when peers are shared out.
    turn: usize,
}

impl Owner {
    pub fn new(
        torrents: Torrents,
        state: Arc<StateFolder>,
        engine: Arc<Engine>,
        events: mpsc::Sender<(InfoHash, Event)>,
    ) -> Self {
        Self {
            torrents,
            state,
            engine,
            running: HashMap::new(),
            tasks: JoinSet::new(),
            owners: HashMap::new(),
            events,
            completions: None,
            renames: HashMap::new(),
            changed: watch::Sender::new(()),
            interrupt: CancellationToken::new(),
            began: Instant::now(),
            turn: 0,
        }
    }

    /// Reports completed torrents, so that a program is run for them.
    pub fn with_completions(mut self, completions: Option<Completions>) -> Self {
        self.completions = completions;
        self
    }

    /// Reports that torrents may have changed, other than in numbers.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn now(&self) -> Now {
        let date = SystemTime::now();
        let unix = date.duration_since(SystemTime::UNIX_EPOCH);
        Now {
            elapsed: self.began.elapsed(),
            unix: unix.map_or(0, |unix| unix.as_secs()),
            week_minute: minute_of_week(date),
        }
    }

    /// Runs the torrents until `stop`, then ends all, and saves them.
    pub async fn run(
        mut self,
        mut requests: mpsc::Receiver<Request>,
        mut events: mpsc::Receiver<(InfoHash, Event)>,
        stop: CancellationToken,
    ) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Why a record was not saved stands in the log.
        let _ = self.carry_out().await;
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(request) = requests.recv() => self.take(request).await,
                Some((info_hash, event)) = events.recv() => {
                    self.on_event(info_hash, event).await;
                    let _ = self.carry_out().await;
                    self.changed.send_replace(());
                }
                Some(done) = self.tasks.join_next_with_id() => {
                    // What a task reported comes before its end.
                    while let Ok((info_hash, event)) = events.try_recv() {
                        self.on_event(info_hash, event).await;
                    }
                    self.on_done(done);
                    let _ = self.carry_out().await;
                    self.changed.send_replace(());
                }
                _ = tick.tick() => {
                    self.count();
                    self.sample();
                    let _ = self.carry_out().await;
                    self.turn = self.turn.wrapping_add(1);
                    self.share_peers();
                }
            }
        }
        self.end(&mut events).await;
    }

    /// Ends all torrents and saves what they have come to. Removals under way are finished; moves, too, unless
    /// content is copied to another file system, which is continued at the next start.
    async fn end(&mut self, events: &mut mpsc::Receiver<(InfoHash, Event)>) {
        self.interrupt.cancel();
        self.count();
        for running in self.running.values() {
            running.stop.cancel();
        }
        loop {
            tokio::select! {
                done = self.tasks.join_next_with_id() => match done {
                    Some(done) => self.on_stopped(done),
                    None => break,
                },
                // Tasks may wait until it is taken.
                Some((info_hash, event)) = events.recv() => self.on_event(info_hash, event).await,
            }
        }
        while let Ok((info_hash, event)) = events.try_recv() {
            self.on_event(info_hash, event).await;
        }
        let now = self.now();
        let saves = self.torrents.flush(now);
        let _ = self.obey(saves).await;
        self.state.unlock();
    }

    async fn take(&mut self, request: Request) {
        match request {
            Request::Look(look) => return look(self),
            Request::Do(command) => {
                let reply = command(self);
                reply(self.carry_out().await);
            }
            Request::Add(addition, reply) => reply(self.add(*addition).await),
        }
        self.changed.send_replace(());
    }

    async fn add(&mut self, addition: Addition) -> Result<(), AddFailure> {
        let info_hash = addition.record.info_hash;
        if let Some(record) = self.torrents.record(info_hash) {
            // Its metainfo stays as it is.
            return Err(AddFailure::Refused(match record.pending {
                Some(Pending::Remove { .. }) => CommandError::Busy(info_hash),
                _ => CommandError::Duplicate(info_hash),
            }));
        }
        if let Some(bytes) = addition.metainfo {
            let kept = self.keep(info_hash, bytes).await;
            kept.map_err(AddFailure::NotSaved)?;
        }
        let added = self.torrents.add(addition.record);
        added.map_err(AddFailure::Refused)?;
        self.carry_out().await.map_err(AddFailure::NotSaved)
    }

    /// Keeps the metainfo of a magnet link. Returns the folder to which the content is fetched.
    async fn resolved(
        &mut self,
        info_hash: InfoHash,
        metainfo: Metainfo,
        bytes: Vec<u8>,
    ) -> Result<PathBuf, String> {
        self.keep(info_hash, bytes).await?;
        let (name, size) = (metainfo.name.clone(), metainfo.pieces.total);
        self.torrents.on_resolved(info_hash, name, size);
        let record = self.torrents.record(info_hash);
        let to = record.and_then(|record| record.settings.destination.clone());
        if let Some(to) = to {
            let look = move || content::is_there(&metainfo, &to);
            let is_there = tokio::task::spawn_blocking(look).await;
            if is_there.map_err(|error| error.to_string())? {
                self.torrents.on_found_at_destination(info_hash);
            }
        }
        let record = self.torrents.record(info_hash);
        let record = record.ok_or_else(|| "it was removed".to_owned())?;
        Ok(record.folder.clone())
    }

    /// Keeps the metainfo of a torrent.
    async fn keep(&self, info_hash: InfoHash, bytes: Vec<u8>) -> Result<(), String> {
        let state = Arc::clone(&self.state);
        blocking(move || {
            let saved = state.save_metainfo(info_hash, &bytes);
            saved.map_err(|error| error.to_string())
        })
        .await
    }

    async fn on_event(&mut self, info_hash: InfoHash, event: Event) {
        // What is verified, as of the event.
        self.count();
        let now = self.now();
        match event {
            Event::Unselected => self.torrents.on_unselected(info_hash),
            Event::Checked { complete } => self.torrents.on_checked(info_hash, complete, now),
            Event::Renamed(renamed) => self.on_renamed(info_hash, renamed),
            Event::Announced => self.torrents.on_announced(info_hash),
            Event::Completed => self.torrents.on_completed(info_hash, now),
            Event::Resolved {
                metainfo,
                bytes,
                kept,
            } => {
                // Its task may have ended meanwhile.
                let _ = kept.send(self.resolved(info_hash, *metainfo, bytes).await);
            }
        }
    }

    /// The torrent of a task that has ended, and what it has come to.
    fn whose(&mut self, done: Result<(Id, Done), JoinError>) -> Option<(InfoHash, Done)> {
        let (id, done) = match done {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error.to_string())),
        };
        let Task { info_hash, broken } = self.owners.remove(&id)?;
        self.running.remove(&info_hash);
        let done = done.unwrap_or_else(|panic| broken(Err(format!("it broke off: {panic}"))));
        Some((info_hash, done))
    }

    fn on_done(&mut self, done: Result<(Id, Done), JoinError>) {
        // The numbers of the last second, while they can still be read.
        self.count();
        let now = self.now();
        let Some((info_hash, done)) = self.whose(done) else {
            return;
        };
        match done {
            Done::Ended(ended) => {
                if let Err(reason) = &ended {
                    tracing::warn!("torrent {info_hash}: {reason}");
                }
                self.torrents.on_ended(info_hash, ended, now);
            }
            Done::Moved(moved) => self.torrents.on_moved(info_hash, moved),
            Done::Interrupted => {}
            Done::Renamed(renamed) => self.on_renamed(info_hash, renamed),
            Done::Removed(removed) => self.torrents.on_removed(info_hash, removed, now),
        }
    }

    /// As [`Self::on_done`], at the end of the program: what was stopped then is no failure.
    fn on_stopped(&mut self, done: Result<(Id, Done), JoinError>) {
        self.count();
        let now = self.now();
        if let Some((info_hash, done)) = self.whose(done) {
            match done {
                Done::Ended(_) | Done::Interrupted => {}
                Done::Moved(moved) => self.torrents.on_moved(info_hash, moved),
                Done::Renamed(renamed) => self.on_renamed(info_hash, renamed),
                Done::Removed(removed) => self.torrents.on_removed(info_hash, removed, now),
            }
        }
    }

    /// Takes over the numbers of all torrents that run.
    fn count(&mut self) {
        let now = self.now();
        for (info_hash, running) in &self.running {
            let live = running.live.borrow();
            if let Some(download) = &live.download {
                let traffic = traffic(&download.borrow());
                self.torrents.on_traffic(*info_hash, traffic, now);
            }
        }
    }

    /// Takes a sample of the rates of all torrents that run.
    fn sample(&mut self) {
        let now = self.began.elapsed();
        for running in self.running.values_mut() {
            let live = running.live.borrow();
            let download = live.download.as_ref();
            let rates = download.map(|download| Rates::of(&download.borrow()));
            running.history.observe(rates.unwrap_or_default(), now);
        }
    }

    /// Does what is to be done now.
    ///
    /// # Errors
    /// Why a record was not saved.
    async fn carry_out(&mut self) -> Result<(), String> {
        let now = self.now();
        let orders = self.torrents.advance(now);
        let any = !orders.is_empty();
        let outcome = self.obey(orders).await;
        if any {
            self.share_peers();
            self.changed.send_replace(());
        }
        outcome
    }

    async fn obey(&mut self, orders: Vec<Order>) -> Result<(), String> {
        let mut outcome = Ok(());
        for order in orders {
            match order {
                Order::Save(info_hash) => {
                    if let Err(error) = self.save(info_hash).await {
                        tracing::error!("{error}");
                        self.torrents.on_unsaved(info_hash, self.now());
                        outcome = outcome.and(Err(error));
                    }
                }
                Order::SaveLimits => {
                    if let Err(error) = self.save_limits().await {
                        tracing::error!("{error}");
                        self.torrents.on_limits_unsaved(self.now());
                        outcome = outcome.and(Err(error));
                    }
                }
                Order::LimitAll => {
                    self.engine.set_limits(self.torrents.rates_in_force());
                    self.engine.set_groups(&self.torrents.all_limits().groups);
                }
                Order::Apply(info_hash) => self.apply(info_hash),
                Order::Reannounce(info_hash) => {
                    if let Some(running) = self.running.get(&info_hash) {
                        running.reannounce.notify_one();
                    }
                }
                Order::Run(info_hash) => self.spawn(info_hash, false),
                Order::Verify(info_hash) => self.spawn(info_hash, true),
                Order::Halt(info_hash) => {
                    if let Some(running) = self.running.get(&info_hash) {
                        running.stop.cancel();
                    }
                }
                Order::Move(info_hash) => self.relocate(info_hash),
                Order::Rename(info_hash) => self.rename(info_hash),
                Order::Remove(info_hash) => self.remove(info_hash),
                Order::Announce(info_hash) => self.announce(info_hash),
            }
        }
        outcome
    }

    async fn save(&self, info_hash: InfoHash) -> Result<(), String> {
        let Some(record) = self.torrents.record(info_hash).cloned() else {
            return Ok(());
        };
        let state = Arc::clone(&self.state);
        blocking(move || state.save(&record).map_err(|error| error.to_string())).await
    }

    async fn save_limits(&self) -> Result<(), String> {
        let (state, limits) = (Arc::clone(&self.state), self.torrents.all_limits().clone());
        blocking(move || {
            state
                .save_limits(&limits)
                .map_err(|error| error.to_string())
        })
        .await
    }

    /// Tells the task of a torrent its settings, and which peers users have named.
    fn apply(&self, info_hash: InfoHash) {
        let record = self.torrents.record(info_hash);
        if let (Some(running), Some(record)) = (self.running.get(&info_hash), record) {
            running.settings.send_replace(record.settings.clone());
            running.named_peers.send_if_modified(|named| {
                let is_new = *named != record.peers;
                named.clone_from(&record.peers);
                is_new
            });
        }
    }

    /// Has the program run for a torrent that is complete.
    fn announce(&mut self, info_hash: InfoHash) {
        let record = self.torrents.record(info_hash).cloned();
        let number = self.torrents.number(info_hash);
        if let (Some(completions), Some(record), Some(number)) = (&self.completions, record, number)
        {
            // At the end of the daemon nobody takes it: it is due at the next start.
            let _ = completions.send(Completed { record, number });
        } else {
            self.torrents.on_announced(info_hash);
        }
    }

    /// Starts the task of a torrent.
    fn spawn(&mut self, info_hash: InfoHash, verifies: bool) {
        let Some(record) = self.torrents.record(info_hash).cloned() else {
            return;
        };
        let (live, shown) = watch::channel(Live::default());
        let (settings, obeyed) = watch::channel(record.settings.clone());
        let (named_peers, named) = watch::channel(record.peers.clone());
        let (windows, read) = watch::channel(Windows::default());
        let reannounce = Arc::new(Notify::new());
        let (rename, renames) = watch::channel(None);
        let (max_peers, most) = watch::channel(0);
        let stop = CancellationToken::new();
        let running = Running {
            stop: stop.clone(),
            settings,
            windows,
            named_peers,
            reannounce: Arc::clone(&reannounce),
            rename,
            max_peers,
            live: shown,
            history: History::default(),
        };
        self.running.insert(info_hash, running);
        let job = Job {
            engine: Arc::clone(&self.engine),
            state: Arc::clone(&self.state),
            record,
            events: self.events.clone(),
            live,
            settings: obeyed,
            windows: read,
            named_peers: named,
            reannounce,
            renames,
            max_peers: most,
            stop,
        };
        let task = self.tasks.spawn(async move {
            Done::Ended(match verifies {
                true => job.verify().await,
                false => job.run().await,
            })
        });
        let owner = Task::new(info_hash, Done::Ended);
        self.owners.insert(task.id(), owner);
    }
}

/// What a download has transferred, and what of its content is verified.
fn traffic(progress: &hawser_torrent::Progress) -> Traffic {
    let is_known = progress.phase != hawser_torrent::Phase::Checking;
    Traffic {
        uploaded: progress.uploads.uploaded_bytes,
        downloaded: progress.fetched_bytes,
        verified: is_known.then_some(progress.verified_bytes),
    }
}

/// Does what may wait for the disk.
async fn blocking(job: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<(), String> {
    let done = tokio::task::spawn_blocking(job).await;
    done.unwrap_or_else(|error| Err(error.to_string()))
}
