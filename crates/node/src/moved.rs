//! Addresses of links that this machine has no more, as after DHCP has given it others.
//!
//! The machine looks once a second whether it has the addresses that its links need. If one is gone, the
//! source address of the route to the neighbour takes its place, or one that the user gives; the coordinator
//! is told, and sends a new configuration to this machine and to its neighbours. Connections to the
//! coordinator that were made from the old address are dead, and are made anew.
//!
//! An address that this run never had may be one that an administrator has mistyped, or that is still to
//! come: it is replaced only if the user wants that.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use hawser_backoff::Backoff;
use hawser_topology::AsTopology;
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::error::FetchError;
use crate::event::Event;
use crate::follow::{post, wait_after};
use crate::http::Client;
use crate::update::{Moved, Update};

/// Time between two looks at the addresses of this machine.
const CHECK: Duration = Duration::from_secs(1);
/// Waits after reports that fail.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));

/// The addresses of a link: here, and at the neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkAt {
    pub local: IpAddr,
    pub remote: SocketAddr,
}

/// The links of an AS.
pub(crate) fn links(topology: &AsTopology) -> Vec<LinkAt> {
    let routers = topology.border_routers.values();
    let interfaces = routers.flat_map(|router| router.interfaces.values());
    let at = interfaces.map(|interface| LinkAt {
        local: interface.underlay.local.ip(),
        remote: interface.underlay.remote,
    });
    at.collect()
}

/// What takes the place of addresses of links that the machine lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Substitutes {
    /// At most one of each family; of a family without one, the source address of the route to the
    /// neighbour.
    pub given: Vec<IpAddr>,
    /// Whether addresses are replaced too that this run never had.
    pub always: bool,
}

/// The addresses of links that the machine lacks, each with the one that takes its place: that of its family
/// that is given, or else what `by_route` finds for the neighbour. One that the machine lacks too, or that no
/// other machine reaches, takes no place. Those that are not `seen`, the ones that it once had, stay unless
/// the user wants them replaced.
pub(crate) fn moved(
    links: &[LinkAt],
    (machine, seen): (&BTreeSet<IpAddr>, &BTreeSet<IpAddr>),
    Substitutes { given, always }: &Substitutes,
    by_route: impl Fn(SocketAddr) -> Option<IpAddr>,
) -> BTreeSet<Moved> {
    let gone = links.iter().filter(|link| {
        // A router may be bound to all addresses.
        let is_lacking = !link.local.is_unspecified() && !machine.contains(&link.local);
        is_lacking && (*always || seen.contains(&link.local))
    });
    let mut all: BTreeSet<Moved> = BTreeSet::new();
    for link in gone {
        // Links at one address stay together.
        if all.iter().any(|known| known.from == link.local) {
            continue;
        }
        let same = |ip: &&IpAddr| ip.is_ipv4() == link.local.is_ipv4();
        let given = given.iter().find(same).copied();
        let to = given.or_else(|| by_route(link.remote));
        let to = to.filter(|to| same(&to) && machine.contains(to) && is_reached(*to));
        all.extend(to.map(|to| Moved {
            from: link.local,
            to,
        }));
    }
    all
}

/// Whether other machines may reach an address.
fn is_reached(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_unspecified() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unspecified() && !ip.is_unicast_link_local(),
    }
}

/// What is missing on this machine now, with what takes its place. Takes into `seen` which addresses of links
/// it has, and forgets those of other links.
pub(crate) fn missing(
    links: &[LinkAt],
    seen: &mut BTreeSet<IpAddr>,
    substitutes: &Substitutes,
) -> BTreeSet<Moved> {
    let machine: BTreeSet<IpAddr> = match hawser_kernel::interface::addresses() {
        Ok(all) => all.into_iter().map(|(_, ip)| ip).collect(),
        Err(error) => {
            tracing::debug!("the addresses of this machine cannot be read: {error}");
            return BTreeSet::new();
        }
    };
    seen.retain(|ip| links.iter().any(|link| link.local == *ip));
    let here = links.iter().map(|link| link.local);
    seen.extend(here.filter(|ip| machine.contains(ip)));
    moved(links, (&machine, seen), substitutes, by_route)
}

