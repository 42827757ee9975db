//! The certificates and keys of the network's ASes: signing segments, and handing out what verifies
//! them (`proto.control_plane.v1.TrustMaterialService`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use connectrpc::{
    ConnectError, Encodable, RequestContext, Response, ServiceRequest, ServiceResult,
};
use hawser_topology::{AsDir, IsdAsn};
use hawser_trust::{LoadError, SignError, Signer, Store, TrcId, Validity};
use scion_protobuf::buffa_types::google::protobuf::Timestamp;
use scion_protobuf::proto::control_plane::v1::{
    Chain, ChainsRequest, ChainsResponse, PathSegment, TRCRequest, TRCResponse,
    TrustMaterialService,
};

use crate::keys::as_folder;
use crate::shared::Shared;
use crate::signed::Plain;

/// Why a segment cannot be signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PkiError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error("the certificate in the folder of {asked} is that of {found}")]
    Foreign { asked: IsdAsn, found: IsdAsn },
}

/// The TRCs that the AS has, and the signer of every AS of the lab. Signers are loaded when they
/// are first needed, so that a service of a large lab starts as quickly as one of a small lab.
pub(crate) struct Pki {
    lab: PathBuf,
    trcs: Store,
    signers: BTreeMap<IsdAsn, Signer>,
}

impl Pki {
    /// The PKI of the lab in whose folder the AS's folder `dir` is.
    pub fn open(lab: &Path, dir: &AsDir) -> Result<Self, LoadError> {
        Ok(Self {
            lab: lab.to_owned(),
            trcs: Store::load(&dir.path().join("certs"))?,
            signers: BTreeMap::new(),
        })
    }

    fn signer(&mut self, isd_as: IsdAsn) -> Result<&Signer, PkiError> {
        if !self.signers.contains_key(&isd_as) {
            let signer = Signer::load(&as_folder(&self.lab, isd_as), &self.trcs)?;
            let found = signer.isd_as();
            if found != isd_as {
                return Err(PkiError::Foreign {
                    asked: isd_as,
                    found,
                });
            }
            self.signers.insert(isd_as, signer);
        }
        // It was put there just now, or before.
        Ok(&self.signers[&isd_as])
    }

    /// The segment with each AS's entry signed by that AS.
    pub fn sign(&mut self, plain: &Plain) -> Result<PathSegment, PkiError> {
        let mut segment = PathSegment {
            segment_info: plain.info.clone(),
            ..PathSegment::default()
        };
        for (isd_as, body) in &plain.entries {
            let signer = self.signer(*isd_as)?;
            signer.add_entry(&mut segment, body.clone(), plain.made)?;
        }
        Ok(segment)
    }

    fn trc(&self, request: &TRCRequest) -> Option<Vec<u8>> {
        let isd = u16::try_from(request.isd).ok()?;
        // As scionproto: both 0 stand for the newest.
        let trc = match (request.base, request.serial) {
            (0, 0) => self.trcs.newest(isd),
            (base, serial) => self.trcs.trc(TrcId { isd, base, serial }),
        };
        trc.map(|trc| trc.to_der().to_vec())
    }
}

/// Which chains a request asks for, as scionproto reads it: by their key, and by the time at which
/// they hold, if said.
fn fits(request: &ChainsRequest, key_id: &[u8], validity: Validity) -> bool {
    let seconds = |time: &Timestamp| u64::try_from(time.seconds).unwrap_or(0);
    let until = request.at_least_valid_until.as_option().map(seconds);
    let since = request.at_least_valid_since.as_option().map(seconds);
    let key = &request.subject_key_id;
    (key.is_empty() || key == key_id)
        && until.is_none_or(|until| until <= validity.not_after)
        && since
            .or(until)
            .is_none_or(|since| since >= validity.not_before)
}

/// The trust material over the shared state.
pub(crate) struct Material(pub Shared);

impl Material {
    fn find_chains(&self, request: &ChainsRequest) -> Result<Vec<Chain>, ConnectError> {
        let mut plane = self.0.lock()?;
        let asked = IsdAsn::from_u64(request.isd_as);
        let ases = (0..plane.graph.len()).map(|at| plane.graph.r#as(at).isd_as);
        let ases: Vec<_> = ases.filter(|&isd_as| asked.matches(isd_as)).collect();
        let pki = plane.pki.as_mut().ok_or_else(no_pki)?;
        let mut chains = Vec::new();
        for isd_as in ases {
            let signer = pki.signer(isd_as);
            let chain = signer
                .map_err(|e| ConnectError::internal(e.to_string()))?
                .chain();
            if fits(request, chain.r#as().subject_key_id(), chain.validity()) {
                chains.push(Chain {
                    as_cert: chain.r#as().to_der().to_vec(),
                    ca_cert: chain.ca().to_der().to_vec(),
                });
            }
        }
        Ok(chains)
    }

    fn find_trc(&self, request: &TRCRequest) -> Result<Vec<u8>, ConnectError> {
        let plane = self.0.lock()?;
        let trc = plane.pki.as_ref().ok_or_else(no_pki)?.trc(request);
        trc.ok_or_else(|| {
            let TRCRequest { isd, base, serial } = request;
            ConnectError::not_found(format!("no TRC ISD{isd}-B{base}-S{serial} here"))
        })
    }
}

fn no_pki() -> ConnectError {
    ConnectError::unavailable("this network was opened without certificates")
}

impl TrustMaterialService for Material {
    async fn chains<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, ChainsRequest>,
    ) -> ServiceResult<impl Encodable<ChainsResponse> + Send + use<'a>> {
        let chains = self.find_chains(&request.to_owned_message())?;
        Response::ok(ChainsResponse { chains })
    }

    async fn trc<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, TRCRequest>,
    ) -> ServiceResult<impl Encodable<TRCResponse> + Send + use<'a>> {
        let trc = self.find_trc(&request.to_owned_message())?;
        Response::ok(TRCResponse { trc })
    }
}

#[cfg(test)]
mod tests;
