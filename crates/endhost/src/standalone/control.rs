//! Clients of the AS's control services (`proto.control_plane.v1.SegmentLookupService`).

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hawser_proto::control_plane::{
    PathSegment, SEGMENTS, SegmentType, SegmentsRequest, SegmentsResponse,
};
use hawser_segment::{Segment, Segments};
use tokio::task::JoinSet;

use super::segments::Question;
use super::verify::Verifier;
use crate::service::{Caller, Service, SourceError, valid};

/// How long one of several control services may take before the next is queried as well.
const STAGGER: Duration = Duration::from_secs(1);

/// The control services of an AS, which are interchangeable.
pub(super) struct ControlServices {
    services: Vec<Caller>,
    verifier: Option<Verifier>,
    /// The service that answered last, which is queried first.
    preferred: AtomicUsize,
}

impl ControlServices {
    /// Clients of the services at `addresses`; `None` when there are none. `verifier`, if there is
    /// one, checks their segments.
    pub(super) fn new(addresses: &[SocketAddr], verifier: Option<Verifier>) -> Option<Self> {
        let services = addresses
            .iter()
            .filter_map(|address| Caller::new(Service::Control(address.to_string())));
        let services: Vec<Caller> = services.collect();
        (!services.is_empty()).then_some(Self {
            services,
            verifier,
            preferred: AtomicUsize::new(0),
        })
    }

    /// Queries one service after the other until one answers: the next when one fails or takes
    /// long. Returns the first answer, or the first error when there is no answer.
    pub(super) async fn segments(
        self: Arc<Self>,
        question: Question,
    ) -> Result<Segments, SourceError> {
        let (count, first) = (self.services.len(), self.preferred.load(Ordering::Relaxed));
        let mut rest = (first..first + count).map(|at| at % count);
        let mut asking = JoinSet::new();
        let mut failed = None;
        loop {
            let next = rest.next();
            if let Some(at) = next {
                let control = Arc::clone(&self);
                asking.spawn(async move { (at, control.ask(at, question).await) });
            }
            let answer = if next.is_some() {
                tokio::time::timeout(STAGGER, asking.join_next()).await
            } else {
                Ok(asking.join_next().await)
            };
            match answer {
                Ok(Some(Ok((at, Ok(found))))) => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return Ok(found);
                }
                Ok(Some(Ok((_, Err(error))))) => {
                    failed.get_or_insert(error);
                }
                Ok(Some(Err(_))) | Err(_) => {}
                // All services have failed, and at least one was queried.
                Ok(None) => {
                    let service = self.services[first].service.clone();
                    return Err(failed.unwrap_or(SourceError::Unreachable(service)));
                }
            }
        }
    }

    /// Queries the service at `at`.
    async fn ask(&self, at: usize, question: Question) -> Result<Segments, SourceError> {
        let service = &self.services[at];
        let request = SegmentsRequest {
            src_isd_as: question.src.to_u64(),
            dst_isd_as: question.dst.to_u64(),
        };
        // "Not found" means that there are no segments.
        let answer = service.optional(SEGMENTS, &request).await?;
        let answer = answer.unwrap_or_default();
        let found = match &self.verifier {
            None => read(answer, |_, _| Ok(())),
            Some(verifier) => {
                let lists = answer.segments.values();
                let segments = lists.flat_map(|list| &list.segments);
                verifier.prepare(segments, service).await;
                read(answer, |message, segment| {
                    verifier.check(message, segment.expiry())
                })
            }
        };
        found.map_err(|error| service.invalid(SEGMENTS.name(), error))
    }
}

/// The segments of an answer that are valid and pass `check`; an error when none does.
pub(super) fn read(
    answer: SegmentsResponse,
    check: impl Fn(&PathSegment, &Segment) -> Result<(), String>,
) -> Result<Segments, String> {
    const KINDS: [SegmentType; 3] = [SegmentType::Up, SegmentType::Core, SegmentType::Down];
    let messages = answer.segments.iter().flat_map(|(kind, list)| {
        let messages = list.segments.iter();
        messages.map(move |message| (*kind, message))
    });
    let segments = messages.map(|(kind, message)| {
        let known = KINDS.iter().position(|known| *known as i32 == kind);
        let kind = known.ok_or_else(|| format!("segments have the unknown type {kind}"))?;
        let segment = Segment::from_message(message).map_err(|error| error.to_string())?;
        check(message, &segment)?;
        Ok::<_, String>((kind, segment))
    });
    let mut found = [const { Vec::new() }; KINDS.len()];
    for (kind, segment) in valid(segments, "the control service hands out invalid segments")? {
        found[kind].push(segment);
    }
    let [up, core, down] = found;
    Ok(Segments { up, core, down })
}

impl fmt::Display for ControlServices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let services = self.services.iter();
        let services = services.map(|caller| caller.service.to_string());
        f.write_str(&services.collect::<Vec<_>>().join(" or "))
    }
}
