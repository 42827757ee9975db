//! The handle of the torrents at work.

mod adding;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hawser_http_client::HttpClient;
use hawser_torrent::{FileOptions, FilesProgress, InfoHash, Metainfo, Network, recorded_files};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::completion;
use crate::engine::Engine;
use crate::error::ClientError;
use crate::history::Sample;
use crate::metainfo::Metainfos;
use crate::network::NetworkSettings;
use crate::owner::{Owner, Request};
use crate::port_mapping::PortMapping;
use crate::record::{Origin, Record};
use crate::renames::{self, Rename};
use crate::state::StateFolder;
use crate::stream::{FileStream, StreamError};
use crate::torrents::{Bounds, CommandError, Torrents, Transferred};
use crate::view::View;

pub use self::adding::{AddedTorrent, NewTorrent, Source};

/// Requests that may wait for the owner.
const MAX_REQUESTS: usize = 64;
/// Reports of torrents that may wait for the owner.
const MAX_EVENTS: usize = 256;
/// Most `.torrent` files that are fetched at once: each may have 16 MiB. Others wait.
const MAX_FETCHES: usize = 4;

/// The torrents of a host at work. Clones are handles of the same.
#[derive(Clone)]
pub struct Client {
    requests: mpsc::Sender<Request>,
    changes: watch::Receiver<()>,
    state: Arc<StateFolder>,
    metainfos: Arc<Mutex<Metainfos>>,
    /// The folder for downloads while users have set no other.
    download_dir: Arc<Path>,
    on_complete: Option<Arc<Path>>,
    network: Network,
    storage: FileOptions,
    port_mapping: Option<watch::Receiver<PortMapping>>,
    http: HttpClient,
    /// Fetches of `.torrent` files that may be under way.
    fetches: Arc<Semaphore>,
    began: Instant,
}

