//! What the daemon does without being asked each time.

use std::path::{Path, PathBuf};

use crate::cmd::headings;
use crate::failure::{Doing, Failure};

#[derive(clap::Args)]
pub struct AutomationArgs {
    /// Add the torrents of .torrent and .magnet files that are put into this folder
    ///
    /// A file that was added is renamed to .added, one that is no torrent to .invalid. One that is being
    /// written waits until it is whole.
    #[arg(long, value_name = "DIR", help_heading = headings::AUTOMATION, hide_short_help = true)]
    pub watch: Option<PathBuf>,
}

/// The absolute path of what a flag names.
pub fn absolute(path: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    let absolute = |path: &Path| std::path::absolute(path).doing(path.display());
    path.map(absolute).transpose()
}
