//! The AS's control service, asked for segments
//! (`proto.control_plane.v1.SegmentLookupService`).

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use connectrpc::client::HttpClient;
use hawser_segment::{Segment, Segments};
use scion_protobuf::proto::control_plane::v1::{
    SegmentLookupServiceClient, SegmentType, SegmentsRequest, SegmentsResponse,
};
use tokio::task::JoinSet;

use super::Question;
use crate::service::{Caller, Service, SourceError, options};

/// The next of several control services is asked as well when one has not answered so long.
const STAGGER: Duration = Duration::from_secs(1);
const QUESTION: &str = "Segments";

type Lookup = Caller<SegmentLookupServiceClient<HttpClient>>;

/// The control services of an AS, one as good as the other.
#[derive(Clone)]
pub(super) struct Control(Arc<Inner>);

struct Inner {
    services: Vec<Arc<Lookup>>,
    /// The one that answered last: the first to be asked.
    good: AtomicUsize,
}

/// Segments as they were handed out.
pub(super) type Found = Segments;

impl Control {
    /// Clients of all of them; `None` when there is none.
    pub(super) fn new(addresses: &[SocketAddr]) -> Option<Self> {
        let services: Vec<Arc<Lookup>> = addresses
            .iter()
            .filter_map(|address| {
                let service = Service::Control(address.to_string());
                Caller::new(service, SegmentLookupServiceClient::new)
            })
            .map(Arc::new)
            .collect();
        let good = AtomicUsize::new(0);
        (!services.is_empty()).then(|| Self(Arc::new(Inner { services, good })))
    }

    /// Asks one service after the other until one answers: the next when one fails, or also the
    /// next when it takes long. The first answer counts, or the first error when there is none.
    pub(super) async fn segments(&self, question: Question) -> Result<Found, SourceError> {
        let Inner { services, good } = &*self.0;
        let first = good.load(Ordering::Relaxed);
        let mut rest = (0..services.len()).map(|step| (first + step) % services.len());
        let mut asking = JoinSet::new();
        let mut failed: Option<SourceError> = None;
        loop {
            let next = rest.next();
            if let Some(at) = next {
                let lookup = Arc::clone(&services[at]);
                asking.spawn(async move { (at, ask(&lookup, question).await) });
            }
            let answer = if next.is_some() {
                tokio::time::timeout(STAGGER, asking.join_next()).await
            } else {
                Ok(asking.join_next().await)
            };
            match answer {
                Ok(Some(Ok((at, Ok(found))))) => {
                    good.store(at, Ordering::Relaxed);
                    return Ok(found);
                }
                Ok(Some(Ok((_, Err(error))))) => {
                    failed.get_or_insert(error);
                }
                Ok(Some(Err(_))) | Err(_) => {}
                // All have failed: at least one was asked.
                Ok(None) => {
                    let service = services[first].service().clone();
                    return Err(failed.unwrap_or(SourceError::Unreachable { service }));
                }
            }
        }
    }
}

async fn ask(lookup: &Lookup, question: Question) -> Result<Found, SourceError> {
    let request = SegmentsRequest {
        src_isd_as: question.src.to_u64(),
        dst_isd_as: question.dst.to_u64(),
    };
    let client = lookup.client();
    let call = client.segments_with_options(request, options());
    match lookup.answer(QUESTION, call).await? {
        Some(answer) => read(answer.into_owned()).map_err(|fault| lookup.nonsense(QUESTION, fault)),
        // What it knows nothing of has no segments.
        None => Ok(Found::default()),
    }
}

/// Reads what is whole of an answer; nothing whole is a fault.
pub(super) fn read(answer: SegmentsResponse) -> Result<Found, String> {
    let mut found = Found::default();
    let (mut whole, mut broken, mut fault) = (0, 0, None);
    for (kind, list) in answer.segments {
        let into = match kind {
            kind if kind == SegmentType::Up as i32 => &mut found.up,
            kind if kind == SegmentType::Core as i32 => &mut found.core,
            kind if kind == SegmentType::Down as i32 => &mut found.down,
            _ => {
                broken += list.segments.len();
                fault.get_or_insert(format!("segments of kind {kind}"));
                continue;
            }
        };
        for message in &list.segments {
            match Segment::from_message(message) {
                Ok(segment) => {
                    whole += 1;
                    into.push(segment);
                }
                Err(error) => {
                    broken += 1;
                    fault.get_or_insert(error.to_string());
                }
            }
        }
    }
    match fault {
        Some(fault) if whole == 0 => Err(fault),
        Some(fault) => {
            tracing::warn!(
                broken,
                fault,
                "the control service hands out broken segments"
            );
            Ok(found)
        }
        None => Ok(found),
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, lookup) in self.0.services.iter().enumerate() {
            let separator = if at == 0 { "" } else { " or " };
            write!(f, "{separator}{}", lookup.service())?;
        }
        Ok(())
    }
}
