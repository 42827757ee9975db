//! A store of TRCs and certificate chains.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use hawser_address::IsdAsn;

use crate::certificate::Validity;
use crate::chain::Chain;
use crate::trc::{Trc, TrcId};
use crate::trc_verify::TrcVerifyError;

/// An error of loading keys, certificates or TRCs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content of a file is not what its name says.
    #[error(
        "{path} cannot be used: {reason}; restore it from a backup, or fetch it again from whom it is",
        path = path.display()
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The defect of the content.
        reason: String,
    },
    /// No key in the folder has a certificate.
    #[error(
        "{folder} has no key (*.key) with a certificate chain (*.pem) of its own: restore the folder from a backup, or have the AS's certificate issued again",
        folder = .0.display()
    )]
    NoSigner(PathBuf),
    /// The root of a signer's certificate is in no TRC.
    #[error(
        "no TRC of its ISD has the root of the certificate of {isd_as} in {folder}: put the newest (*.trc) into the folder certs, or restore the certificate from a backup",
        folder = folder.display()
    )]
    NoTrc {
        /// The AS.
        isd_as: IsdAsn,
        /// The folder of its certificate.
        folder: PathBuf,
    },
}

/// A query for the certificate chains that can verify a signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainQuery {
    /// The AS.
    pub isd_as: IsdAsn,
    /// The identifier of the key.
    pub subject_key_id: Vec<u8>,
    /// The first Unix second at which the chains must be valid.
    pub since: u64,
    /// The last Unix second at which the chains must be valid.
    pub until: u64,
}

/// Trusted TRCs, and certificate chains.
///
/// TRCs loaded from a folder are trusted, as in scionproto: their signatures are only checked to find
/// files that are damaged. TRCs added later must be updates of those ([`Store::add_trc`]). Chains may come from any source; only those with their
/// root in a trusted TRC are kept.
#[derive(Debug, Clone, Default)]
pub struct Store {
    trcs: BTreeMap<TrcId, Trc>,
    chains: BTreeMap<(IsdAsn, Vec<u8>), Vec<Rooted>>,
}

#[derive(Debug, Clone)]
struct Rooted {
    chain: Chain,
    /// The TRCs that contain the root of the chain.
    trcs: Vec<TrcId>,
}

impl Store {
    /// Loads the TRCs (`*.trc`) of a folder such as `certs` of an AS, and trusts them.
    ///
    /// # Errors
    /// When the folder or a file in it cannot be read, or a file is not a TRC or is damaged.
    pub fn load(certs: &Path) -> Result<Self, LoadError> {
        let read = read_named(certs, "trc", Trc::parse)?;
        let store = Self {
            trcs: read
                .iter()
                .map(|(_, trc)| (trc.id(), trc.clone()))
                .collect(),
            chains: BTreeMap::new(),
        };
        for (path, trc) in read {
            if let Some(reason) = store.damage(&trc) {
                return Err(LoadError::File { path, reason });
            }
        }
        Ok(store)
    }

    /// What shows that a TRC was changed since it was made, if anything does.
    fn damage(&self, trc: &Trc) -> Option<String> {
        if !trc.signed.is_of_content() {
            return Some("it is damaged: its signatures are of another content".to_owned());
        }
        let id = trc.id();
        let before = (id.serial.checked_sub(1)).and_then(|serial| self.trc(TrcId { serial, ..id }));
        let verified = match before {
            _ if id.base == id.serial => trc.verify_base(),
            Some(before) => trc.verify_update(before),
            // Whose signatures it has is in the TRC before.
            None => Ok(()),
        };
        verified
            .err()
            .map(|error| format!("it is damaged: {error}"))
    }

    /// The TRC with an identifier.
    pub fn trc(&self, id: TrcId) -> Option<&Trc> {
        self.trcs.get(&id)
    }

    /// The newest TRC of an ISD.
    pub fn newest(&self, isd: u16) -> Option<&Trc> {
        self.trcs.values().rfind(|trc| trc.id().isd == isd)
    }

