//! The control plane of one AS: its segments, and the paths combined from them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hawser_path::Interface;
use hawser_proto::control_plane::PathSegment;
use hawser_proto::daemon::PathsResponse;
use hawser_rpc::Encoded;
use hawser_segment::{Combined, combine};
use hawser_topology::{AsTopology, IsdAsn, Shape};

use crate::beacons::{Beacons, MAX_PATHS};
use crate::cache::{CachedSegment, Found};
use crate::carriers::{Carriers, Underlays, route_of, underlays};
use crate::error::LookupError;
use crate::graph::{Along, Graph};
use crate::pki::Pki;
use crate::segment::{EntrySource, Stamp};
use crate::wire;

/// Maximum number of cached segments.
const MAX_SEGMENTS: usize = 2048;

/// Seconds for which an interface counts as down after a host reported it. A host that receives further
/// SCMP errors about the interface reports it again, so that a link that stays down costs each host a packet
/// per that time; one that works again is used after that time at the latest. scionproto's daemon waits 10 s.
const DOWN_FOR: u64 = 4;

/// Maximum size of the cached answers, in bytes.
const MAX_KEPT: usize = 1 << 20;

/// The state of one AS's control plane.
pub(crate) struct Plane {
    pub beacons: Beacons,
    pub topology: AsTopology,
    /// What carries the links of this AS.
    carriers: Carriers,
    /// The PKI to sign segments with; `None` if the network has none.
    pub pki: Option<Pki>,
    local: usize,
    lifetime: Duration,
    /// Interfaces that hosts reported down, each with the Unix second at which it counts as up
    /// again.
    revoked: HashMap<Interface, u64>,
    /// Cached answers by destination.
    answers: HashMap<IsdAsn, Answer>,
    /// Size of `answers` in bytes.
    kept: usize,
    /// Increases whenever the segments may have changed.
    pub generation: u64,
}

/// The answer to a request for paths.
pub(crate) type Answer = Encoded<PathsResponse>;

/// An end of a segment lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// One AS.
    As(usize),
    /// Any core AS of an ISD.
    Core { isd: u16 },
}

impl Plane {
    /// The control plane of the AS with the index `local`. `sources` is what all ASes know
    /// for their entries, in the order of the network.
    pub fn new(
        graph: Graph,
        sources: Vec<EntrySource>,
        topology: AsTopology,
        local: usize,
        lifetime: Duration,
    ) -> Self {
        // The stamp is due at once: the first request creates the first segments.
        let beacons = Beacons::new(graph, sources, Stamp::new(0, lifetime), MAX_SEGMENTS);
        Self::with_beacons(beacons, topology, local, lifetime)
    }

    /// The control plane of the AS with the index `local`, with these segments.
    pub fn with_beacons(
        beacons: Beacons,
        topology: AsTopology,
        local: usize,
        lifetime: Duration,
    ) -> Self {
        let carriers = Carriers::new(underlays(&topology));
        Self {
            beacons,
            topology,
            carriers,
            pki: None,
            local,
            lifetime,
            revoked: HashMap::new(),
            answers: HashMap::new(),
            kept: 0,
            generation: 0,
        }
    }

    /// The ISD-AS of this AS.
    pub fn isd_as(&self) -> IsdAsn {
        self.topology.isd_as
    }

    /// The daemon's answer at `now` (Unix seconds) to a request for paths to an AS, or to all core
    /// ASes of an ISD (`1-0`).
    pub fn paths(&mut self, src: IsdAsn, dst: IsdAsn, now: u64) -> Result<Answer, LookupError> {
        self.check_source(src)?;
        let ends = self.ends(dst)?;
        self.renew(now);
        if ends == Ends::As(self.local) {
            let mtu = self.beacons.graph.network.ases[self.local].mtu;
            return Ok(wire::local_path(mtu, now).into());
        }
        let known = self.revoked.len();
        // An expiry more than `DOWN_FOR` ahead means that the clock was set back.
        self.revoked
            .retain(|_, until| *until > now && *until <= now.saturating_add(DOWN_FOR));
        if self.revoked.len() < known {
            self.forget_answers();
        }
        if let Some(answer) = self.answers.get(&dst) {
            return Ok(answer.clone());
        }
        let mut paths = Vec::new();
        for dst in self.ases(&ends) {
            paths.extend(self.combined(dst));
        }
        let answer = Answer::from(wire::paths(&self.topology, &paths));
        let length = answer.bytes().len();
        if self.kept + length > MAX_KEPT {
            self.forget_answers();
        }
        self.kept += length;
        self.answers.insert(dst, answer.clone());
        Ok(answer)
    }

    /// The paths to an AS, in scionproto's order, without paths over an interface that a host
    /// reported down.
    fn combined(&mut self, dst: usize) -> Vec<Combined> {
        if dst == self.local {
            return Vec::new();
        }
        let segments = self.beacons.joining(self.local, dst).segments();
        let dst = self.beacons.graph.isd_as(dst);
        let mut paths = combine(&segments, self.isd_as(), dst, MAX_PATHS);
        let down = |interface: &Interface| self.revoked.contains_key(interface);
        paths.retain(|path| !path.path.interfaces.iter().any(down));
        for path in &mut paths {
            let first = path.path.interfaces.first();
            if let Some(mtu) = first.and_then(|first| self.carriers.mtu(first.id)) {
                let announced = &mut path.path.metadata.mtu;
                *announced = mtu.min(*announced);
            }
        }
        paths
    }

    /// Looks at what carries the links, if that is due at `now`.
    pub fn look_at_carriers(&mut self, now: Instant) {
        if self.carriers.look(now, route_of) {
            self.forget_answers();
        }
    }

