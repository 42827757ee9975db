//! Reading and changing the state.
//!
//! Locks. `store` is held by a change from its beginning until the state is replaced, so that there is one
//! at a time; the file is read and written under it. `deployments`, `usage` and `state` are taken under it
//! or alone, one after the other and never two at once, and only while a value in memory is copied,
//! replaced or updated: readers of these do not wait for the disk. `revision` is raised after all locks are
//! released, but for a state that was found after a failure, where `store` is still held. Nothing is
//! awaited under any.
//!
//! `deployments` and `usage` begin empty with the process. A machine fills at most one entry of each:
//! reasons of failures are cut, and links of others are left out.

mod as_links;
mod ases;
mod edit_link;
mod hosts;
mod links;
mod moved;
mod mtus;
mod names;
mod users;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_file::create_private_folder;
use hawser_topology::IsdAsn;
use tokio::sync::watch;

pub use self::as_links::NewAsLink;
pub use self::ases::{NewAttachmentPoint, NewUserAs, Removed};
pub use self::edit_link::LinkEdit;
pub use self::links::{NewCoreLink, NewLink};
use crate::access::{Action, Actor, Denied, allows};
use crate::change::{Change, ChangeKind, ChangePage};
use crate::error::{ChangeError, OpenError};
use crate::host::Deployment;
use crate::link::{LinkId, LinkUsage};
use crate::state::State;
use crate::store::{self, Store};

/// The folder beside the state that has the keys of all ASes.
pub(crate) const KEYS: &str = "ases";
/// Most changes on one page.
const PAGE: usize = 500;

/// Reads and changes the state. A handle: its clones share everything.
///
/// Changes block until they are on disk: async code calls them by `spawn_blocking`.
#[derive(Debug, Clone)]
pub struct Coordinator(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Mutex<Store>,
    state: RwLock<Arc<State>>,
    /// Grows with each change of the state or of a deployment.
    revision: watch::Sender<u64>,
    deployments: Mutex<BTreeMap<IsdAsn, Deployment>>,
    usage: Mutex<BTreeMap<IsdAsn, (u64, Vec<LinkUsage>)>>,
}

impl Coordinator {
    /// Opens the state in `folder`; makes folder (mode 0700) and file where they do not exist.
    ///
    /// # Errors
    /// [`OpenError`] when it cannot be used.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        create_private_folder(folder).map_err(|error| OpenError::Folder {
            path: folder.to_owned(),
            reason: match error.kind() {
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                    "it is a file, or below one".to_owned()
                }
                _ => error.to_string(),
            },
        })?;
        let (store, state) = Store::open(&store::file(folder), &folder.join(KEYS))?;
        Ok(Self::new(store, state))
    }

    /// On a file that is there.
    #[cfg(test)]
    pub(crate) fn on_file(file: store::DatabaseFile) -> Result<Self, OpenError> {
        let (store, state) = Store::on_file(file)?;
        Ok(Self::new(store, state))
    }

    fn new(store: Store, state: State) -> Self {
        Self(Arc::new(Inner {
            store: Mutex::new(store),
            state: RwLock::new(Arc::new(state)),
            revision: watch::Sender::new(1),
            deployments: Mutex::default(),
            usage: Mutex::default(),
        }))
    }

    /// The state now.
    #[must_use]
    pub fn state(&self) -> Arc<State> {
        let state = self.0.state.read();
        Arc::clone(&state.unwrap_or_else(PoisonError::into_inner))
    }

    /// A number that grows with each change of the state, of a deployed version, or of why none is.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.revision.subscribe()
    }

    /// At most `count` changes that the actor may see, the newest first, with numbers below `before`;
    /// those of one link if one is given.
    ///
    /// # Errors
    /// [`ChangeError`] when they cannot be read.
    pub fn changes(
        &self,
        actor: &Actor,
        before: Option<u64>,
        count: usize,
        link: Option<LinkId>,
    ) -> Result<ChangePage, ChangeError> {
        allows(actor, Action::Read)?;
        let all = allows(actor, Action::ReadUsers).is_ok();
        let keep = |change: &Change| all || !change.kind.is_about_users();
        let page = self
            .store()
            .changes(before, count.clamp(1, PAGE), link, keep);
        page.map_err(ChangeError::Store)
    }

    /// Makes a change: `edit` changes a copy of the state and says what changed. The state is
    /// replaced by the copy when that is on disk.
    fn change<T>(
        &self,
        actor: &Actor,
        edit: impl FnOnce(&Actor, &mut State, &mut Vec<ChangeKind>) -> Result<T, ChangeError>,
    ) -> Result<T, ChangeError> {
        let mut store = self.store();
        self.recover(&mut store)?;
        let old = self.state();
        // The actor may have been removed, or got another role, since the request was read.
        let actor = match actor.user {
            None => actor.clone(),
            Some(id) => Actor::of(old.users.get(&id).ok_or(Denied::Removed)?),
        };
        let mut new = (*old).clone();
        let mut kinds = Vec::new();
        let value = edit(&actor, &mut new, &mut kinds)?;
        new.update_versions(&old);
        let at = now();
        let changes = kinds.into_iter().map(|kind| {
            let number = new.next.change;
            new.next.change += 1;
            Change {
                number,
                at,
                who: actor.name.clone(),
                kind,
            }
        });
        let changes: Vec<Change> = changes.collect();
        if let Err(reason) = store.save(&old, &new, &changes) {
            // The state can be read meanwhile; if the file cannot be opened yet, the next change tries again.
            let _ = self.recover(&mut store);
            return Err(ChangeError::Store(reason));
        }
        self.replace_state(&old, new);
        drop(store);
        self.notify();
        Ok(value)
    }

    /// Opens the store again if it failed before.
    fn recover(&self, store: &mut Store) -> Result<(), ChangeError> {
        if let Some(found) = store.recover().map_err(ChangeError::Store)? {
            let old = self.state();
            let is_other = found.next != old.next;
            self.replace_state(&old, found);
            if is_other {
                self.notify();
            }
        }
        Ok(())
    }

    fn replace_state(&self, old: &State, new: State) {
        self.forget_machines(old, &new);
        let state = self.0.state.write();
        *state.unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
    }

    fn notify(&self) {
        self.0.revision.send_modify(|revision| *revision += 1);
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        let store = self.0.store.lock();
        store.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Now, in milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
pub(crate) mod tests;
