//! What `-b` and `-p` keep for later calls.

use std::path::PathBuf;
use std::{fs, io};

use hawser_topology::write_json;
use serde::{Deserialize, Serialize};

use crate::cmd::folders;
use crate::failure::{Doing, Failure};

/// The name of the file in which `-b` and `-p` are kept.
const FILE: &str = "limit.json";

/// What is kept from one call to the next.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The limit of all other traffic in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<u64>,
    /// The file of links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<PathBuf>,
}

impl Settings {
    /// Reads them; if nothing was kept, there are none.
    pub fn read() -> Result<Self, Failure> {
        let path = folders::config()?.join(FILE);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| {
                let path = path.display();
                Failure::job(format_args!(
                    "{path} is damaged ({error}): remove it, and give `-b` and `-p` again"
                ))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).doing(format_args!("reading {}", path.display())),
        }
    }

    /// Keeps them.
    pub fn write(&self) -> Result<(), Failure> {
        let folder = folders::config()?;
        fs::create_dir_all(&folder).doing(format_args!("making {}", folder.display()))?;
        Ok(write_json(&folder.join(FILE), self)?)
    }
}
