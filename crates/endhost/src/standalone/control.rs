//! The AS's control service, asked for segments (`proto.control_plane.v1.SegmentLookupService`).

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use connectrpc::client::HttpClient;
use hawser_segment::{Segment, Segments};
use scion_protobuf::proto::control_plane::v1::{
    PathSegment, SegmentLookupServiceClient, SegmentType, SegmentsRequest, SegmentsResponse,
    TrustMaterialServiceClient,
};
use tokio::task::JoinSet;

use super::Question;
use super::verify::{Material, Verifier};
use crate::service::{Caller, Service, SourceError, options};

/// The next of several control services is asked as well when one has not answered so long.
const STAGGER: Duration = Duration::from_secs(1);
const QUESTION: &str = "Segments";

type Lookup = Caller<SegmentLookupServiceClient<HttpClient>>;

struct Server {
    lookup: Lookup,
    material: Material,
}

/// The control services of an AS, one as good as the other.
#[derive(Clone)]
pub(super) struct Control(Arc<Inner>);

struct Inner {
    services: Vec<Server>,
    verifier: Option<Verifier>,
    /// The one that answered last: the first to be asked.
    good: AtomicUsize,
}

impl Control {
    /// Clients of all of them; `None` when there is none. What they hand out is checked by
    /// `verifier`, if there is one.
    pub(super) fn new(addresses: &[SocketAddr], verifier: Option<Verifier>) -> Option<Self> {
        let services: Vec<Server> = addresses
            .iter()
            .filter_map(|address| {
                let service = Service::Control(address.to_string());
                Some(Server {
                    lookup: Caller::new(service.clone(), SegmentLookupServiceClient::new)?,
                    material: Caller::new(service, TrustMaterialServiceClient::new)?,
                })
            })
            .collect();
        (!services.is_empty()).then(|| {
            Self(Arc::new(Inner {
                services,
                verifier,
                good: AtomicUsize::new(0),
            }))
        })
    }

    /// Asks one service after the other until one answers: the next when one fails, or also the
    /// next when it takes long. The first answer counts, or the first error when there is none.
    pub(super) async fn segments(&self, question: Question) -> Result<Segments, SourceError> {
        let Inner { services, good, .. } = &*self.0;
        let first = good.load(Ordering::Relaxed);
        let mut rest = (0..services.len()).map(|step| (first + step) % services.len());
        let mut asking = JoinSet::new();
        let mut failed: Option<SourceError> = None;
        loop {
            let next = rest.next();
            if let Some(at) = next {
                let control = self.clone();
                asking.spawn(async move { (at, control.ask(at, question).await) });
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
                    let service = services[first].lookup.service().clone();
                    return Err(failed.unwrap_or(SourceError::Unreachable { service }));
                }
            }
        }
    }

    /// Asks the service at `at`.
    async fn ask(&self, at: usize, question: Question) -> Result<Segments, SourceError> {
        let Server { lookup, material } = &self.0.services[at];
        let request = SegmentsRequest {
            src_isd_as: question.src.to_u64(),
            dst_isd_as: question.dst.to_u64(),
        };
        let client = lookup.client();
        let call = client.segments_with_options(request, options());
        let Some(answer) = lookup.answer(QUESTION, call).await? else {
            // What it knows nothing of has no segments.
            return Ok(Segments::default());
        };
        let answer = answer.into_owned();
        let found = match &self.0.verifier {
            None => read(answer, |_, _| Ok(())),
            Some(verifier) => {
                let lists = answer.segments.values();
                let segments = lists.flat_map(|list| &list.segments);
                verifier.prepare(segments, material).await;
                read(answer, |message, segment| {
                    verifier.check(message, segment.expiry())
                })
            }
        };
        found.map_err(|fault| lookup.nonsense(QUESTION, fault))
    }
}

/// Reads what is whole of an answer and passes `check`; nothing that does is a fault.
pub(super) fn read(
    answer: SegmentsResponse,
    check: impl Fn(&PathSegment, &Segment) -> Result<(), String>,
) -> Result<Segments, String> {
    let mut found = Segments::default();
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
            let segment = Segment::from_message(message)
                .map_err(|error| error.to_string())
                .and_then(|segment| check(message, &segment).map(|()| segment));
            match segment {
                Ok(segment) => {
                    whole += 1;
                    into.push(segment);
                }
                Err(error) => {
                    broken += 1;
                    fault.get_or_insert(error);
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
                "the control service hands out segments that cannot be used"
            );
            Ok(found)
        }
        None => Ok(found),
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, server) in self.0.services.iter().enumerate() {
            let separator = if at == 0 { "" } else { " or " };
            write!(f, "{separator}{}", server.lookup.service())?;
        }
        Ok(())
    }
}
