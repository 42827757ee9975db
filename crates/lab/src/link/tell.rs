//! Telling a lab's processes of a link's change.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hawser_router::Counters;
use hawser_router::live::{Reply, Request, call};
use hawser_topology::{End, Link, LinkState, Side};

use crate::Lab;
use crate::state::{AsState, Service, State};

/// Longest wait for the BFD session of two routers to come up: until then each sends one packet a
/// second (RFC 5880, 6.8.3).
const BFD_UP: Duration = Duration::from_secs(10);
/// How often they are asked.
const ASK: Duration = Duration::from_millis(20);

impl Lab {
    /// Tells the routers at both ends, and every control service, but for those that the user runs.
    pub(super) fn tell(&self, state: &State, link: &Link, wanted: LinkState) -> Vec<String> {
        let mut failures = Vec::new();
        for side in [Side::A, Side::B] {
            let end = link.end(side);
            let Some(as_) = state.find(end.isd_as).map(|at| &state.ases[at]) else {
                continue;
            };
            match self.tell_router(as_, end, wanted) {
                // One that the user runs may be another's, which listens to nobody, or not run yet;
                // one of ours that runs listens.
                Err(_) if as_.no_router => {}
                told => failures.extend(told.err()),
            }
        }
        for as_ in state.ases.iter().filter(|as_| !as_.no_control) {
            use hawser_control::live::{Reply, Request, call};
            let request = Request::SetLink {
                a: (link.a.isd_as, link.a.id),
                up: wanted.up,
                shape: wanted.shape,
            };
            match call(&self.dir.as_dir(&as_.folder).control_socket(), &request) {
                Ok(Reply::Done) => {}
                Ok(other) => failures.push(format!("control of {}: {other:?}", as_.isd_as)),
                Err(e) => failures.push(e.to_string()),
            }
        }
        failures
    }

    /// Tells the router that has one end of a link.
    fn tell_router(&self, as_: &AsState, end: &End, wanted: LinkState) -> Result<(), String> {
        let (name, socket) = self.router_of(as_, end)?;
        let request = Request::SetLink {
            id: end.id,
            state: wanted,
        };
        match call(&socket, &request) {
            Ok(Reply::Done) => Ok(()),
            Ok(other) => Err(format!("{name}: {other:?}")),
            Err(e) => Err(e.to_string()),
        }
    }

    /// The router that has one end of a link, in words, and its socket.
    fn router_of(&self, as_: &AsState, end: &End) -> Result<(String, PathBuf), String> {
        let dir = self.dir.as_dir(&as_.folder);
        let topology = dir.topology().map_err(|e| e.to_string())?;
        let index = as_.routers.iter().position(|router| {
            let router = topology.border_routers.get(&router.name);
            router.is_some_and(|router| router.interfaces.contains_key(&end.id))
        });
        let Some(index) = index else {
            return Err(format!(
                "no router of {} has the interface {end}",
                as_.isd_as
            ));
        };
        let name = as_.service_name(Service::Router(index));
        Ok((name, as_.router_socket(&dir, index)))
    }

    /// Waits until the BFD session of the routers at both ends is up, if the lab runs both. Returns
    /// those for which it is not.
    pub(super) fn await_bfd(&self, state: &State, link: &Link) -> Vec<String> {
        let mut ends = Vec::with_capacity(2);
        for side in [Side::A, Side::B] {
            let end = link.end(side);
            let as_ = state.find(end.isd_as).map(|at| &state.ases[at]);
            match as_.filter(|as_| !as_.no_router) {
                Some(as_) => ends.push((as_, end)),
                None => return Vec::new(),
            }
        }
        let deadline = Instant::now() + BFD_UP;
        loop {
            let mut deaf = Vec::new();
            for (as_, end) in &ends {
                match self.hears(as_, end) {
                    Ok(true) => {}
                    Ok(false) => deaf.push(format!(
                        "the router at {end} does not hear its neighbour: is the link's loss that high?"
                    )),
                    Err(why) => return vec![why],
                }
            }
            if deaf.is_empty() || Instant::now() > deadline {
                return deaf;
            }
            std::thread::sleep(ASK);
        }
    }

    /// Whether a router hears its neighbour, or does not listen for it.
    fn hears(&self, as_: &AsState, end: &End) -> Result<bool, String> {
        let (name, socket) = self.router_of(as_, end)?;
        match call(&socket, &Request::Counters) {
            Ok(Reply::Counters(Counters { bfd, .. })) => {
                Ok(bfd.get(&end.id.to_string()).copied().unwrap_or(true))
            }
            Ok(other) => Err(format!("{name}: {other:?}")),
            Err(e) => Err(e.to_string()),
        }
    }
}
