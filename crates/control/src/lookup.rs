//! Segment lookup (`proto.control_plane.v1.SegmentLookupService`).

use connectrpc::{Encodable, RequestContext, Response, ServiceRequest, ServiceResult};
use hawser_topology::IsdAsn;
use scion_protobuf::proto::control_plane::v1::{
    SegmentLookupService, SegmentType, SegmentsRequest, SegmentsResponse, segments_response,
};

use crate::clock::now;
use crate::error::LookupError;
use crate::shared::Shared;

/// Segment lookup over the shared state.
pub(crate) struct Lookup(pub Shared);

impl SegmentLookupService for Lookup {
    async fn segments<'a>(
        &'a self,
        _: RequestContext,
        request: ServiceRequest<'_, SegmentsRequest>,
    ) -> ServiceResult<impl Encodable<SegmentsResponse> + Send + use<'a>> {
        let mut plane = self.0.lock()?;
        let found = plane.lookup(
            IsdAsn::from_u64(request.src_isd_as),
            IsdAsn::from_u64(request.dst_isd_as),
            now(),
        )?;
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
        Response::ok(SegmentsResponse {
            segments,
            ..SegmentsResponse::default()
        })
    }
}
