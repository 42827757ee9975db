//! Known TRCs and certificate chains.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use sciparse::identifier::isd_asn::IsdAsn;

use crate::chain::Chain;
use crate::query::ChainQuery;
use crate::trc::{Trc, TrcId};
use crate::trc_verify::TrcVerifyError;

/// Keys, certificates or TRCs cannot be loaded.
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
    /// A file does not have the content that its name promises.
    #[error("{path} cannot be used: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// No key has a certificate.
    #[error("{folder} has no key (*.key) with a certificate chain (*.pem)", folder = folder.display())]
    NoSigner {
        /// The folder.
        folder: PathBuf,
    },
    /// No TRC has the root of a signer's certificate.
    #[error(
        "no TRC of its ISD has the root of the certificate of {isd_as}: put the newest (*.trc) into the folder certs"
    )]
    NoTrc {
        /// The signer.
        isd_as: IsdAsn,
    },
}

/// TRCs that are trusted, and certificate chains.
///
/// TRCs of a folder are trusted as they are, as by scionproto: putting them there means to trust them. Later ones must be updates of those ([`Store::add_trc`]). Chains may come from anywhere;
/// only those with their root in a trusted TRC are kept.
#[derive(Debug, Clone, Default)]
pub struct Store {
    trcs: BTreeMap<TrcId, Trc>,
    chains: BTreeMap<(IsdAsn, Vec<u8>), Vec<Rooted>>,
}

#[derive(Debug, Clone)]
struct Rooted {
    chain: Chain,
    /// The TRCs that have its root.
    trcs: Vec<TrcId>,
}

impl Store {
    /// Reads the TRCs (`*.trc`) of a folder such as `certs` of an AS, and trusts them.
    ///
    /// # Errors
    /// When the folder or a file in it cannot be read, or a file is not a TRC.
    pub fn load(certs: &Path) -> Result<Self, LoadError> {
        let trcs = read(certs, "trc", Trc::parse)?;
        Ok(Self {
            trcs: trcs.into_iter().map(|trc| (trc.id(), trc)).collect(),
            chains: BTreeMap::new(),
        })
    }

    /// The TRC with an identifier.
    pub fn trc(&self, id: TrcId) -> Option<&Trc> {
        self.trcs.get(&id)
    }

    /// The newest TRC of an ISD.
    pub fn newest(&self, isd: u16) -> Option<&Trc> {
        let first = TrcId {
            isd,
            base: 0,
            serial: 0,
        };
        let last = TrcId {
            isd,
            base: u64::MAX,
            serial: u64::MAX,
        };
        self.trcs
            .range(first..=last)
            .next_back()
            .map(|(_, trc)| trc)
    }

    /// Adds the update of the newest TRC of its ISD.
    ///
    /// # Errors
    /// When it is not that update, or its signatures do not suffice.
    pub fn add_trc(&mut self, trc: Trc) -> Result<(), TrcVerifyError> {
        let before = self.newest(trc.isd()).ok_or(TrcVerifyError::Order {
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

    /// Adds a chain, unless no TRC of the store has its root. Returns whether it was added.
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

    /// The chains that fit a query, whether or not they are valid now.
    pub fn chains(&self, query: &ChainQuery) -> impl Iterator<Item = &Chain> {
        self.rooted(query).map(|rooted| &rooted.chain)
    }

    fn rooted(&self, query: &ChainQuery) -> impl Iterator<Item = &Rooted> {
        let key = (query.isd_as, query.subject_key_id.clone());
        let known = self.chains.get(&key).into_iter().flatten();
        known.filter(|rooted| query.fits(rooted.chain.validity()))
    }

    /// Those of [`Store::chains`] that are valid and rooted in a valid TRC at `now`.
    pub(crate) fn active_chains(
        &self,
        query: &ChainQuery,
        now: u64,
    ) -> impl Iterator<Item = &Chain> {
        let active = self.active(query.isd_as.isd().to_u16(), now);
        self.rooted(query)
            .filter(move |rooted| {
                rooted.chain.holds(now) && rooted.trcs.iter().any(|id| active.contains(id))
            })
            .map(|rooted| &rooted.chain)
    }

    /// The TRCs of an ISD that are active at `now`: the newest, if it is valid, and in its grace
    /// period the one before.
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
        if let Some(before) = before.filter(|_| age <= newest.grace_period()) {
            active.push(before.id());
        }
        active
    }
}

/// Reads and parses the files of a folder with an extension, by name.
pub(crate) fn read<T, E: ToString>(
    folder: &Path,
    extension: &str,
    parse: impl Fn(&[u8]) -> Result<T, E>,
) -> Result<Vec<T>, LoadError> {
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
        parse(&bytes).map_err(|reason| LoadError::File {
            path,
            reason: reason.to_string(),
        })
    };
    paths.into_iter().map(parse).collect()
}
