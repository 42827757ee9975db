//! The endhost API (`scion.endhost.v1`), which programs built on the `scion-stack` crate use
//! instead of a daemon: the addresses of the AS's routers, and segments, which they combine
//! themselves.

use std::ops::Range;

use hawser_proto::control_plane::PathSegment;
use hawser_proto::endhost::{
    LIST_SEGMENTS, LIST_UNDERLAYS, ListSegmentsRequest, ListSegmentsResponse, ListUnderlaysRequest,
    ListUnderlaysResponse, Router, UdpUnderlay,
};
use hawser_rpc::{Code, RpcError};
use hawser_topology::IsdAsn;

use crate::beacons::CachedSegments;
use crate::error::LookupError;
use crate::plane::Plane;
use crate::shared::{Methods, now};

/// Default number of segments per page (`segments_service.proto`).
const PAGE: usize = 64;

/// Maximum number of segments per page, so that an answer stays below 1 MB.
const MAX_PAGE: usize = 256;

/// Adds the methods of both services of the API.
pub(crate) fn add(methods: Methods) -> Methods {
    methods
        .with(LIST_UNDERLAYS, |plane, request| {
            Ok::<_, RpcError>(list_underlays(plane, &request))
        })
        .with(LIST_SEGMENTS, |plane, request| {
            Ok(list_segments(plane, &request, now())?)
        })
}

/// The routers of the AS. Empty for another AS.
fn list_underlays(plane: &Plane, request: &ListUnderlaysRequest) -> ListUnderlaysResponse {
    let local = plane.isd_as();
    let requested = IsdAsn::from_u64(request.isd_as.unwrap_or(0));
    let routers = plane.topology.border_routers.values();
    let routers = routers
        .filter(|_| requested.matches(local))
        .map(|router| Router {
            isd_as: local.to_u64(),
            address: router.internal_addr.to_string(),
            interfaces: router.interfaces.keys().map(|&id| id.into()).collect(),
        });
    ListUnderlaysResponse {
        udp: Some(UdpUnderlay {
            routers: routers.collect(),
        }),
    }
}

/// The reason why a page of segments cannot be returned.
#[derive(Debug, thiserror::Error)]
enum PageError {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error("a page cannot have {0} segments: request 1 or more, or 0 for {PAGE}")]
    Size(i32),
    #[error(
        "page token '{0}' is not of this service, or its segments have changed: request the first page"
    )]
    Token(String),
}

impl From<PageError> for RpcError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Lookup(error) => error.into(),
            error => Self::new(Code::InvalidArgument, error.to_string()),
        }
    }
}

/// One page of the segments between two ASes: up, then core, then down.
fn list_segments(
    plane: &mut Plane,
    request: &ListSegmentsRequest,
    now: u64,
) -> Result<ListSegmentsResponse, PageError> {
    let (src, dst) = (request.src_isd_as, request.dst_isd_as);
    let found = plane.lookup(IsdAsn::from_u64(src), IsdAsn::from_u64(dst), now)?;
    let size = match usize::try_from(request.page_size) {
        Ok(0) => PAGE,
        Ok(size) => size.min(MAX_PAGE),
        Err(_) => return Err(PageError::Size(request.page_size)),
    };
    let start = start(&request.page_token, plane.generation)?;
    let mut page = Page {
        range: start..start + size,
        seen: 0,
    };
    let mut answer = ListSegmentsResponse {
        up_segments: page.of(plane, &found.up)?,
        core_segments: page.of(plane, &found.core)?,
        down_segments: page.of(plane, &found.down)?,
        ..ListSegmentsResponse::default()
    };
    if page.range.end < page.seen {
        answer.next_page_token = format!("{}-{}", plane.generation, page.range.end);
    }
    Ok(answer)
}

/// The index of the segment at which the page of a token starts. A token is valid until the
/// segments change.
fn start(token: &str, generation: u64) -> Result<usize, PageError> {
    if token.is_empty() {
        return Ok(0);
    }
    let read = || {
        let (of, start) = token.split_once('-')?;
        let current = of.parse() == Ok(generation);
        // All lists of segments are much shorter than 2^32.
        start.parse::<u32>().ok().filter(|_| current)
    };
    let start = read().ok_or_else(|| PageError::Token(token.to_owned()))?;
    usize::try_from(start).map_err(|_| PageError::Token(token.to_owned()))
}

/// The range of a page in the concatenation of all lists.
struct Page {
    range: Range<usize>,
    /// Number of segments in the lists so far.
    seen: usize,
}

impl Page {
    fn of(
        &mut self,
        plane: &mut Plane,
        list: &CachedSegments,
    ) -> Result<Vec<PathSegment>, LookupError> {
        let before = self.seen;
        self.seen += list.len();
        let places = list.iter().zip(before..);
        places
            .filter(|(_, place)| self.range.contains(place))
            .map(|(segment, _)| plane.message(segment))
            .collect()
    }
}

#[cfg(test)]
mod tests;
