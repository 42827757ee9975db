//! The swarms in a file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hawser_tracker::{SwarmOptions, Swarms};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::error::ServeError;
use super::shared::Shared;

/// Time between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// A file that has the swarms.
pub(super) struct State {
    path: PathBuf,
    /// Most bytes that are read.
    limit: u64,
}

impl State {
    pub fn new(path: PathBuf, options: &SwarmOptions) -> Self {
        // As `Swarms::snapshot` says, and some for its ends.
        let limit = 1024 + options.peers as u64 * 80 + options.torrents as u64 * 24;
        Self { path, limit }
    }

    /// Reads the swarms, if there is a file.
    pub fn read(&self, swarms: &mut Swarms, now: std::time::Instant) -> Result<(), ServeError> {
        let failed = |error| ServeError::Read {
            path: self.path.clone(),
            error,
        };
        let (bytes, written) = match read(&self.path, self.limit) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        // A clock that was set back tells nothing.
        let elapsed = SystemTime::now()
            .duration_since(written)
            .unwrap_or_default();
        if let Err(error) = swarms.restore(&bytes, elapsed, now) {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".damaged");
            tracing::warn!(
                "{} is put aside as {}: {error}",
                self.path.display(),
                Path::new(&aside).display()
            );
            fs::rename(&self.path, &aside).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes the swarms.
    pub async fn write(&self, swarms: &Shared) -> Result<(), ServeError> {
        let (path, swarms) = (self.path.clone(), swarms.clone());
        let now = Instant::now().into_std();
        let written = tokio::task::spawn_blocking(move || {
            let bytes = swarms.lock().snapshot(now);
            hawser_file::write(&path, &bytes, hawser_file::PRIVATE)
        });
        let written = written.await.map_err(io::Error::other);
        written
            .and_then(|written| written)
            .map_err(|error| ServeError::Write {
                path: self.path.clone(),
                error,
            })
    }
}

fn read(path: &Path, limit: u64) -> io::Result<(Vec<u8>, SystemTime)> {
    let file = File::open(path)?;
    let written = file.metadata()?.modified()?;
    let mut bytes = Vec::new();
    // One that is longer is cut, and so damaged.
    file.take(limit).read_to_end(&mut bytes)?;
    Ok((bytes, written))
}

/// Forgets peers that announced no more, and writes the swarms, every minute. Never ends.
pub(super) async fn keep(state: Option<&State>, swarms: &Shared) {
    let mut ticks = interval_at(Instant::now() + WRITE_INTERVAL, WRITE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        swarms.lock().advance(Instant::now().into_std());
        if let Some(state) = state
            && let Err(error) = state.write(swarms).await
        {
            tracing::warn!("{error}");
        }
    }
}
