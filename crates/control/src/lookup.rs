//! Segment lookup (`proto.control_plane.v1.SegmentLookupService`).

use std::sync::Arc;

use connectrpc::{Encodable, RequestContext, Response, ServiceRequest, ServiceResult};
use hawser_segment::Segments;
use hawser_topology::IsdAsn;
use scion_protobuf::proto::control_plane::v1::{
    SegmentLookupService, SegmentType, SegmentsRequest, SegmentsResponse, segments_response,
};

use crate::daemon::now;
use crate::offer::Offer;
use crate::plane::LookupError;
use crate::shared::Shared;

/// What is answered to a lookup.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// From core ASes to the source.
    pub up: Vec<Arc<Offer>>,
    /// From core ASes on the destination's side to core ASes on the source's.
    pub core: Vec<Arc<Offer>>,
    /// From core ASes to the destination.
    pub down: Vec<Arc<Offer>>,
}

impl Found {
    /// What a host reads from it.
    pub fn segments(&self) -> Segments {
        let read = |list: &[Arc<Offer>]| list.iter().map(|o| o.segment.clone()).collect();
        Segments {
            up: read(&self.up),
            core: read(&self.core),
            down: read(&self.down),
        }
    }
}

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
                let messages = list.iter().map(|offer| plane.message(offer));
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
