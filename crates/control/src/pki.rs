//! The certificates and keys of the network's ASes, and signatures with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hawser_proto::control_plane::{PathSegment, TRCRequest};
use hawser_topology::{AsDir, IsdAsn, as_folder};
use hawser_trust::{Chain, LoadError, SignError, Signer, Store, TrcId};

use crate::segment::Plain;

/// The reason why a segment cannot be signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PkiError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Sign(#[from] SignError),
    /// A fault of this program.
    #[error("the key of {0} was not read")]
    NotLoaded(IsdAsn),
    #[error("the certificate in the folder of {wanted} is that of {found}")]
    Foreign { wanted: IsdAsn, found: IsdAsn },
}

/// The AS's TRCs, and the signer of every AS of the lab. Signers are loaded on demand, so that the
/// first answer in a large lab is as fast as in a small one.
pub(crate) struct Pki {
    lab: PathBuf,
    trcs: Store,
    signers: BTreeMap<IsdAsn, Signer>,
    /// The chains of all ASes of a network whose segments were signed elsewhere; `None` if this
    /// signs them.
    published: Option<BTreeMap<IsdAsn, Chain>>,
}

impl Pki {
    /// The PKI of the lab whose folder contains the AS's folder `dir`.
    pub fn open(lab: &Path, dir: &AsDir) -> Result<Self, LoadError> {
        Ok(Self::new(lab, Store::load(&dir.path().join("certs"))?))
    }

    /// The PKI of the ASes whose folders are in `lab`.
    pub fn new(lab: &Path, trcs: Store) -> Self {
        Self {
            lab: lab.to_owned(),
            trcs,
            signers: BTreeMap::new(),
            published: None,
        }
    }

    /// The PKI of a network whose segments were signed elsewhere, with the chains of its ASes.
    pub fn published(trcs: Store, chains: BTreeMap<IsdAsn, Chain>) -> Self {
        Self {
            lab: PathBuf::new(),
            trcs,
            signers: BTreeMap::new(),
            published: Some(chains),
        }
    }

    /// The certificate chain of an AS; `None` if it was not published.
    pub fn chain(&mut self, isd_as: IsdAsn) -> Result<Option<&Chain>, PkiError> {
        if self.published.is_some() {
            return Ok(self.published.as_ref().and_then(|all| all.get(&isd_as)));
        }
        self.signer(isd_as).map(|signer| Some(signer.chain()))
    }

    /// The signer of an AS.
    fn signer(&mut self, isd_as: IsdAsn) -> Result<&Signer, PkiError> {
        if !self.signers.contains_key(&isd_as) {
            let signer = Signer::load(&self.lab.join(as_folder(isd_as)), &self.trcs)?;
            let found = signer.isd_as();
            if found != isd_as {
                return Err(PkiError::Foreign {
                    wanted: isd_as,
                    found,
                });
            }
            self.signers.insert(isd_as, signer);
        }
        Ok(&self.signers[&isd_as])
    }

    /// The segment with each AS's entry signed by that AS.
    pub fn sign(&mut self, plain: &Plain) -> Result<PathSegment, PkiError> {
        for (isd_as, _) in &plain.entries {
            self.signer(*isd_as)?;
        }
        self.sign_loaded(plain)
    }

    /// As [`Self::sign`], by signers that are loaded: those of ASes whose chains were asked for.
    pub fn sign_loaded(&self, plain: &Plain) -> Result<PathSegment, PkiError> {
        let mut segment = PathSegment {
            segment_info: plain.info.clone(),
            ..PathSegment::default()
        };
        for (isd_as, body) in &plain.entries {
            let signer = self.signers.get(isd_as);
            let signer = signer.ok_or(PkiError::NotLoaded(*isd_as))?;
            signer.add_entry(&mut segment, body.clone(), plain.made)?;
        }
        Ok(segment)
    }

    /// The requested TRC, in DER.
    pub fn trc(&self, request: &TRCRequest) -> Option<Vec<u8>> {
        let isd = u16::try_from(request.isd).ok()?;
        // As in scionproto, two zeros request the newest TRC.
        let trc = match (request.base, request.serial) {
            (0, 0) => self.trcs.newest(isd),
            (base, serial) => self.trcs.trc(TrcId { isd, base, serial }),
        };
        trc.map(|trc| trc.to_der().to_vec())
    }
}
