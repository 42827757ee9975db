//! What the daemon does without being asked each time.

use std::path::{Path, PathBuf};

use hawser_client::Engine;

use crate::cmd::headings;
use crate::failure::{Doing, Failure};

#[derive(clap::Args)]
pub struct AutomationArgs {
    /// Add the torrents of .torrent and .magnet files that are put into this folder
    ///
    /// A file that was added is renamed to .added, one that is no torrent to .invalid. One that is being
    /// written waits until it is whole.
    #[arg(long = "watch-dir", value_name = "DIR", help_heading = headings::AUTOMATION, hide_short_help = true)]
    pub watch: Option<PathBuf>,
    /// Run this program for each torrent whose download is complete
    ///
    /// Without a shell, with the variables TR_TORRENT_NAME, TR_TORRENT_DIR, TR_TORRENT_HASH and others of
    /// Transmission's scripts. Four run at once, each for an hour at most.
    #[arg(long, value_name = "PROGRAM", help_heading = headings::AUTOMATION, hide_short_help = true)]
    pub on_complete: Option<PathBuf>,
}

impl AutomationArgs {
    /// Has the torrents of an engine obey these flags.
    pub fn apply(&self, engine: Engine) -> Result<Engine, Failure> {
        match absolute(self.on_complete.as_deref())? {
            Some(program) => Ok(engine.with_on_complete(&program)?),
            None => Ok(engine),
        }
    }
}

/// The absolute path of what a flag names.
pub fn absolute(path: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    let absolute = |path: &Path| std::path::absolute(path).doing(path.display());
    path.map(absolute).transpose()
}
