//! Where the user's key files are.

use std::path::PathBuf;

use thiserror::Error;

/// There is no folder for the user's keys.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no folder for keys: set HOME or XDG_CONFIG_HOME, or name the files")]
pub struct NoFolder;

/// The folder of the user's key files: `$XDG_CONFIG_HOME/hawser`, or `~/.config/hawser` when the
/// variable is unset or not absolute (XDG Base Directory Specification). It need not exist.
///
/// # Errors
/// [`NoFolder`] when the user has no home folder either.
pub fn folder() -> Result<PathBuf, NoFolder> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    folder_of(config, std::env::home_dir())
}

fn folder_of(config: Option<PathBuf>, home: Option<PathBuf>) -> Result<PathBuf, NoFolder> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = home.filter(absolute).map(|home| home.join(".config"));
    let config = config.filter(absolute).or(home).ok_or(NoFolder)?;
    Ok(config.join("hawser"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_users_folder_of_settings() {
        let folder = |config: &str, home: &str| {
            let some = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
            folder_of(some(config), some(home))
        };
        assert_eq!(folder("/c", "/h"), Ok("/c/hawser".into()));
        assert_eq!(folder("", "/h"), Ok("/h/.config/hawser".into()));
        assert_eq!(folder("c", "/h"), Ok("/h/.config/hawser".into()));
        assert_eq!(folder("c", ""), Err(NoFolder));
        assert_eq!(folder("", "h"), Err(NoFolder));
    }
}
