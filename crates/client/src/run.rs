//! The torrents of a daemon from its files, until they are stopped.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::addresses::PeerAddresses;
use crate::alternative::AlternativeChanges;
use crate::client::Client;
use crate::engine::Engine;
use crate::error::RunError;
use crate::http::{Callers, Daemon};
use crate::network::NetworkSettings;
use crate::record::Record;
use crate::settings::{IncompleteChange, QueueChanges, RateChanges};
use crate::state::{Damaged, StateFolder};
use crate::torrents::Bounds;
use crate::watch_folder;

/// What the torrents of a daemon are to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of their state.
    pub state: PathBuf,
    /// The folder of downloads while users have set no other, an absolute path.
    pub default_dir: PathBuf,
    /// What changes of the folder of downloads, which the state may have: an absolute path.
    pub download_dir: Option<PathBuf>,
    /// What changes of the folder for unfinished downloads, which the state has: an absolute path.
    pub incomplete: IncompleteChange,
    /// The folder from which torrents are added, an absolute path; `None` for none.
    pub watch: Option<PathBuf>,
    /// How many torrents are verified at once. The limits of all torrents in it are those of the state, not
    /// these.
    pub bounds: Bounds,
    /// What changes of how many torrents run at once, and of when seeding ends, which the state has.
    pub queue: QueueChanges,
    /// What changes of the limits of the rates of all torrents, which the state has.
    pub rates: RateChanges,
    /// What changes of the limits of rates that hold in place of these at times.
    pub alternative: AlternativeChanges,
    /// What changes of how peers are reached, which the state has.
    pub network: NetworkSettings,
}

/// The torrents of a daemon whose files are read, before they run.
pub struct Prepared {
    options: Options,
    state: StateFolder,
    records: Vec<Record>,
}

impl Prepared {
    /// Reads the files. Also returns the damaged ones, which were set aside.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn open(mut options: Options) -> Result<(Self, Vec<Damaged>), RunError> {
        if let Some(folder) = &options.watch {
            let read = std::fs::read_dir(folder);
            read.map_err(|source| RunError::Watch {
                folder: folder.clone(),
                source,
            })?;
        }
        let (state, records, mut damaged) = StateFolder::open(&options.state)?;
        let (mut limits, wrong) = state.limits()?;
        damaged.extend(wrong);
        options.rates.apply(&mut limits.rates);
        limits.download_dir = options.download_dir.take().or(limits.download_dir);
        options.incomplete.clone().apply(&mut limits.incomplete);
        options.queue.apply(&mut limits.queue);
        options.alternative.apply(&mut limits.alternative);
        options.network.apply(&mut limits.network);
        options.bounds.all = limits;
        let prepared = Self {
            options,
            state,
            records,
        };
        Ok((prepared, damaged))
    }

    /// How many torrents there are.
    pub fn torrents(&self) -> usize {
        self.records.len()
    }

    /// How peers are to be reached, as the options and the state say.
    pub fn network(&self) -> NetworkSettings {
        self.options.bounds.all.network
    }

    /// Runs the torrents, for `callers` to command.
    ///
    /// # Errors
    /// When the system has no random numbers.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        self,
        engine: Engine,
        peers: PeerAddresses,
        callers: Arc<dyn Callers>,
    ) -> Result<Running, &'static str> {
        let (ends, asked) = (CancellationToken::new(), CancellationToken::new());
        let Options {
            default_dir,
            watch,
            bounds,
            ..
        } = self.options;
        let (client, task) = Client::start(
            engine,
            self.state,
            self.records,
            bounds,
            &default_dir,
            ends.clone(),
        );
        if let Some(folder) = watch {
            // It ends with the torrents.
            tokio::spawn(watch_folder::watch(folder, client.clone(), ends.clone()));
        }
        let daemon = Daemon::for_callers(client, peers, callers, asked.clone())?;
        Ok(Running {
            daemon,
            task,
            ends,
            asked,
        })
    }
}

/// The torrents of a daemon at work. Those of a value that is dropped run until the program ends.
pub struct Running {
    daemon: Daemon,
    task: JoinHandle<()>,
    ends: CancellationToken,
    asked: CancellationToken,
}

impl Running {
    /// The torrents as they are served.
    pub fn daemon(&self) -> &Daemon {
        &self.daemon
    }

    /// Waits until a request asks for the end of the daemon.
    pub fn asked_to_end(&self) -> impl Future<Output = ()> + use<> {
        self.asked.clone().cancelled_owned()
    }

    /// Waits until the torrents have ended by themselves.
    pub async fn ended(&mut self) {
        // A panic is an end as well.
        let _ = (&mut self.task).await;
    }

    /// Ends all torrents and saves them. Requests are answered meanwhile.
    pub async fn stop(self) {
        self.ends.cancel();
        if !self.task.is_finished() {
            // A panic is an end as well.
            let _ = self.task.await;
        }
    }
}
