//! An AS without a daemon: `topology.json` names the control service, and this host makes paths
//! from its segments. scionproto calls this standalone mode.

mod control;
mod segments;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::sync::Arc;

use hawser_address::{Isd, IsdAsn};
use hawser_segment::{Combined, Segment, Segments, combine};
use hawser_topology::{AsDir, AsTopology};
use tokio::task::JoinSet;

use self::control::ControlServices;
use self::segments::{Question, SegmentCache, questions};
use self::verify::Verifier;
use crate::clock::unix_now;
use crate::local_as::{LocalAs, LocalTopology};
use crate::path::{Path, PathError};
use crate::service::{Freshness, SourceError};

/// Most paths made to one AS; the shortest are kept. In no known network are further ones worth a
/// choice.
const MAX_PATHS: usize = 1000;

/// Makes paths from the control service's segments.
pub(crate) struct Standalone {
    /// This AS, as in `topology.json`.
    pub(crate) topology: LocalTopology,
    control: Arc<ControlServices>,
    segments: SegmentCache,
}

impl Standalone {
    /// Reads `topology.json` in `folder`, and the TRCs in its subfolder `certs` if that exists:
    /// then only segments with valid signatures are used.
    pub(crate) fn open(folder: &FilePath) -> Result<Self, String> {
        let topology = AsDir::new(folder).topology();
        let topology = topology.map_err(|error| error.to_string())?;
        let services: Vec<SocketAddr> = topology.control_service.values().copied().collect();
        let certs = folder.join("certs");
        let verifier = match certs.is_dir() {
            true => Some(Verifier::load(&certs).map_err(|error| error.to_string())?),
            false => {
                tracing::warn!(
                    "{} is missing: path segments are used unverified; put the ISD's TRC there",
                    certs.display()
                );
                None
            }
        };
        let control = ControlServices::new(&services, verifier);
        let control = control.ok_or_else(|| {
            let file = folder.join("topology.json");
            let file = file.display();
            format!(
                "{file} lists no control service to ask for paths: add one to `control_service`"
            )
        })?;
        Ok(Self {
            topology: local_topology(&topology),
            control: Arc::new(control),
            segments: SegmentCache::default(),
        })
    }

    /// The paths to `dst`, shortest first.
    ///
    /// Answers are cached: without a new answer, segments that have not expired still make paths.
    /// Only if all segments have expired, the paths have, too.
    pub(crate) async fn paths(
        &self,
        dst: IsdAsn,
        freshness: Freshness,
    ) -> Result<Vec<Path>, SourceError> {
        let LocalAs {
            isd_as: src, core, ..
        } = self.topology.local;
        let questions = questions(src, core, dst);
        let mut asking = JoinSet::new();
        for question in &questions {
            if freshness == Freshness::New || !self.segments.is_recent(*question) {
                let control = Arc::clone(&self.control);
                let question = *question;
                asking.spawn(async move { (question, control.segments(question).await) });
            }
        }
        let mut failed = None;
        while let Some(answer) = asking.join_next().await {
            match answer {
                Ok((question, Ok(found))) => self.segments.put(question, found),
                Ok((question, Err(error))) => {
                    let Question { src, dst } = question;
                    tracing::debug!(%src, %dst, %error, "no segments");
                    failed = Some(more_telling(failed, error));
                }
                // The runtime is shutting down.
                Err(_) => {}
            }
        }
        let now = unix_now();
        let paths = self.make(&self.segments.unexpired(&questions, now), dst, now);
        if paths.is_empty() {
            // They show that the clock of this host is wrong, or that the control service is stale.
            let expired = self.make(&self.segments.all(&questions), dst, 0);
            if !expired.is_empty() {
                return Ok(expired);
            }
        }
        match failed {
            // A part of the answer is enough if it makes paths. If it makes none, an error explains
            // why; a refusal does so only when all requests were refused.
            Some(error) if paths.is_empty() && !self.segments.has_any(&questions) => Err(error),
            Some(error) if paths.is_empty() && !is_refusal(&error) => Err(error),
            _ => Ok(paths),
        }
    }

    /// The paths to `dst` that `segments` make and that have not expired at `now`. An ISD without an
    /// AS stands for its core ASes.
    fn make(&self, segments: &Segments, dst: IsdAsn, now: u64) -> Vec<Path> {
        let src = self.topology.local.isd_as;
        let ends = match dst.is_wildcard() {
            true => core_ases(segments, dst.isd()),
            false => BTreeSet::from([dst]),
        };
        let ends = ends.into_iter().filter(|end| *end != src);
        ends.flat_map(|end| combine(segments, src, end, MAX_PATHS))
            .filter(|combined| combined.path.expiry() > now)
            .filter_map(|combined| self.path(combined))
            .collect()
    }

    /// A path with its border router as next hop; `None` when this AS has no such interface.
    fn path(&self, combined: Combined) -> Option<Path> {
        let Combined { path, raw } = combined;
        let first = *path.interfaces.first()?;
        let next_hop = self.topology.routers.get(&first.id).copied();
        let path = next_hop
            .ok_or(PathError::NoNextHop(path.dst))
            .and_then(|next_hop| Path::new(path, raw, Some(next_hop)));
        path.inspect_err(|error| tracing::warn!(%first, %error, "a path cannot be used"))
            .ok()
    }
}

impl fmt::Display for Standalone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.control.fmt(f)
    }
}

fn local_topology(topology: &AsTopology) -> LocalTopology {
    let (first, last) = topology.dispatched_ports;
    let routers: BTreeMap<u16, SocketAddr> = topology
        .border_routers
        .values()
        .flat_map(|router| {
            let ids = router.interfaces.keys();
            ids.map(|id| (*id, router.internal_addr))
        })
        .collect();
    LocalTopology {
        local: LocalAs {
            isd_as: topology.isd_as,
            core: topology.core,
            mtu: topology.mtu,
        },
        ports: first..=last,
        routers,
    }
}

/// The core ASes of an ISD that segments begin or end in.
fn core_ases(segments: &Segments, isd: Isd) -> BTreeSet<IsdAsn> {
    let ups = segments.up.iter().map(Segment::first);
    let cores = segments.core.iter();
    let cores = cores.flat_map(|segment| [segment.first(), segment.last()]);
    ups.chain(cores).filter(|end| end.isd() == isd).collect()
}

fn is_refusal(error: &SourceError) -> bool {
    matches!(error, SourceError::Refused { .. })
}

/// The more informative error: requests that do not apply are refused in working networks, too.
fn more_telling(one: Option<SourceError>, other: SourceError) -> SourceError {
    match one {
        Some(one) if !is_refusal(&one) || is_refusal(&other) => one,
        _ => other,
    }
}

#[cfg(test)]
mod tests;
