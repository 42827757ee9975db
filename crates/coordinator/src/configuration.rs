//! What the machines of ASes are given: the configuration of each as an archive, and the segments
//! of the network.
//!
//! All keys are made here, in the folder `ases` beside the state, and so are the segments
//! ([`Publication`]): a machine gets the keys of its own AS only.

mod bundle;
pub(crate) mod network;
mod pki;
mod secret;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hawser_bundle::{Bundle, Coordinator as Follow};
use hawser_control::{ControlError, Publication, announced};
use hawser_http::TokenHash;
use hawser_topology::{FileError, IsdAsn, as_folder};
use hawser_trust::{IssueError, LoadError};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use self::pki::Pki;
use self::secret::Secrets;
use crate::access::{Action, Actor, allows};
use crate::coordinator::{Coordinator, KEYS};
use crate::error::ChangeError;
use crate::host::HostKind;
use crate::state::State;

/// Lifetime of segments: as long as SCION allows, so that ASes get on for half a day and more
/// without their coordinator.
const SEGMENT_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// How machines reach the coordinator.
#[derive(Debug, Clone)]
pub struct Access {
    /// The URL that they use, such as `https://coordinator.example:8040`.
    pub url: String,
    /// The certificates in PEM that they verify it by; `None` for those that their systems trust.
    pub ca: Option<String>,
}

/// Bytes and their entity tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The tag, as HTTP has it.
    pub tag: String,
}

