//! The services that a control service offers to hosts: segment lookup
//! (`proto.control_plane.v1.SegmentLookupService`), and the TRCs and certificates to verify
//! segments with (`proto.control_plane.v1.TrustMaterialService`).

use hawser_proto::control_plane::{
    CHAINS, Chain, ChainsRequest, ChainsResponse, SEGMENTS, SegmentType, Segments, SegmentsRequest,
    SegmentsResponse, TRC, TRCRequest, TRCResponse,
};
use hawser_proto::well_known::Timestamp;
use hawser_rpc::{Code, RpcError};
use hawser_topology::IsdAsn;
use hawser_trust::Validity;

use crate::error::LookupError;
use crate::plane::Plane;
use crate::shared::{Methods, now};

/// Adds the methods of both services.
pub(crate) fn add(methods: Methods) -> Methods {
    methods
        .with(SEGMENTS, segments)
        .with(CHAINS, chains)
        .with(TRC, trc)
}

fn segments(plane: &mut Plane, request: SegmentsRequest) -> Result<SegmentsResponse, RpcError> {
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
            Ok((kind.into(), Segments { segments }))
        })
        .collect::<Result<_, LookupError>>()?;
    Ok(SegmentsResponse { segments })
}

/// The certificate chain of one AS. A request for several ASes is refused, as by scionproto: its
/// answer would take reading the keys of all of them.
fn chains(plane: &mut Plane, request: ChainsRequest) -> Result<ChainsResponse, RpcError> {
    let wanted = IsdAsn::from_u64(request.isd_as);
    if wanted.is_wildcard() {
        return Err(LookupError::Wildcard(wanted).into());
    }
    let pki = plane.pki.as_mut().ok_or_else(no_pki)?;
    if plane.beacons.graph.find(wanted).is_none() {
        return Ok(ChainsResponse::default());
    }
    let chain = pki.chain(wanted);
    let chain = chain.map_err(|e| RpcError::new(Code::Internal, e.to_string()))?;
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
    let until = request.at_least_valid_until.as_ref().map(seconds);
    let since = request.at_least_valid_since.as_ref().map(seconds);
    let key = &request.subject_key_id;
    (key.is_empty() || key == key_id)
        && until.is_none_or(|until| until <= validity.not_after)
        && since
            .or(until)
            .is_none_or(|since| since >= validity.not_before)
}

fn trc(plane: &mut Plane, request: TRCRequest) -> Result<TRCResponse, RpcError> {
    let trc = plane.pki.as_ref().ok_or_else(no_pki)?.trc(&request);
    let trc = trc.ok_or_else(|| {
        let TRCRequest { isd, base, serial } = request;
        let message = format!("there is no TRC ISD{isd}-B{base}-S{serial} here");
        RpcError::new(Code::NotFound, message)
    })?;
    Ok(TRCResponse { trc })
}

fn no_pki() -> RpcError {
    RpcError::new(Code::Unavailable, "this network has no certificates")
}

#[cfg(test)]
mod tests;
