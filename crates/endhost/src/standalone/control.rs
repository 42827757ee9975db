//! Clients of the AS's control services (`proto.control_plane.v1.SegmentLookupService`).

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

use super::question::Question;
use super::verify::{TrustClient, Verifier};
use crate::service::{Caller, Service, SourceError, options};

/// How long one of several control services may take before the next is asked as well.
const STAGGER: Duration = Duration::from_secs(1);
const QUESTION: &str = "Segments";

type Lookup = Caller<SegmentLookupServiceClient<HttpClient>>;

struct Server {
    lookup: Lookup,
    trust: TrustClient,
}

/// The control services of an AS, which are interchangeable.
#[derive(Clone)]
pub(super) struct ControlServices(Arc<Inner>);

struct Inner {
    services: Vec<Server>,
    verifier: Option<Verifier>,
    /// The one that answered last, which is asked first.
    preferred: AtomicUsize,
}

impl ControlServices {
    /// Clients of the services at `addresses`; `None` when there is none. `verifier`, if there is
    /// one, checks the segments they hand out.
    pub(super) fn new(addresses: &[SocketAddr], verifier: Option<Verifier>) -> Option<Self> {
        let services: Vec<Server> = addresses
            .iter()
            .filter_map(|address| {
                let service = Service::Control(address.to_string());
                Some(Server {
                    lookup: Caller::new(service.clone(), SegmentLookupServiceClient::new)?,
                    trust: Caller::new(service, TrustMaterialServiceClient::new)?,
                })
            })
            .collect();
        (!services.is_empty()).then(|| {
            Self(Arc::new(Inner {
                services,
                verifier,
                preferred: AtomicUsize::new(0),
            }))
        })
    }

    /// Asks one service after the other until one answers, the next when one fails or takes long.
    /// The first answer counts, or the first error when there is none.
    pub(super) async fn segments(&self, question: Question) -> Result<Segments, SourceError> {
        let Inner {
            services,
            preferred,
            ..
        } = &*self.0;
        let first = preferred.load(Ordering::Relaxed);
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
                    preferred.store(at, Ordering::Relaxed);
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
        let Server { lookup, trust } = &self.0.services[at];
        let request = SegmentsRequest {
            src_isd_as: question.src.to_u64(),
            dst_isd_as: question.dst.to_u64(),
        };
        let client = lookup.client();
        let call = client.segments_with_options(request, options());
        let Some(answer) = lookup.optional(QUESTION, call).await? else {
            // "Not found": there are no segments.
            return Ok(Segments::default());
        };
        let answer = answer.into_owned();
        let found = match &self.0.verifier {
            None => read(answer, |_, _| Ok(())),
            Some(verifier) => {
                let lists = answer.segments.values();
                let segments = lists.flat_map(|list| &list.segments);
                verifier.prepare(segments, trust).await;
                read(answer, |message, segment| {
                    verifier.check(message, segment.expiry())
                })
            }
        };
        found.map_err(|error| lookup.invalid(QUESTION, error))
    }
}

/// The segments of an answer that are valid and pass `check`; an error when none does.
pub(super) fn read(
    answer: SegmentsResponse,
    check: impl Fn(&PathSegment, &Segment) -> Result<(), String>,
) -> Result<Segments, String> {
    let mut found = Segments::default();
    let (mut valid, mut invalid, mut first_error) = (0, 0, None);
    for (kind, list) in answer.segments {
        let into = match kind {
            kind if kind == SegmentType::Up as i32 => &mut found.up,
            kind if kind == SegmentType::Core as i32 => &mut found.core,
            kind if kind == SegmentType::Down as i32 => &mut found.down,
            _ => {
                invalid += list.segments.len();
                first_error.get_or_insert(format!("segments have the unknown type {kind}"));
                continue;
            }
        };
        for message in &list.segments {
            let segment = Segment::from_message(message)
                .map_err(|error| error.to_string())
                .and_then(|segment| check(message, &segment).map(|()| segment));
            match segment {
                Ok(segment) => {
                    valid += 1;
                    into.push(segment);
                }
                Err(error) => {
                    invalid += 1;
                    first_error.get_or_insert(error);
                }
            }
        }
    }
    match first_error {
        Some(error) if valid == 0 => Err(error),
        Some(error) => {
            tracing::warn!(
                invalid,
                error,
                "the control service hands out invalid segments"
            );
            Ok(found)
        }
        None => Ok(found),
    }
}

impl fmt::Display for ControlServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, server) in self.0.services.iter().enumerate() {
            let separator = if at == 0 { "" } else { " or " };
            write!(f, "{separator}{}", server.lookup.service())?;
        }
        Ok(())
    }
}
