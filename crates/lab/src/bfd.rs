//! Waiting for the BFD sessions of a lab's routers (RFC 5880).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hawser_topology::{End, IsdAsn, Link};

use crate::dir::LabDir;
use crate::live;
use crate::state::{AsState, LabState, Service};

/// Longest time in which no further session comes up. A session that is down sends at most once a
/// second (RFC 5880, 6.8.3), and on a busy machine the routers of a large lab wait for CPU time.
const STALL: Duration = Duration::from_secs(10);
/// Interval at which routers are polled.
const POLL: Duration = Duration::from_millis(20);

/// Waits until the routers at both ends of each link have a BFD session with each other, if the lab
/// runs both. Returns the interfaces whose session did not come up; fails when `check`, which is
/// called repeatedly, fails.
pub(crate) fn wait<'a, E>(
    dir: &LabDir,
    state: &LabState,
    links: impl IntoIterator<Item = &'a Link>,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<BTreeSet<(IsdAsn, u16)>, E> {
    let owner = |end: &End| {
        let at = state.find(end.isd_as)?;
        (!state.ases[at].no_router).then_some(at)
    };
    // The interfaces without a session, by AS.
    let mut down: BTreeMap<usize, BTreeSet<u16>> = BTreeMap::new();
    for link in links {
        if let (Some(a), Some(b)) = (owner(&link.a), owner(&link.b)) {
            down.entry(a).or_default().insert(link.a.id);
            down.entry(b).or_default().insert(link.b.id);
        }
    }
    let mut deadline = Instant::now() + STALL;
    while !down.is_empty() && Instant::now() < deadline {
        for (&owner, interfaces) in &mut down {
            check()?;
            let before = interfaces.len();
            retain_down(dir, &state.ases[owner], interfaces);
            if interfaces.len() < before {
                deadline = Instant::now() + STALL;
            }
        }
        down.retain(|_, interfaces| !interfaces.is_empty());
        if !down.is_empty() {
            std::thread::sleep(POLL);
        }
    }
    let named = |(owner, ids): (usize, BTreeSet<u16>)| {
        let isd_as = state.ases[owner].isd_as;
        ids.into_iter().map(move |id| (isd_as, id))
    };
    Ok(down.into_iter().flat_map(named).collect())
}

/// Keeps only the interfaces whose session is down according to the AS's routers.
fn retain_down(dir: &LabDir, as_: &AsState, interfaces: &mut BTreeSet<u16>) {
    let as_dir = dir.as_dir(as_.isd_as);
    for router in 0..as_.routers.len() {
        match live::counters(&as_.socket(&as_dir, Service::Router(router))) {
            // An interface without BFD is up as soon as its router runs.
            Ok(counters) => interfaces.retain(|id| {
                !counters.interfaces.contains_key(id)
                    || live::session(&counters, *id) == Some(false)
            }),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}