    /// Takes other underlay addresses of links.
    pub fn set_underlays(&mut self, links: Underlays) {
        self.carriers.set_links(links);
    }

    /// Leaves out paths over an interface of the network for a while, because a host reported it
    /// down.
    pub fn revoke(&mut self, isd_as: IsdAsn, id: u64, now: u64) {
        let network = &self.beacons.graph.network;
        let id = u16::try_from(id).ok();
        if let Some(id) = id.filter(|&id| network.link_at(isd_as, id).is_some()) {
            let until = now.saturating_add(DOWN_FOR);
            self.revoked.insert(Interface { isd_as, id }, until);
            self.forget_answers();
        }
    }

    /// The indices of the ASes that `ends` stands for.
    fn ases(&self, ends: &Ends) -> Vec<usize> {
        match *ends {
            Ends::As(at) => vec![at],
            Ends::Core { isd } => self.beacons.graph.core_ases(Some(isd)),
        }
    }

    /// The index of an AS.
    pub fn find(&self, isd_as: IsdAsn) -> Result<usize, LookupError> {
        if isd_as.is_wildcard() {
            return Err(LookupError::Wildcard(isd_as));
        }
        let found = self.beacons.graph.find(isd_as);
        found.ok_or(LookupError::Unknown(isd_as))
    }

    /// Checks that a request starts in this AS; the ISD-AS 0 also means this AS.
    fn check_source(&self, requested: IsdAsn) -> Result<(), LookupError> {
        let local = self.isd_as();
        if requested == IsdAsn::WILDCARD || requested == local {
            return Ok(());
        }
        Err(LookupError::Foreign { local, requested })
    }

    /// The segments between `src` and `dst` at `now` (Unix seconds), as from scionproto's control
    /// service: up segments from this AS to the core ASes of its ISD (`1-0`) or one of them; down
    /// segments from core ASes, or one, to an AS below; core segments between core ASes, from any
    /// of `dst` to any of `src` in the direction of beaconing.
    ///
    /// If `src` is this AS (or 0, with the same meaning) and `dst` one AS, the answer contains all
    /// segments that paths between them consist of. For such requests scionproto returns only some
    /// of the segments, or refuses them.
    pub fn lookup(&mut self, src: IsdAsn, dst: IsdAsn, now: u64) -> Result<Found, LookupError> {
        let src = if src == IsdAsn::WILDCARD {
            Ends::As(self.local)
        } else {
            self.ends(src)?
        };
        let dst = self.ends(dst)?;
        self.renew(now);
        let is_core = |at| self.beacons.graph.is_core(at);
        let mut found = Found::default();
        match (src, dst) {
            (Ends::As(a), Ends::As(b)) if a == b => {}
            (Ends::As(at), Ends::As(to)) if at == self.local => {
                found = self.beacons.joining(at, to);
            }
            (Ends::As(at), _) if !is_core(at) => {
                self.check_source(self.beacons.graph.isd_as(at))?;
                found.up = self.beacons.below_core(at, &self.ases(&dst));
            }
            (_, Ends::As(at)) if !is_core(at) => {
                found.down = self.beacons.below_core(at, &self.ases(&src));
            }
            _ => {
                let (from, to) = (self.ases(&dst), self.ases(&src));
                found.core = self.beacons.between(&from, &to, Along::Core);
            }
        }
        Ok(found)
    }

    /// The message with a segment for hosts.
    pub fn message(&mut self, segment: &CachedSegment) -> Result<PathSegment, LookupError> {
        let message = segment.message(self.pki.as_mut());
        message.map_err(|reason| LookupError::Unsigned(reason.to_string()))
    }

    fn ends(&self, isd_as: IsdAsn) -> Result<Ends, LookupError> {
        let isd = isd_as.isd();
        if !isd_as.asn().is_wildcard() {
            return self.find(isd_as).map(Ends::As);
        }
        if isd.is_wildcard() {
            return Err(LookupError::Wildcard(isd_as));
        }
        let mut ases = self.beacons.graph.network.ases.iter();
        if !ases.any(|r#as| r#as.isd_as.isd() == isd) {
            return Err(LookupError::Unknown(isd_as));
        }
        Ok(Ends::Core { isd: isd.to_u16() })
    }

    /// Sets the state and the shape of a link. Drops cached answers, so that no later answer has a
    /// path over a link that is down.
    pub fn set_link(&mut self, link: usize, up: bool, shape: Shape) {
        if self.beacons.graph.set_link(link, up, shape) {
            self.forget();
        }
    }

    /// Like [`Self::set_link`], for the link at an interface. Returns `false` if the network has no
    /// such link, or its segments were created elsewhere.
    pub fn set_link_at(&mut self, (isd_as, id): (IsdAsn, u16), up: bool, shape: Shape) -> bool {
        let found = self.beacons.graph.network.link_at(isd_as, id);
        let found = found.filter(|_| !self.beacons.is_published());
        if let Some((link, _)) = found {
            self.set_link(link, up, shape);
        }
        found.is_some()
    }

    /// Renews the segments if they are due. Segments are created only on request, so an idle
    /// service needs no timer.
    fn renew(&mut self, now: u64) {
        if self.beacons.is_published() {
            // Newer ones come from elsewhere. Expired ones would only fail in the routers.
            if now >= self.beacons.stamp.expiry {
                self.forget();
            }
            return;
        }
        if self.beacons.stamp.is_due(now) {
            self.beacons.stamp = Stamp::new(now, self.lifetime);
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.generation += 1;
        self.beacons.clear();
        self.forget_answers();
    }

    fn forget_answers(&mut self) {
        self.answers.clear();
        self.kept = 0;
    }
}

#[cfg(test)]
mod tests;
