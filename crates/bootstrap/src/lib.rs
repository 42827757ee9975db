//! What a host needs to join its AS, fetched from the AS's bootstrap server (scionproto's design
//! "Automated end host bootstrapping"): `topology.json` and the TRCs.
//!
//! [`join`] keeps them in a folder, with which a host works without a daemon. The first TRC of an ISD
//! is trusted as it is; later ones must be its updates, so that another server, or somebody in
//! between, cannot replace it.

mod answers;
mod client;
mod error;
mod folder;
mod server;
mod updates;

use std::path::{Path, PathBuf};
use std::time::Duration;

use hawser_trust::{Trc, TrcId};
use tokio::time::timeout;

pub use self::error::JoinError;
use self::folder::Folder;
pub use self::server::{PORT, Server};

/// Longest time until all answers are there.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest `topology.json`: 10,000 interfaces take about 2 MiB.
const MAX_TOPOLOGY: usize = 4 << 20;
/// Largest list of TRCs.
const MAX_LIST: usize = 64 << 10;
/// Largest TRC; they have some kilobytes.
const MAX_TRC: usize = 256 << 10;

/// A host that has what it needs.
#[derive(Debug)]
pub struct Joined {
    /// The folder with `topology.json`, and the TRCs in `certs`.
    pub folder: PathBuf,
    /// The TRCs that are trusted from now on although nothing proves them.
    pub trusted: Vec<TrcId>,
}

/// Fetches what `server` has, and keeps it in a folder of the AS in `state`.
///
/// # Errors
/// [`JoinError`] when the server gives no usable answer, or a TRC is no update of the one that is
/// trusted: then nothing in the folder has changed. When the folder cannot be written.
pub async fn join(server: &Server, state: &Path) -> Result<Joined, JoinError> {
    let fetched = timeout(JOIN_TIMEOUT, fetch(server, state));
    let late = || client::timed_out(server.url("/"), JOIN_TIMEOUT);
    let fetched = fetched.await.unwrap_or_else(|_| Err(late()))?;
    fetched.folder.write(&fetched.topology, &fetched.new)?;
    Ok(Joined {
        folder: fetched.folder.path().to_owned(),
        trusted: fetched.trusted,
    })
}

/// What has been fetched and checked.
struct Fetched {
    folder: Folder,
    topology: Vec<u8>,
    new: Vec<Trc>,
    trusted: Vec<TrcId>,
}

async fn fetch(server: &Server, state: &Path) -> Result<Fetched, JoinError> {
    let body = client::get(server, "/topology", MAX_TOPOLOGY).await?;
    let invalid = |path: &str, reason| JoinError::Invalid {
        url: server.url(path),
        reason,
    };
    let isd_as = answers::topology(&body).map_err(|reason| invalid("/topology", reason))?;
    let folder = Folder::open(state, isd_as)?;
    let list = client::get(server, "/trcs", MAX_LIST).await?;
    let offered = answers::trcs(&list).map_err(|reason| invalid("/trcs", reason))?;
    let newest = |isd| folder.trusted().newest(isd).map(Trc::id);
    let wanted = updates::wanted(&offered, newest);
    let wanted = wanted.map_err(|reason| JoinError::Trust {
        url: server.url("/trcs"),
        folder: folder.path().to_owned(),
        reason,
    })?;
    let mut new: Vec<Trc> = Vec::new();
    let mut trusted = Vec::new();
    for id in wanted {
        let path = format!("/trcs/isd{}-b{}-s{}/blob", id.isd, id.base, id.serial);
        let blob = client::get(server, &path, MAX_TRC).await?;
        let trc = answers::trc(&blob, id).map_err(|reason| invalid(&path, reason))?;
        let before = new.iter().rfind(|trc| trc.id().isd == id.isd);
        let before = before.or_else(|| folder.trusted().newest(id.isd));
        let checked = updates::check(&trc, before).map_err(|reason| JoinError::Trust {
            url: server.url(&path),
            folder: folder.path().to_owned(),
            reason,
        })?;
        match checked {
            updates::Checked::Known => continue,
            updates::Checked::First => trusted.push(id),
            updates::Checked::Update => {}
        }
        new.push(trc);
    }
    let isd = isd_as.isd().to_u16();
    if folder.trusted().newest(isd).is_none() && !trusted.iter().any(|id| id.isd == isd) {
        let reason = format!("it has no TRC of ISD {isd}, which {isd_as} is in");
        return Err(invalid("/trcs", reason));
    }
    if let Some(reason) = folder::damage(&new)? {
        return Err(invalid("/trcs", reason));
    }
    Ok(Fetched {
        folder,
        topology: body,
        new,
        trusted,
    })
}

#[cfg(test)]
mod tests;
