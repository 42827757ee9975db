//! Where the processes of a shim find each other.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;

use hawser_file::create_private_folder;
use hawser_kernel::rpc::RpcError;
use hawser_shim::holder;

use crate::failure::{Doing, Failure};

/// The folder of sockets of root.
const FOLDER: &str = "/run/hawser/shim";
/// Longest name of a shim.
const MAX_NAME_LENGTH: usize = 64;

/// The name of a shim: letters, digits and dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShimName(String);

impl FromStr for ShimName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        match (1..=MAX_NAME_LENGTH).contains(&text.len()) && text.bytes().all(is_valid) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "a name has 1 to {MAX_NAME_LENGTH} letters, digits and dashes"
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
        folder().join(format!("{}.{of}", self.0))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The folder of sockets: in a lab of an ordinary user, in that user's `$XDG_RUNTIME_DIR`.
fn folder() -> PathBuf {
    let ids = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let runtime = env::var_os("XDG_RUNTIME_DIR").filter(|_| !is_root_outside(&ids));
    match runtime {
        Some(runtime) => PathBuf::from(runtime).join("hawser/shim"),
        None => PathBuf::from(FOLDER),
    }
}

/// Whether root is root outside of this user namespace too, by its `uid_map` (user_namespaces(7)).
fn is_root_outside(ids: &str) -> bool {
    let mut lines = ids.lines().map(|line| line.split_ascii_whitespace());
    lines.any(|mut fields| (fields.next(), fields.next()) == (Some("0"), Some("0")))
}

/// Makes the folder of sockets.
pub fn prepare() -> Result<(), Failure> {
    let folder = folder();
    let shown = folder.display();
    match create_private_folder(&folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(Failure::job(format!(
            "cannot make {shown}: {error}; the shim needs root"
        ))),
        made => made.doing(format!("making {shown}")),
    }
}

/// Why a shim with this name cannot be asked: it is not up, or belongs to root.
pub fn not_up(name: &ShimName, error: RpcError) -> Failure {
    match error {
        RpcError::Connect(error) if error.source.kind() == ErrorKind::PermissionDenied => {
            not_allowed(name)
        }
        RpcError::Connect(_) => {
            let rejected = match holder::is_guarded() {
                true => {
                    "; until then, or until `hawser shim down`, connections to what it captured are \
                     rejected (--fail closed)"
                }
                false => "",
            };
            Failure::job(format!(
                "no shim {} is up on this host: `hawser shim up` brings it up{rejected}",
                name.as_str()
            ))
        }
        error => error.into(),
    }
}

/// The error of a user whose shim it is not.
pub fn not_allowed(name: &ShimName) -> Failure {
    let name = name.as_str();
    Failure::job(format!("not allowed to reach the shim {name}: run as root"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_user_namespace_is_told_apart() {
        assert!(is_root_outside("         0          0 4294967295\n"));
        assert!(!is_root_outside("         0      65534          1\n"));
        assert!(!is_root_outside(""));
    }
}
