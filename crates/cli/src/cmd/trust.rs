//! Which other hosts are trusted: those that may connect here, and those that are connected to.

use hawser_keys::{Allowed, Known, PeerKey};

use super::network::ListenArgs;
use crate::failure::Failure;

/// Where a command serves other hosts, and which.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// A host that may connect, by its key as `hawser key` prints it
    ///
    /// May be given several times. Without it those may connect whose keys are in
    /// hawser/allowed_keys of the user's configuration folder.
    #[arg(long, value_name = "KEY")]
    pub allow: Vec<PeerKey>,
    /// Let every host connect that can reach this one
    #[arg(long, conflicts_with = "allow")]
    pub allow_any: bool,
    #[command(flatten)]
    pub listen: ListenArgs,
}

impl ServeArgs {
    /// The keys of hosts that may connect; `None` for any.
    ///
    /// # Errors
    /// When the file of keys is needed, and exists, and cannot be used.
    pub fn allowed(&self) -> Result<Option<Allowed>, Failure> {
        if self.allow_any {
            return Ok(None);
        }
        let allowed = Allowed::new(self.allow.clone());
        Ok(Some(match self.allow.is_empty() {
            true => allowed.with_file_if_any(hawser_keys::folder()?.join(Allowed::FILE))?,
            false => allowed,
        }))
    }
}

/// Which servers are trusted.
#[derive(clap::Args)]
pub struct TrustArgs {
    /// The key of the server, as it prints it
    ///
    /// May be given several times. Without it the keys in hawser/known_hosts of the user's
    /// configuration folder count.
    #[arg(long, value_name = "KEY")]
    pub server_key: Vec<PeerKey>,
    /// Trust whatever server answers
    #[arg(long, conflicts_with = "server_key")]
    pub any_server: bool,
}

impl TrustArgs {
    /// The keys of servers; `None` for any.
    ///
    /// # Errors
    /// When the user has no folder of configuration.
    pub fn known(&self) -> Result<Option<Known>, Failure> {
        if self.any_server {
            return Ok(None);
        }
        let known = Known::new(hawser_keys::folder()?.join(Known::FILE));
        Ok(Some(known.with_keys(self.server_key.iter().copied())))
    }
}