impl Client {
    /// Runs the torrents of `state`, whose records these are, until `stop`; the task ends when all are
    /// stopped and saved. Torrents are downloaded to `download_dir`, an absolute path, unless users have set
    /// another folder, for all or for one.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        engine: Engine,
        state: StateFolder,
        records: Vec<Record>,
        bounds: Bounds,
        download_dir: &Path,
        stop: CancellationToken,
    ) -> (Self, JoinHandle<()>) {
        let state = Arc::new(state);
        let (requests, asked) = mpsc::channel(MAX_REQUESTS);
        let (events, happened) = mpsc::channel(MAX_EVENTS);
        engine.allow_ways(&bounds.all.network);
        let torrents = Torrents::new(bounds, records);
        let (on_complete, storage) = (engine.on_complete.clone(), engine.storage);
        let (network, port_mapping) = (engine.network.clone(), engine.port_mapping.clone());
        let completions = on_complete.clone().map(|program| {
            completion::start(program, Arc::clone(&state), events.clone(), stop.clone())
        });
        let owner = Owner::new(torrents, Arc::clone(&state), Arc::new(engine), events)
            .with_completions(completions);
        let changes = owner.changes();
        let task = tokio::spawn(owner.run(asked, happened, stop));
        let client = Self {
            requests,
            changes,
            state,
            metainfos: Arc::default(),
            download_dir: download_dir.into(),
            on_complete,
            network,
            storage,
            port_mapping,
            http: HttpClient::default(),
            fetches: Arc::new(Semaphore::new(MAX_FETCHES)),
            began: Instant::now(),
        };
        (client, task)
    }

    /// The folder for torrents that are added without one.
    ///
    /// # Errors
    /// [`ClientError::Stopping`].
    pub async fn download_dir(&self) -> Result<PathBuf, ClientError> {
        Ok(self.download_dir_of(&self.bounds().await?))
    }

    /// The folder for torrents that are added without one, while these bounds hold.
    pub(crate) fn download_dir_of(&self, bounds: &Bounds) -> PathBuf {
        let set = bounds.all.download_dir.clone();
        set.unwrap_or_else(|| self.download_dir.to_path_buf())
    }

    /// The program that is run for each torrent whose download is complete; `None` for none.
    pub fn on_complete(&self) -> Option<&Path> {
        self.on_complete.as_deref()
    }

    /// What there is of the mapping of the port of IP peers; `None` if the gateway is not asked for one.
    pub fn port_mapping(&self) -> Option<PortMapping> {
        let state = self.port_mapping.as_ref()?;
        Some(state.borrow().clone())
    }

    /// The sockets through which peers are reached, and how.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Changes limits of all torrents, and how peers are reached, at once: all of it, or nothing. It is on disk when
    /// this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_all(
        &self,
        network: NetworkSettings,
        change: impl FnOnce(&mut Torrents) -> Result<(), CommandError> + Send + 'static,
    ) -> Result<(), ClientError> {
        let changed = self.call(move |owner| owner.change_all(network, change));
        changed.await?.map_err(Into::into)
    }

    /// How the files of torrents are put on disk.
    pub fn storage(&self) -> FileOptions {
        self.storage
    }

    /// Reports that torrents may have changed, other than in numbers.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.clone()
    }

    /// Changes the torrents. What changes is on disk when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Torrents) -> Result<T, CommandError> + Send + 'static,
    ) -> Result<T, ClientError> {
        self.call(|owner| change(&mut owner.torrents))
            .await?
            .map_err(Into::into)
    }

    /// Gives a file or folder of a torrent another name, and waits until that is done. A torrent that
    /// runs keeps running.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::NotRenamed`], if the system refuses. Nothing is changed then.
    pub async fn rename(&self, info_hash: InfoHash, rename: Rename) -> Result<(), ClientError> {
        let known = self.check_rename(info_hash, &rename).await?;
        if rename.to() == rename.from() {
            return Ok(());
        }
        let (reply, replied) = oneshot::channel();
        let begin = move |owner: &mut Owner| owner.begin_rename(info_hash, rename, &known, reply);
        self.call(begin).await??;
        let renamed = replied.await.map_err(|_| ClientError::Stopping)?;
        renamed.map_err(ClientError::NotRenamed)
    }

    /// Checks that a file or folder of a torrent can get another name, but for what the system says. Returns the names
    /// that the torrent has got.
    ///
    /// # Errors
    /// [`ClientError`].
    pub(crate) async fn check_rename(
        &self,
        info_hash: InfoHash,
        rename: &Rename,
    ) -> Result<Vec<Rename>, ClientError> {
        let view = self.view(info_hash).await?;
        let metainfo = self.metainfo(&view).await?.ok_or_else(|| {
            let text = format!("the metadata of {info_hash} is not known yet: start it first");
            ClientError::Invalid(text)
        })?;
        let known = view.record.settings.renames.clone();
        match renames::fault(&metainfo, &known, rename) {
            Some(fault) => Err(ClientError::Invalid(fault)),
            None => Ok(known),
        }
    }

    /// Removes a torrent, with its content if `content`, and waits until that is done. What was begun is
    /// finished also if this is not waited for, or the daemon ends meanwhile.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::NotRemoved`], if its content could not be deleted.
    pub async fn remove(&self, info_hash: InfoHash, content: bool) -> Result<(), ClientError> {
        let mut changes = self.changes();
        self.change(move |all| all.remove(info_hash, content))
            .await?;
        loop {
            changes.borrow_and_update();
            match self.view(info_hash).await {
                Err(ClientError::Refused(CommandError::Unknown(_))) => return Ok(()),
                Err(error) => return Err(error),
                Ok(view) if view.record.pending.is_none() => {
                    let reason = view.error().unwrap_or("it was added again");
                    return Err(ClientError::NotRemoved(reason.to_owned()));
                }
                Ok(_) => {}
            }
            changes.changed().await.map_err(|_| ClientError::Stopping)?;
        }
    }

    /// The torrents, in the order of the queue.
    ///
    /// # Errors
    /// [`ClientError::Stopping`].
    pub async fn views(&self) -> Result<Vec<View>, ClientError> {
        self.look(Owner::views).await
    }

    /// How many torrents run at once, and when seeding ends.
    ///
    /// # Errors
    /// [`ClientError::Stopping`].
    pub async fn bounds(&self) -> Result<Bounds, ClientError> {
        self.look(|owner| owner.torrents.bounds()).await
    }

    /// The numbers of the torrents that were removed within this time, the latest thousand.
    ///
    /// # Errors
    /// [`ClientError::Stopping`].
    pub async fn removed_within(&self, time: Duration) -> Result<Vec<u64>, ClientError> {
        self.look(move |owner| owner.removed_within(time)).await
    }

    /// What all torrents have transferred since the start.
    ///
    /// # Errors
    /// [`ClientError::Stopping`].
    pub async fn transferred(&self) -> Result<Transferred, ClientError> {
        self.look(|owner| owner.torrents.transferred()).await
    }

    /// A torrent.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`ClientError::Stopping`].
    pub async fn view(&self, info_hash: InfoHash) -> Result<View, ClientError> {
        let view = self.look(move |owner| owner.view(info_hash)).await?;
        view.ok_or_else(|| CommandError::Unknown(info_hash).into())
    }

    /// A file of a torrent, given by its index in the metainfo, to be read also while it is fetched: what is
    /// about to be read is fetched first.
    ///
    /// # Errors
    /// [`StreamError`].
    pub async fn file(&self, info_hash: InfoHash, index: usize) -> Result<FileStream, StreamError> {
        let view = self.view(info_hash).await?;
        let metainfo = self.metainfo(&view).await?;
        let metainfo = metainfo.ok_or(StreamError::NoMetadata)?;
        let windows = self.call(move |owner| owner.windows(info_hash)).await?;
        FileStream::new(&view, &metainfo, index, windows)
    }

    /// The rates of a torrent in its present run, of the last five minutes, from the oldest on: one sample a
    /// second, each with its age.
    ///
    /// # Errors
    /// [`CommandError::Unknown`] or [`ClientError::Stopping`].
    pub async fn history(&self, info_hash: InfoHash) -> Result<Vec<Sample>, ClientError> {
        let history = self.call(move |owner| owner.history(info_hash)).await?;
        history.map_err(Into::into)
    }

    /// A torrent, once it is complete, was stopped, or has failed.
    ///
    /// # Errors
    /// [`CommandError::Unknown`], also if it is removed meanwhile, or [`ClientError::Stopping`].
    pub async fn settled(&self, info_hash: InfoHash) -> Result<View, ClientError> {
        let mut changes = self.changes();
        loop {
            changes.borrow_and_update();
            let view = self.view(info_hash).await?;
            if view.is_settled() {
                return Ok(view);
            }
            changes.changed().await.map_err(|_| ClientError::Stopping)?;
        }
    }

    /// The metainfo of a torrent; `None` while it is not known.
    ///
    /// # Errors
    /// [`StateError`], if it cannot be read.
    pub async fn metainfo(&self, view: &View) -> Result<Option<Arc<Metainfo>>, ClientError> {
        if view.record.origin != Origin::Metainfo {
            return Ok(None);
        }
        let (state, record) = (Arc::clone(&self.state), view.record.clone());
        let renames = &view.record.settings.renames;
        let kept = self.metainfos().find(record.info_hash, renames);
        if kept.is_some() {
            return Ok(kept);
        }
        let read = tokio::task::spawn_blocking(move || state.metainfo_of(&record)).await;
        let read = Arc::new(read.map_err(|_| ClientError::Stopping)??);
        self.metainfos().insert(Arc::clone(&read), renames);
        Ok(Some(read))
    }

    /// What of the files of a torrent is verified, or was when it last ran; `None` if that is not known.
    pub async fn files(&self, view: &View, metainfo: &Arc<Metainfo>) -> Option<FilesProgress> {
        let files = view.files();
        if files.is_some() {
            return files;
        }
        let record = self.state.verified_path(view.record.info_hash);
        let metainfo = Arc::clone(metainfo);
        let read = tokio::task::spawn_blocking(move || recorded_files(&metainfo, &record)).await;
        read.ok().flatten()
    }

    fn metainfos(&self) -> MutexGuard<'_, Metainfos> {
        self.metainfos
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the metainfo of a torrent is kept.
    pub fn metainfo_path(&self, info_hash: InfoHash) -> PathBuf {
        self.state.metainfo_path(info_hash)
    }

    /// The time for which the torrents are at work.
    pub(crate) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// The folder of the state.
    pub(crate) fn state_folder(&self) -> &Path {
        self.state.folder()
    }

    async fn ask(&self, request: Request) -> Result<(), ClientError> {
        let asked = self.requests.send(request).await;
        asked.map_err(|_| ClientError::Stopping)
    }

    /// Reads something of the torrents.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Owner) -> T + Send + 'static,
    ) -> Result<T, ClientError> {
        let (reply, replied) = oneshot::channel();
        // The caller may have gone.
        let look = Box::new(move |owner: &Owner| drop(reply.send(look(owner))));
        self.ask(Request::Look(look)).await?;
        replied.await.map_err(|_| ClientError::Stopping)
    }

    /// Has the owner do something.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Owner) -> T + Send + 'static,
    ) -> Result<T, ClientError> {
        let (reply, replied) = oneshot::channel();
        let command = Box::new(move |owner: &mut Owner| {
            let value = call(owner);
            let reply: crate::owner::Reply = Box::new(move |saved: Result<(), String>| {
                // The caller may have gone.
                let _ = reply.send(saved.map(|()| value));
            });
            reply
        });
        self.ask(Request::Do(command)).await?;
        let outcome = replied.await.map_err(|_| ClientError::Stopping)?;
        outcome.map_err(ClientError::NotSaved)
    }
}

#[cfg(test)]
mod tests;