    /// Adds `trc`, which must be an update of the newest TRC of its ISD.
    ///
    /// # Errors
    /// When it is not the next update, or its signatures are not sufficient.
    pub fn add_trc(&mut self, trc: Trc) -> Result<(), TrcVerifyError> {
        let before = self.newest(trc.id().isd).ok_or(TrcVerifyError::Order {
            id: trc.id(),
            before: "no TRC".to_owned(),
        })?;
        trc.verify_update(before)?;
        for rooted in self.chains.values_mut().flatten() {
            if rooted.chain.is_rooted_in(&trc) {
                rooted.trcs.push(trc.id());
            }
        }
        self.trcs.insert(trc.id(), trc);
        Ok(())
    }

    /// Adds a chain whose root is in a TRC of the store. Returns whether it was added.
    pub fn add_chain(&mut self, chain: Chain) -> bool {
        let key = (chain.isd_as(), chain.r#as().subject_key_id().to_vec());
        let mut known = self.chains.get(&key).into_iter().flatten();
        if known.any(|rooted| rooted.chain == chain) {
            return true;
        }
        let trcs = self.trcs.values().filter(|trc| chain.is_rooted_in(trc));
        let trcs: Vec<_> = trcs.map(Trc::id).collect();
        let kept = !trcs.is_empty();
        if kept {
            let known = self.chains.entry(key).or_default();
            known.push(Rooted { chain, trcs });
        }
        kept
    }

    /// The chains that match a query, and are valid and rooted in a valid TRC at `now` (Unix
    /// seconds).
    pub(crate) fn active_chains(
        &self,
        query: &ChainQuery,
        now: u64,
    ) -> impl Iterator<Item = &Chain> {
        let active = self.active(query.isd_as.isd().to_u16(), now);
        let key = (query.isd_as, query.subject_key_id.clone());
        let wanted = Validity {
            not_before: query.since,
            not_after: query.until,
        };
        let known = self.chains.get(&key).into_iter().flatten();
        known
            .filter(move |rooted| {
                let validity = rooted.chain.validity();
                validity.covers(&wanted)
                    && validity.contains(now)
                    && rooted.trcs.iter().any(|id| active.contains(id))
            })
            .map(|rooted| &rooted.chain)
    }

    /// The TRCs of an ISD that are active at `now`: the newest, if it is valid, and during its
    /// grace period also the previous one.
    fn active(&self, isd: u16, now: u64) -> Vec<TrcId> {
        let Some(newest) = self.newest(isd).filter(|trc| trc.validity().contains(now)) else {
            return Vec::new();
        };
        let mut active = vec![newest.id()];
        let age = Duration::from_secs(now - newest.validity().not_before);
        let before = TrcId {
            serial: newest.id().serial.saturating_sub(1),
            ..newest.id()
        };
        let before = self.trc(before).filter(|trc| trc.validity().contains(now));
        if let Some(before) = before.filter(|_| age <= newest.content().grace_period) {
            active.push(before.id());
        }
        active
    }
}

/// Reads and parses the files of a folder with an extension, in the order of their names.
pub(crate) fn read<T, E: ToString>(
    folder: &Path,
    extension: &str,
    parse: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<Vec<T>, LoadError> {
    let named = read_named(folder, extension, parse)?;
    Ok(named.into_iter().map(|(_, parsed)| parsed).collect())
}

/// As [`read`], with the path of each file.
fn read_named<T, E: ToString>(
    folder: &Path,
    extension: &str,
    parse: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<Vec<(PathBuf, T)>, LoadError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| LoadError::Io { path, source }
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        if path.extension().is_some_and(|e| e == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    let parse = |path: PathBuf| {
        let bytes = fs::read(&path).map_err(failed(&path))?;
        match parse(&bytes) {
            Ok(parsed) => Ok((path, parsed)),
            Err(reason) => Err(LoadError::File {
                path,
                reason: match bytes.is_empty() {
                    true => "it is empty".to_owned(),
                    false => reason.to_string(),
                },
            }),
        }
    };
    paths.into_iter().map(parse).collect()
}