/// The source address of the route to `remote`. Sends nothing.
fn by_route(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(remote).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Watches the addresses of the links in `topology`, and reports those that have changed to the coordinator.
pub(crate) struct Watcher {
    pub client: Client,
    /// The path of this machine in the coordinator's API.
    pub api: String,
    pub topology: watch::Receiver<AsTopology>,
    pub substitutes: Substitutes,
    pub updates: Sender<Update>,
    pub events: UnboundedSender<Event>,
}

impl Watcher {
    /// Watches until the node ends.
    pub async fn watch(self) {
        let mut seen = BTreeSet::new();
        let substitutes = self.substitutes.clone();
        self.watch_by(|links| missing(links, &mut seen, &substitutes))
            .await;
    }

    /// Watches what `look` finds missing of the links. What the node could not act upon is handed over again.
    async fn watch_by(self, mut look: impl FnMut(&[LinkAt]) -> BTreeSet<Moved>) {
        let mut ticks = interval(CHECK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut known = BTreeSet::new();
        let (mut backoff, mut again) = (BACKOFF, None);
        let (mut failures, mut retry) = (BACKOFF, None::<Instant>);
        loop {
            ticks.tick().await;
            let links = links(&self.topology.borrow());
            let now = look(&links);
            let is_new = now != known;
            if is_new {
                known.clone_from(&now);
                (backoff, again) = (BACKOFF, Some(Instant::now()));
                failures.reset();
                for &Moved { from, to } in &now {
                    let _ = self.events.send(Event::Moved { from, to });
                }
            }
            if is_new || retry.is_some_and(|at| at <= Instant::now()) {
                let (done, outcome) = oneshot::channel();
                if self.updates.send(Update::Moved(now, done)).await.is_err() {
                    return;
                }
                retry = match outcome.await {
                    Ok(false) => Some(Instant::now() + failures.fail()),
                    _ => None,
                };
            }
            if again.is_none_or(|at| at > Instant::now()) {
                continue;
            }
            again = match self.report(&known, backoff == BACKOFF).await {
                Ok(()) => None,
                Err(error) => Some(Instant::now() + wait_after(&error, &mut backoff)),
            };
        }
    }

    /// Reports addresses, which the coordinator takes.
    async fn report(&self, all: &BTreeSet<Moved>, is_first: bool) -> Result<(), FetchError> {
        let path = format!("{}/address", self.api);
        for moved in all {
            // A connection of before may be from the address that is gone.
            let reported = post(&mut self.client.another(), &path, moved).await;
            if let Err(error) = reported {
                if is_first {
                    let _ = self.events.send(Event::NotMoved {
                        to: moved.to,
                        reason: error.to_string(),
                    });
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn link(local: &str, remote: &str) -> LinkAt {
        LinkAt {
            local: ip(local),
            remote: SocketAddr::new(ip(remote), 50000),
        }
    }

    #[test]
    fn an_address_that_is_gone_is_replaced_by_that_of_the_route_or_the_one_given() {
        let links = [
            link("10.0.0.1", "192.0.2.1"),
            link("10.0.0.1", "192.0.2.2"),
            link("10.0.0.2", "192.0.2.3"),
            link("fd00::1", "2001:db8::1"),
        ];
        let machine = ["10.0.0.2", "10.0.0.9", "10.0.0.8", "fe80::1"]
            .map(ip)
            .into();
        let seen = ["10.0.0.1", "fd00::1"].map(ip).into();
        let by_route = |remote: SocketAddr| match remote.is_ipv4() {
            true => Some(ip("10.0.0.9")),
            // Nothing that a neighbour reaches.
            false => Some(ip("fe80::1")),
        };
        let find = |seen: &BTreeSet<IpAddr>, given: &[&str], always| {
            let given = given.iter().copied().map(ip).collect();
            let substitutes = Substitutes { given, always };
            moved(&links, (&machine, seen), &substitutes, by_route)
        };
        let to = |to: &str| {
            let from = ip("10.0.0.1");
            BTreeSet::from([Moved { from, to: ip(to) }])
        };
        assert_eq!(find(&seen, &[], false), to("10.0.0.9"));
        assert_eq!(find(&seen, &["10.0.0.8"], false), to("10.0.0.8"));
        // One that the machine does not have yet is waited for.
        assert!(find(&seen, &["10.0.0.7"], false).is_empty());
        // One that never was here is left to the administrator.
        let never = BTreeSet::new();
        assert!(find(&never, &[], false).is_empty());
        assert_eq!(find(&never, &[], true), to("10.0.0.9"));
    }

    fn any_ip() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            (0..6u8).prop_map(|last| IpAddr::from([10, 0, 0, last])),
            (0..6u16).prop_map(|last| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last])),
            Just(IpAddr::from([127, 0, 0, 1])),
            Just(IpAddr::from([0, 0, 0, 0])),
        ]
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_node_could_not_act_upon_is_handed_over_again() {
        let (updates, mut taken) = tokio::sync::mpsc::channel(1);
        let (events, mut said) = tokio::sync::mpsc::unbounded_channel();
        let bundle = crate::run::testing::bundle(1, "key");
        let (_topology, topology) = watch::channel(bundle.topology().unwrap());
        let watcher = Watcher {
            // Nothing listens there.
            client: Client::new("http://127.0.0.1:9", "token", None).unwrap(),
            api: String::new(),
            topology,
            substitutes: Substitutes::default(),
            updates,
            events,
        };
        let (from, to) = (ip("10.0.0.1"), ip("10.0.0.2"));
        let lacking = BTreeSet::from([Moved { from, to }]);
        let found = lacking.clone();
        let watching = tokio::spawn(watcher.watch_by(move |_| found.clone()));
        for is_done in [false, false, true] {
            let update = tokio::time::timeout(Duration::from_secs(300), taken.recv()).await;
            let Ok(Some(Update::Moved(moved, outcome))) = update else {
                panic!("they were not handed over again");
            };
            assert_eq!(moved, lacking);
            outcome.send(is_done).unwrap();
        }
        // What is done is handed over no more, and was reported once.
        let more = tokio::time::timeout(Duration::from_secs(600), taken.recv()).await;
        assert!(more.is_err());
        watching.abort();
        let mut reported = 0;
        while let Ok(event) = said.try_recv() {
            reported += u32::from(event == Event::Moved { from, to });
        }
        assert_eq!(reported, 1);
    }

    proptest! {
        #[test]
        fn what_the_machine_has_stays_and_what_it_gets_it_has(
            links in prop::collection::vec((any_ip(), any_ip()), 0..6),
            machine in prop::collection::btree_set(any_ip(), 0..6),
            seen in prop::collection::btree_set(any_ip(), 0..6),
            always in any::<bool>(),
            given in prop::collection::vec(any_ip(), 0..3),
            route in prop::option::of(any_ip()),
        ) {
            let links: Vec<_> = links
                .into_iter()
                .map(|(local, remote)| LinkAt { local, remote: SocketAddr::new(remote, 1) })
                .collect();
            let substitutes = Substitutes { given, always };
            let all = moved(&links, (&machine, &seen), &substitutes, |_| route);
            let from: BTreeSet<_> = all.iter().map(|moved| moved.from).collect();
            prop_assert_eq!(from.len(), all.len());
            for Moved { from, to } in all {
                prop_assert!(links.iter().any(|link| link.local == from));
                prop_assert!(!machine.contains(&from) && machine.contains(&to));
                prop_assert!(always || seen.contains(&from));
                prop_assert!(from.is_ipv4() == to.is_ipv4() && is_reached(to));
            }
        }
    }
}
