//! Where the processes of a shim find each other.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::failure::{Doing, Failure};

/// The folder of sockets.
const FOLDER: &str = "/run/hawser/shim";
/// Longest name of a shim.
const LONGEST: usize = 64;

/// The name of a shim: letters, digits and dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShimName(String);

impl FromStr for ShimName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        match (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_valid) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "a name has 1 to {LONGEST} letters, digits and dashes"
            )),
        }
    }
}

impl ShimName {
    /// The socket of the shim's holder.
    pub fn holder(&self) -> PathBuf {
        self.socket("holder")
    }

    /// The socket of the shim's carrier.
    pub fn carrier(&self) -> PathBuf {
        self.socket("carrier")
    }

    fn socket(&self, of: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("{}.{of}", self.0))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Makes the folder of sockets.
pub fn prepare() -> Result<(), Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(FOLDER);
    match made {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(Failure::job(format!(
            "cannot make {FOLDER}: {error}; the shim needs root"
        ))),
        made => made.doing(format!("making {FOLDER}")),
    }
}
