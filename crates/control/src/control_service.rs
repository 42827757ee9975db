//! The services that a control service offers to hosts: segment lookup
//! (`proto.control_plane.v1.SegmentLookupService`), and the TRCs and certificates to verify
//! segments with (`proto.control_plane.v1.TrustMaterialService`).

use connectrpc::{ConnectError, Router};
use hawser_topology::IsdAsn;
use hawser_trust::Validity;
use scion_protobuf::buffa_types::Timestamp;
use scion_protobuf::proto::control_plane::v1::{
    Chain, ChainsRequest, ChainsResponse, SEGMENT_LOOKUP_SERVICE_SERVICE_NAME, SegmentType,
    SegmentsRequest, SegmentsResponse, TRCRequest, TRCResponse,
    TRUST_MATERIAL_SERVICE_SERVICE_NAME, segments_response,
};

use crate::error::LookupError;
use crate::plane::Plane;
use crate::shared::{Service, Shared, now};

/// Adds the methods of both services.
pub(crate) fn add(router: Router, shared: &Shared) -> Router {
    let router = Service::new(router, SEGMENT_LOOKUP_SERVICE_SERVICE_NAME, shared)
        .method("Segments", segments)
        .router;
    Service::new(router, TRUST_MATERIAL_SERVICE_SERVICE_NAME, shared)
        .method("Chains", chains)
        .method("TRC", trc)
        .router
}

fn segments(plane: &mut Plane, request: SegmentsRequest) -> Result<SegmentsResponse, ConnectError> {
    let (src, dst) = (request.src_isd_as.into(), request.dst_isd_as.into());
    let found = plane.lookup(src, dst, now())?;
    let lists = [
        (SegmentType::Up, found.up),
        (SegmentType::Down, found.down),
        (SegmentType::Core, found.core),
    ];
    let segments = lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(kind, list)| {
            let messages = list.iter().map(|segment| plane.message(segment));
            let segments = messages.collect::<Result<_, _>>()?;
            Ok((kind as i32, segments_response::Segments { segments }))
        })
        .collect::<Result<_, LookupError>>()?;
    Ok(SegmentsResponse {
        segments,
        ..SegmentsResponse::default()
    })
}

/// The certificate chain of one AS. A request for several ASes is refused, as by scionproto: its
/// answer would take reading the keys of all of them.
fn chains(plane: &mut Plane, request: ChainsRequest) -> Result<ChainsResponse, ConnectError> {
    let wanted = IsdAsn::from_u64(request.isd_as);
    if wanted.is_wildcard() {
        return Err(LookupError::Wildcard(wanted).into());
    }
    let pki = plane.pki.as_mut().ok_or_else(no_pki)?;
    if plane.beacons.graph.find(wanted).is_none() {
        return Ok(ChainsResponse::default());
    }
    let chain = pki.chain(wanted);
    let chain = chain.map_err(|e| ConnectError::internal(e.to_string()))?;
    let fitting = chain.filter(|c| fits(&request, c.r#as().subject_key_id(), c.validity()));
    let chains = fitting.map(|chain| Chain {
        as_cert: chain.r#as().to_der().to_vec(),
        ca_cert: chain.ca().to_der().to_vec(),
    });
    Ok(ChainsResponse {
        chains: chains.into_iter().collect(),
    })
}

/// Whether a chain has the key and the validity that a request demands, if it demands any (as in
/// scionproto).
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

fn trc(plane: &mut Plane, request: TRCRequest) -> Result<TRCResponse, ConnectError> {
    let trc = plane.pki.as_ref().ok_or_else(no_pki)?.trc(&request);
    let trc = trc.ok_or_else(|| {
        let TRCRequest { isd, base, serial } = request;
        ConnectError::not_found(format!("there is no TRC ISD{isd}-B{base}-S{serial} here"))
    })?;
    Ok(TRCResponse { trc })
}

fn no_pki() -> ConnectError {
    ConnectError::unavailable("this network has no certificates")
}

#[cfg(test)]
mod tests;
