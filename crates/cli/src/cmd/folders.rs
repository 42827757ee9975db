//! Where files of configuration are.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::failure::Failure;

/// The folder of this host's configuration.
const OF_HOST: &str = "/etc/hawser";

/// The folder of configuration: hawser in $XDG_CONFIG_HOME or ~/.config; for root, unless
/// $XDG_CONFIG_HOME is set, that of the host.
pub fn folder() -> Result<PathBuf, Failure> {
    // As `hawser_keys::folder` reads it.
    let config = std::env::var_os("XDG_CONFIG_HOME");
    let has_folder = config.is_some_and(|folder| Path::new(&folder).is_absolute());
    match geteuid().is_root() && !has_folder {
        true => Ok(OF_HOST.into()),
        false => Ok(hawser_keys::folder()?),
    }
}
