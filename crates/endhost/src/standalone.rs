//! An AS without a daemon: its `topology.json` says where the control service is, and this host
//! makes paths of the segments it hands out. scionproto's programs call this standalone mode.

mod control;
mod store;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_segment::{Combined, Segments, combine};
use hawser_topology::{AsDir, AsTopology};
use sciparse::identifier::isd_asn::IsdAsn;
use thiserror::Error;
use tokio::task::JoinSet;

use self::control::Control;
use self::store::Store;
use self::verify::Verifier;
use crate::path::{Path, PathError};
use crate::service::SourceError;
use crate::source::{Age, Facts, LocalAs};

/// No more paths than these are made to one AS: the shortest. No network in use has so many that
/// are worth a choice.
const MOST_PATHS: usize = 1000;

/// Paths made here, of the control service's segments.
pub(crate) struct Standalone {
    facts: Facts,
    control: Control,
    store: Store,
}

/// Why a folder does not do in place of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// `topology.json` is not there, or is not one.
    #[error("{0}")]
    Topology(String),
    /// There is a folder `certs`, but what is in it is no use.
    #[error("{0}")]
    Certs(String),
    /// It lists no control service.
    #[error("{file} lists no control service: there is nobody to ask for paths")]
    NoControlService {
        /// The file.
        file: String,
    },
}

impl Standalone {
    /// Reads `topology.json` in `folder`, and the TRCs in its folder `certs` if there is one: then
    /// segments must be signed.
    pub(crate) fn open(folder: &FilePath) -> Result<Self, FolderError> {
        let topology = AsDir::new(folder).topology();
        let topology = topology.map_err(|error| FolderError::Topology(error.to_string()))?;
        let file = || folder.join("topology.json").display().to_string();
        let services: Vec<SocketAddr> = topology.control_service.values().copied().collect();
        let certs = folder.join("certs");
        let verifier = match certs.is_dir() {
            true => Some(Verifier::load(&certs).map_err(|e| FolderError::Certs(e.to_string()))?),
            false => {
                tracing::warn!(
                    "{} is not there: path segments are believed unverified; put the ISD's TRC there",
                    certs.display()
                );
                None
            }
        };
        let control = Control::new(&services, verifier);
        let control = control.ok_or_else(|| FolderError::NoControlService { file: file() })?;
        Ok(Self {
            facts: facts(&topology),
            control,
            store: Store::default(),
        })
    }

    /// What the file says about this AS.
    pub(crate) fn facts(&self) -> Facts {
        self.facts.clone()
    }

    /// The paths to `dst`, shortest first.
    ///
    /// Answers are kept: where there is none now, segments that have not expired still make paths.
    pub(crate) async fn paths(&self, dst: IsdAsn, age: Age) -> Result<Vec<Path>, SourceError> {
        let LocalAs {
            isd_as: src, core, ..
        } = self.facts.local;
        let questions = questions(src, core, dst);
        let mut asking = JoinSet::new();
        for question in &questions {
            if age == Age::New || !self.store.is_young(*question) {
                let control = self.control.clone();
                let question = *question;
                asking.spawn(async move { (question, control.segments(question).await) });
            }
        }
        let mut failed = None;
        while let Some(answer) = asking.join_next().await {
            match answer {
                Ok((question, Ok(found))) => self.store.put(question, found),
                Ok((question, Err(error))) => {
                    let Question { src, dst } = question;
                    tracing::debug!(%src, %dst, %error, "no segments");
                    failed = Some(worse(failed, error));
                }
                // The runtime is ending.
                Err(_) => {}
            }
        }
        let now = unix_now();
        let paths = self.make(&self.store.segments(&questions, now), dst, now);
        match failed {
            // A part of the answer is enough if it makes paths; without any, and with all questions
            // refused, it is for the control service to say why.
            Some(error) if paths.is_empty() && !self.store.has_any(&questions) => Err(error),
            Some(error) if paths.is_empty() && !is_refusal(&error) => Err(error),
            _ => Ok(paths),
        }
    }

    /// The paths to `dst` that can be made of `segments` and have not expired at `now`.
    fn make(&self, segments: &Segments, dst: IsdAsn, now: u64) -> Vec<Path> {
        combine(segments, self.facts.local.isd_as, dst, MOST_PATHS)
            .into_iter()
            .filter(|combined| combined.path.expiry() > now)
            .filter_map(|combined| self.path(combined))
            .collect()
    }

    /// A path with the router to hand its packets to; none when this AS has no such interface.
    fn path(&self, combined: Combined) -> Option<Path> {
        let Combined { path, raw } = combined;
        let first = *path.interfaces.first()?;
        let next_hop = self.facts.routers.get(&first.id).copied();
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

fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

fn facts(topology: &AsTopology) -> Facts {
    let (first, last) = topology.dispatched_ports;
    let routers: BTreeMap<u16, SocketAddr> = topology
        .border_routers
        .values()
        .flat_map(|router| {
            let ids = router.interfaces.keys();
            ids.map(|id| (*id, router.internal_addr))
        })
        .collect();
    Facts {
        local: LocalAs {
            isd_as: topology.isd_as,
            core: topology.core,
            mtu: topology.mtu,
        },
        ports: first..=last,
        routers,
    }
}

/// The segments between two ASes; AS number 0 stands for all core ASes of an ISD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) src: IsdAsn,
    pub(crate) dst: IsdAsn,
}

/// What to ask for paths from `src` to `dst` without knowing whether `dst` is a core AS: the up
/// segments, core segments to `dst` itself or to all core ASes of its ISD, and down segments. What
/// does not apply is refused or has an empty answer (SCION control plane, "Path Lookup").
fn questions(src: IsdAsn, core: bool, dst: IsdAsn) -> Vec<Question> {
    let cores_of = |isd_as: IsdAsn| IsdAsn::from_u64(isd_as.to_u64() >> 48 << 48);
    let (here, there) = (cores_of(src), cores_of(dst));
    let pairs = if core {
        vec![(src, dst), (src, there), (there, dst)]
    } else {
        vec![(src, here), (here, there), (here, dst), (there, dst)]
    };
    let mut questions = Vec::new();
    for (src, dst) in pairs {
        let question = Question { src, dst };
        if !questions.contains(&question) {
            questions.push(question);
        }
    }
    questions
}

fn is_refusal(error: &SourceError) -> bool {
    matches!(error, SourceError::Refused { .. })
}

/// The error that says more: questions that do not apply are refused in the best of networks.
fn worse(one: Option<SourceError>, other: SourceError) -> SourceError {
    match one {
        Some(one) if !is_refusal(&one) || is_refusal(&other) => one,
        _ => other,
    }
}

#[cfg(test)]
mod tests;
