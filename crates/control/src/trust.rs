//! The TRCs and certificates that segments are verified with
//! (`proto.control_plane.v1.TrustMaterialService`).

use connectrpc::{
    ConnectError, Encodable, RequestContext, Response, ServiceRequest, ServiceResult,
};
use hawser_topology::IsdAsn;
use hawser_trust::Validity;
use scion_protobuf::buffa_types::google::protobuf::Timestamp;
use scion_protobuf::proto::control_plane::v1::{
    Chain, ChainsRequest, ChainsResponse, TRCRequest, TRCResponse, TrustMaterialService,
};

use crate::shared::Shared;

/// Whether a request asks for a chain, as scionproto reads it: by its key, and by its validity,
/// where the request names them.
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
