//! Where configuration and state are when no folder is named: for root in the host's folders, for others
//! in those of the XDG base directory specification.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::failure::Failure;

/// The host's configuration.
const HOST_CONFIG: &str = "/etc/hawser";
/// The host's state.
const HOST_STATE: &str = "/var/lib/hawser";

/// The folder of configuration: hawser in $XDG_CONFIG_HOME or ~/.config; for root, unless
/// $XDG_CONFIG_HOME is set, that of the host.
pub fn config() -> Result<PathBuf, Failure> {
    // As `hawser_keys::folder` reads it.
    let config = std::env::var_os("XDG_CONFIG_HOME");
    let has_folder = config.is_some_and(|folder| Path::new(&folder).is_absolute());
    match geteuid().is_root() && !has_folder {
        true => Ok(HOST_CONFIG.into()),
        false => Ok(hawser_keys::folder()?),
    }
}

/// The folder of a kind of state: hawser/KIND in $XDG_DATA_HOME or ~/.local/share; for root that of the
/// host.
pub fn state(kind: &str) -> Result<PathBuf, Failure> {
    if geteuid().is_root() {
        return Ok(Path::new(HOST_STATE).join(kind));
    }
    let folder = users(
        std::env::var_os("XDG_DATA_HOME"),
        ".local/share",
        std::env::var_os("HOME"),
    );
    let none = || Failure::usage("no folder for the state: set HOME, or name one with --state");
    Ok(folder.ok_or_else(none)?.join(kind))
}

/// The user's folder of what --KIND fetches: hawser/KIND in $XDG_STATE_HOME or ~/.local/state.
pub fn fetched(kind: &str) -> Result<PathBuf, Failure> {
    let none = || {
        Failure::usage(format_args!(
            "no folder for what --{kind} fetches: set HOME"
        ))
    };
    kept(kind).ok_or_else(none)
}

/// The user's folder of what commands keep from one run to the next: hawser/KIND in $XDG_STATE_HOME or
/// ~/.local/state; `None` where neither is known.
pub fn kept(kind: &str) -> Option<PathBuf> {
    let folder = users(
        std::env::var_os("XDG_STATE_HOME"),
        ".local/state",
        std::env::var_os("HOME"),
    );
    Some(folder?.join(kind))
}

/// hawser's folder in the one that a variable names, if that is absolute, else in `usual` at home.
fn users(named: Option<OsString>, usual: &str, home: Option<OsString>) -> Option<PathBuf> {
    let named = named.map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(PathBuf::from(home?).join(usual)))?;
    Some(base.join("hawser"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_folder_counts_if_it_is_absolute() {
        let users = |named: Option<&str>, home: Option<&str>| {
            users(named.map(Into::into), ".local/share", home.map(Into::into))
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(users(Some("/data"), Some("/home/a")), path("/data/hawser"));
        let usual = path("/home/a/.local/share/hawser");
        assert_eq!(users(Some("data"), Some("/home/a")), usual);
        assert_eq!(users(None, Some("/home/a")), usual);
        assert_eq!(users(None, None), None);
    }
}