/// A configuration cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// There is no such AS.
    #[error("there is no AS {0}")]
    Unknown(IsdAsn),
    /// An ISD has no attachment point to issue certificates.
    #[error("ISD {0} has no attachment point: add one, whose AS issues the ISD's certificates")]
    NoAttachmentPoint(u16),
    /// The secret of the AS's machine is no longer this one.
    #[error("the secret of the machine of {0} was replaced")]
    Replaced(IsdAsn),
    /// Only limits of this machine's links are set.
    #[error("the links of this machine have no AS here")]
    NoAs,
    /// The archive would be larger than one can be.
    #[error("the archive of {isd_as} would have {length} bytes, more than can be read")]
    TooLarge {
        /// The AS.
        isd_as: IsdAsn,
        /// Its length.
        length: usize,
    },
    /// A key, certificate or TRC cannot be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// Keys, certificates or TRCs cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The segments cannot be made.
    #[error(transparent)]
    Segments(#[from] ControlError),
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The secret of a machine cannot be stored, or the actor may not have it.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// Makes the configurations of the ASes of a [`Coordinator`]. A handle: its clones share
/// everything. All calls may block.
#[derive(Debug, Clone)]
pub struct Configurations(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    coordinator: Coordinator,
    access: Access,
    secrets: Secrets,
    made: Mutex<Made>,
    /// Grows when configurations change although the state does not: with TRCs and certificates.
    epoch: watch::Sender<u64>,
}

#[derive(Debug)]
struct Made {
    pki: Pki,
    archives: BTreeMap<IsdAsn, (Key, Arc<Tagged>)>,
    segments: Option<(Publication, Arc<Tagged>)>,
    /// The state that the PKI was last completed for.
    prepared: Option<Arc<State>>,
    /// The state that the segments are of.
    published: Option<Arc<State>>,
}

/// What an archive is made from: the version of the configuration, the epoch of the PKI, and the
/// secret of the machine.
type Key = (u64, u64, TokenHash);

impl Configurations {
    /// The configurations of the ASes of `coordinator`, whose keys are in `folder`, the one that
    /// the coordinator was opened with.
    ///
    /// # Errors
    /// [`ConfigurationError`] when the folder cannot be used.
    pub fn open(
        coordinator: Coordinator,
        folder: &Path,
        access: Access,
    ) -> Result<Self, ConfigurationError> {
        Ok(Self(Arc::new(Inner {
            coordinator,
            access,
            secrets: Secrets::open(folder)?,
            made: Mutex::new(Made {
                pki: Pki::open(folder.join(KEYS))?,
                archives: BTreeMap::new(),
                segments: None,
                prepared: None,
                published: None,
            }),
            epoch: watch::Sender::new(0),
        })))
    }

    /// The coordinator.
    #[must_use]
    pub fn coordinator(&self) -> &Coordinator {
        &self.0.coordinator
    }

    /// Changes when configurations may have changed although the state has not.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.epoch.subscribe()
    }

    /// The name of an AS's machine in requests.
    #[must_use]
    pub fn host_name(isd_as: IsdAsn) -> String {
        as_folder(isd_as)
    }

    /// The AS of a machine's name.
    #[must_use]
    pub fn host_of(name: &str) -> Option<IsdAsn> {
        let isd_as: IsdAsn = name.replace('_', ":").parse().ok()?;
        (as_folder(isd_as) == name).then_some(isd_as)
    }

    /// The archive with which the machine of an AS joins. It contains the secret of the machine,
    /// which stays the same until the trust in the machine ends: by another owner, the removal of the
    /// AS or of its owner, or [`Coordinator::rotate_secret`].
    ///
    /// # Errors
    /// [`ConfigurationError`] when there is no such AS, or the actor may not have its keys.
    pub fn archive_of(
        &self,
        actor: &Actor,
        isd_as: IsdAsn,
    ) -> Result<Arc<Tagged>, ConfigurationError> {
        let Inner {
            coordinator,
            secrets,
            ..
        } = &*self.0;
        let state = coordinator.state();
        let host = state.host(isd_as);
        let host = host.ok_or(ConfigurationError::Unknown(isd_as))?;
        let action = match state.user_ases.get(&isd_as) {
            Some(one) => Action::FetchArchive { owner: one.owner },
            None => Action::Administer,
        };
        allows(actor, action).map_err(ChangeError::from)?;
        let secret = secrets.of(isd_as, host.trusted_since);
        let hash = TokenHash::of(&secret);
        coordinator.set_secret(actor, isd_as, hash, host.trusted_since)?;
        self.archive(isd_as, &secret).map_err(|error| match error {
            // The actor is not the machine, and may ask again.
            ConfigurationError::Replaced(_) => ChangeError::Conflict(error.to_string()).into(),
            error => error,
        })
    }

    /// The archive for the machine of an AS whose secret is `secret`; `None` while nothing is
    /// configured there, because it has no link.
    ///
    /// # Errors
    /// [`ConfigurationError`] when there is no such AS, or a key cannot be made.
    pub fn for_host(
        &self,
        isd_as: IsdAsn,
        secret: &str,
    ) -> Result<Option<Arc<Tagged>>, ConfigurationError> {
        let state = self.0.coordinator.state();
        match state.user_ases.contains_key(&isd_as) && !network::has_link(&state, isd_as) {
            true => Ok(None),
            false => self.archive(isd_as, secret).map(Some),
        }
    }

    fn archive(&self, isd_as: IsdAsn, secret: &str) -> Result<Arc<Tagged>, ConfigurationError> {
        if isd_as.is_wildcard() {
            return Err(ConfigurationError::NoAs);
        }
        let mut made = self.made();
        // After the lock is held: versions must not go back.
        let state = self.0.coordinator.state();
        let host = state.host(isd_as);
        let host = host.ok_or(ConfigurationError::Unknown(isd_as))?;
        // The trust may have ended since the request was let in: the keys are those of the new owner.
        if host.secret != Some(TokenHash::of(secret)) {
            return Err(ConfigurationError::Replaced(isd_as));
        }
        self.prepare(&mut made, &state)?;
        let key = (host.version, *self.0.epoch.borrow(), TokenHash::of(secret));
        if let Some((of, archive)) = made.archives.get(&isd_as)
            && *of == key
        {
            return Ok(Arc::clone(archive));
        }
        let bundle = self.bundle(&made, &state, isd_as, secret)?;
        let archive = Tagged {
            bytes: bundle.pack(),
            tag: bundle.tag(),
        };
        let length = archive.bytes.len();
        if length as u64 > hawser_bundle::LARGEST_ARCHIVE {
            return Err(ConfigurationError::TooLarge { isd_as, length });
        }
        let archive = Arc::new(archive);
        made.archives.insert(isd_as, (key, Arc::clone(&archive)));
        Ok(archive)
    }

    fn bundle(
        &self,
        made: &Made,
        state: &State,
        isd_as: IsdAsn,
        secret: &str,
    ) -> Result<Bundle, ConfigurationError> {
        let Access { url, ca } = &self.0.access;
        let follow = Follow {
            url: url.clone(),
            host: Self::host_name(isd_as),
            token: secret.to_owned(),
            ca: ca.clone(),
        };
        let kind = match state.attachment_points.contains_key(&isd_as) {
            true => HostKind::AttachmentPoint,
            false => HostKind::UserAs,
        };
        let mut bundle = bundle::configuration(state, isd_as, kind, follow)?;
        made.pki.add_files(isd_as, &mut bundle)?;
        Ok(bundle)
    }

    /// The segments of the network, as [`Publication`] in JSON.
    ///
    /// # Errors
    /// [`ConfigurationError`] when a key cannot be made or read.
    pub fn segments(&self) -> Result<Arc<Tagged>, ConfigurationError> {
        let mut made = self.made();
        let state = self.0.coordinator.state();
        self.prepare(&mut made, &state)?;
        let now = now();
        let current = made.segments.as_ref().filter(|(p, _)| !p.is_due(now));
        let is_of = |of: &Option<Arc<State>>| of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &state));
        // Many ask after each change.
        if let Some((_, segments)) = current.filter(|_| is_of(&made.published)) {
            return Ok(Arc::clone(segments));
        }
        let network = network::of(&state);
        if let Some((_, segments)) = current.filter(|(p, _)| *p.network() == network) {
            let segments = Arc::clone(segments);
            made.published = Some(state);
            return Ok(segments);
        }
        let folder = made.pki.folder();
        let services = |isd_as| announced(&bundle::topology(&state, isd_as, false));
        let publication = Publication::make(network, folder, services, SEGMENT_LIFETIME, now)?;
        let bytes = publication.to_json();
        let hash: String = Sha256::digest(&bytes)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let tag = format!("\"{hash}\"");
        let segments = Arc::new(Tagged { bytes, tag });
        made.segments = Some((publication, Arc::clone(&segments)));
        made.published = Some(state);
        Ok(segments)
    }

    /// Gives all ASes what they lack of keys and certificates.
    fn prepare(&self, made: &mut Made, state: &Arc<State>) -> Result<(), ConfigurationError> {
        let now = now();
        let is_of = made
            .prepared
            .as_ref()
            .is_some_and(|of| Arc::ptr_eq(of, state));
        if is_of && !made.pki.is_due(now) {
            return Ok(());
        }
        made.prepared = None;
        if made.pki.ensure(state, now)? {
            made.segments = None;
            self.0.epoch.send_modify(|epoch| *epoch += 1);
        }
        made.prepared = Some(Arc::clone(state));
        Ok(())
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        // A panic in the middle leaves files that the next call completes.
        self.0.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn at<E: Into<std::io::Error>>(path: &Path) -> impl Fn(E) -> ConfigurationError {
    let path: PathBuf = path.to_owned();
    move |error| FileError::at(&path)(error).into()
}

#[cfg(test)]
mod tests;
