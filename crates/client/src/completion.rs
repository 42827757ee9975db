//! A program that is run for each torrent whose download is complete, as `script-torrent-done` of
//! Transmission.
//!
//! It is run without a shell and without arguments; the environment says what is complete, in the variables
//! of Transmission's, so that scripts for it work unchanged (`docs/Scripts.md` of Transmission 4). It has an
//! hour, and at most four run at once; further torrents wait, also across an end of the daemon. Its failure
//! is logged, and changes nothing of the torrent. Programs that run when the daemon ends are left alone.

mod environment;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hawser_torrent::InfoHash;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::environment::environment;
use crate::event::Event;
use crate::record::{Origin, Record};
use crate::state::StateFolder;

/// Most programs that run at once.
const MAX_RUNNING: usize = 4;
/// Longest time of a program. One that unpacks or copies much may take long; one that hangs must end.
const MAX_TIME: Duration = Duration::from_secs(60 * 60);

/// Checks that a file can be run.
///
/// # Errors
/// Why it cannot.
pub(crate) fn check(program: &Path) -> io::Result<()> {
    let found = program.metadata()?;
    let is_executable = found.permissions().mode() & 0o111 != 0;
    match (found.is_file(), is_executable) {
        (true, true) => Ok(()),
        (true, false) => Err(io::Error::other("it is not executable")),
        (false, _) => Err(io::Error::other("it is not a file")),
    }
}

/// A torrent whose download is complete.
#[derive(Debug, Clone)]
pub(crate) struct Completed {
    pub record: Record,
    /// Its number among the torrents of the daemon.
    pub number: u64,
}

/// Where completed torrents are reported. There is one report for each torrent at a time, so the number of
/// torrents bounds those that wait.
pub(crate) type Completions = mpsc::UnboundedSender<Completed>;

/// Runs `program` for each torrent that is reported, until `stop`. That it was begun is reported as
/// [`Event::Announced`].
pub(crate) fn start(
    program: Arc<Path>,
    state: Arc<StateFolder>,
    events: mpsc::Sender<(InfoHash, Event)>,
    stop: CancellationToken,
) -> Completions {
    let (completions, completed) = mpsc::unbounded_channel();
    let hook = Hook {
        program,
        state,
        events,
    };
    tokio::spawn(hook.run(completed, stop));
    completions
}

/// What is run, and for whom.
struct Hook {
    program: Arc<Path>,
    state: Arc<StateFolder>,
    events: mpsc::Sender<(InfoHash, Event)>,
}

impl Hook {
    async fn run(self, mut completed: mpsc::UnboundedReceiver<Completed>, stop: CancellationToken) {
        let room = Arc::new(Semaphore::new(MAX_RUNNING));
        let mut running = JoinSet::new();
        loop {
            // What waits here is still recorded as not announced, for the next start.
            let begun = tokio::select! {
                begun = async {
                    let place = Arc::clone(&room).acquire_owned().await.ok()?;
                    Some((place, completed.recv().await?))
                } => begun,
                () = stop.cancelled() => break,
            };
            let Some((place, completed)) = begun else {
                break;
            };
            while running.try_join_next().is_some() {}
            let info_hash = completed.record.info_hash;
            match self.spawn(completed).await {
                Ok(child) => drop(running.spawn(async move {
                    watch(child, info_hash, MAX_TIME).await;
                    drop(place);
                })),
                Err(error) => tracing::warn!(
                    "torrent {info_hash}: cannot run {:?}, which --on-complete names: {error}",
                    self.program
                ),
            }
            // Its owner ends after this.
            let _ = self.events.send((info_hash, Event::Announced)).await;
        }
        running.detach_all();
    }

    async fn spawn(&self, completed: Completed) -> io::Result<Child> {
        let Completed { record, number } = completed;
        let state = Arc::clone(&self.state);
        let variables = tokio::task::spawn_blocking(move || {
            // Without its metainfo the torrent has failed, which is reported there.
            let metainfo = match record.origin {
                Origin::Metainfo => state.metainfo_of(&record).ok(),
                Origin::Magnet(_) => None,
            };
            environment(&record, number, metainfo.as_ref())
        });
        let variables = variables.await.map_err(io::Error::other)?;
        let mut command = Command::new(&*self.program);
        command
            .envs(variables)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // A group of its own: a key pressed to end the daemon must not end it, and its children end
            // with it when its time is over.
            .process_group(0)
            .kill_on_drop(false);
        command.spawn()
    }
}

/// Waits until a program ends, and ends it when its time is over.
async fn watch(mut child: Child, info_hash: InfoHash, time: Duration) {
    let group = child.id().and_then(|id| i32::try_from(id).ok());
    let ended = match timeout(time, child.wait()).await {
        Ok(ended) => ended,
        Err(_) => {
            let minutes = time.as_secs() / 60;
            tracing::warn!(
                "torrent {info_hash}: the program of --on-complete is ended, because it has run for {minutes} \
                 minutes"
            );
            if let Some(group) = group.and_then(Pid::from_raw) {
                // It may have ended meanwhile.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait().await;
            return;
        }
    };
    match ended {
        Ok(status) if status.success() => {
            tracing::debug!("torrent {info_hash}: the program of --on-complete has ended")
        }
        Ok(status) => {
            tracing::warn!("torrent {info_hash}: the program of --on-complete has failed: {status}")
        }
        Err(error) => tracing::warn!("torrent {info_hash}: --on-complete: {error}"),
    }
}

#[cfg(test)]
mod tests;
