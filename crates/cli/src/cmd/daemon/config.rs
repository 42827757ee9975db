//! Where the configuration and the state of the daemon are.

use std::path::{Path, PathBuf};

use hawser_service::Config;

use crate::cmd::folders;
use crate::failure::Failure;

/// The folder of the state, in that of the host or the user.
const STATE: &str = "daemon";
/// The name of the configuration, in the folder of configuration.
const FILE: &str = "daemon.toml";
/// The name that the configuration of `hawser serve` had there.
const FORMER: &str = "serve.toml";

/// The configuration: of the file that is named, which must be there, else of the usual one, if it is there.
///
/// # Errors
/// Wrong use, if it cannot be used.
pub fn read(named: Option<&Path>) -> Result<Config, Failure> {
    let file = match named {
        Some(file) => return Config::read(file).map_err(Failure::usage),
        None => usual()?,
    };
    let former = file.with_file_name(FORMER);
    if !file.exists() && former.exists() {
        let (former, file) = (former.display(), file.display());
        return Err(Failure::usage(format!(
            "{former} is the configuration of the former `hawser serve`: rename it to {file}, where \
             `hawser daemon` reads it"
        )));
    }
    Config::read_if_any(&file).map_err(Failure::usage)
}

/// The usual file of the configuration: in the folder of configuration, or where there is no home in that of the state.
///
/// # Errors
/// Wrong use, if there is neither.
pub fn usual() -> Result<PathBuf, Failure> {
    let folder = folders::config().or_else(|_| folders::state(STATE));
    Ok(folder?.join(FILE))
}

/// The folder of the state: the one that is named, that of the configuration, or the usual one.
///
/// # Errors
/// Wrong use, if none is named and there is no usual one.
pub fn state(named: Option<&Path>, config: &Config) -> Result<PathBuf, Failure> {
    match named.or(config.state.as_deref()) {
        Some(state) => Ok(state.to_owned()),
        None => folders::state(STATE),
    }
}

/// The folder of the state of the daemon of this host, for those that command it.
///
/// # Errors
/// Wrong use, if none is named and there is no usual one, or the usual configuration cannot be used.
pub fn state_to_find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(state) = named {
        return Ok(state.to_owned());
    }
    let config = Config::read_if_any(&usual()?).map_err(Failure::usage)?;
    state(None, &config)
}
