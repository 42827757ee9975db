//! Neighbours that are known by names: the names are resolved again and again, as their addresses may
//! change while the AS runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use hawser_backoff::Backoff;
use hawser_bundle::{Bundle, ContentError, Neighbours};
use tokio::net::lookup_host;
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::event::Event;
use crate::update::Update;

/// Time between two rounds. A neighbour that moves is lost for so long at most, and as long as the
/// name server keeps its old address.
const INTERVAL: Duration = Duration::from_secs(5);
/// Waits before addresses that could not be put into force are handed over again.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(5), Duration::from_secs(60));
/// Longest time of one lookup.
const PATIENCE: Duration = Duration::from_secs(5);
/// Lookups at once: each takes a thread.
const MAX_LOOKUPS: usize = 16;

/// What is known of the neighbours of an AS.
pub(crate) struct Located {
    names: BTreeMap<u16, String>,
    /// The local ends of the links, whose address family the addresses must have.
    local: BTreeMap<u16, SocketAddr>,
    /// The addresses that were reported.
    known: BTreeMap<u16, SocketAddr>,
    /// The interfaces whose names could not be resolved, as reported.
    unknown: BTreeSet<u16>,
}

/// What one round of lookups found: the addresses of a name, or why there are none.
pub(crate) type Round = BTreeMap<u16, Result<Vec<SocketAddr>, String>>;

impl Located {
    /// The neighbours of a configuration, without addresses.
    pub fn new(bundle: &Bundle) -> Result<Self, ContentError> {
        let Neighbours(names) = bundle.neighbours()?;
        let routers = bundle.topology()?.border_routers.into_values();
        let interfaces = routers.flat_map(|router| router.interfaces);
        Ok(Self {
            names,
            local: interfaces
                .map(|(id, interface)| (id, interface.underlay.local))
                .collect(),
            known: BTreeMap::new(),
            unknown: BTreeSet::new(),
        })
    }

    /// Whether no neighbour is known by a name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes what a round found. Returns all known addresses if any is new, and what is to be
    /// reported. A name that cannot be resolved keeps its last address.
    pub fn observe(&mut self, round: Round) -> (Option<BTreeMap<u16, SocketAddr>>, Vec<Event>) {
        let (mut changed, mut events) = (false, Vec::new());
        for (interface, found) in round {
            let Some(name) = self.names.get(&interface) else {
                continue;
            };
            let is_v4 = self.local.get(&interface).is_none_or(SocketAddr::is_ipv4);
            let known = self.known.get(&interface).copied();
            let address = found.and_then(|all| {
                let all: Vec<_> = all.into_iter().filter(|a| a.is_ipv4() == is_v4).collect();
                // Of several, the one in use stays.
                let same = all.iter().copied().find(|a| Some(*a) == known);
                let family = if is_v4 { "IPv4" } else { "IPv6" };
                let first = same.or_else(|| all.into_iter().min());
                first.ok_or_else(|| format!("it has no {family} address"))
            });
            match address {
                Ok(address) => {
                    self.unknown.remove(&interface);
                    if known != Some(address) {
                        changed = true;
                        self.known.insert(interface, address);
                        events.push(Event::NeighbourAt { interface, address });
                    }
                }
                Err(reason) => {
                    if self.unknown.insert(interface) {
                        let name = name.clone();
                        events.push(Event::NeighbourUnknown {
                            interface,
                            name,
                            reason,
                        });
                    }
                }
            }
        }
        (changed.then(|| self.known.clone()), events)
    }

    /// Looks all names up, some at once.
    async fn look_up(&self) -> Round {
        let mut round = Round::new();
        let mut lookups = JoinSet::new();
        for (&id, name) in &self.names {
            if lookups.len() >= MAX_LOOKUPS
                && let Some(Ok((id, found))) = lookups.join_next().await
            {
                round.insert(id, found);
            }
            let name = name.clone();
            lookups.spawn(async move {
                let found = match timeout(PATIENCE, lookup_host(name)).await {
                    Ok(Ok(found)) => Ok(found.collect()),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err(format!("no answer within {PATIENCE:?}")),
                };
                (id, found)
            });
        }
        while let Some(done) = lookups.join_next().await {
            if let Ok((id, found)) = done {
                round.insert(id, found);
            }
        }
        round
    }
}

/// Resolves the names until nobody takes what was found. Addresses that could not be put into force are
/// handed over again, though they are the same.
pub(crate) async fn locate(
    mut located: Located,
    updates: Sender<Update>,
    events: UnboundedSender<Event>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut backoff, mut again) = (BACKOFF, None);
    loop {
        let now: Instant = ticks.tick().await;
        let round = located.look_up().await;
        let (changed, said) = located.observe(round);
        for event in said {
            // Without a receiver nobody wants to know.
            let _ = events.send(event);
        }
        if changed.is_none() && again.is_none_or(|at| at > now) {
            continue;
        }
        let (installed, outcome) = oneshot::channel();
        let update = Update::Neighbours(located.known.clone(), installed);
        if updates.send(update).await.is_err() {
            return;
        }
        again = match outcome.await {
            Ok(false) => Some(Instant::now() + backoff.fail()),
            _ => None,
        };
        if again.is_none() {
            backoff.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: u16 = 4;

    fn located() -> Located {
        let local = |id| {
            let any = if id % 2 == 0 { "0.0.0.0:1" } else { "[::]:1" };
            (id, any.parse().unwrap())
        };
        Located {
            names: (0..NAMES).map(|id| (id, format!("as{id}:50000"))).collect(),
            local: (0..NAMES).map(local).collect(),
            known: BTreeMap::new(),
            unknown: BTreeSet::new(),
        }
    }

    fn address(number: u8) -> SocketAddr {
        match number % 2 {
            0 => SocketAddr::from(([10, 0, 0, number], 50000)),
            _ => SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, number.into()], 50000)),
        }
    }

    fn rounds() -> impl Strategy<Value = Vec<Round>> {
        let found = prop_oneof![
            prop::collection::vec((0..6u8).prop_map(address), 0..4).prop_map(Ok),
            Just(Err("unknown".to_owned())),
        ];
        let round = prop::collection::btree_map(0..NAMES + 1, found, 0..6);
        prop::collection::vec(round, 1..20)
    }

    proptest! {
        /// Whatever the name server answers: an address is of the family of its link and was found; it
        /// is reported once; one that is still found stays; nothing is forgotten.
        #[test]
        fn addresses_change_only_when_they_must(rounds in rounds()) {
            let mut located = located();
            let mut before: BTreeMap<u16, SocketAddr> = BTreeMap::new();
            let mut unknown = BTreeSet::new();
            for round in rounds {
                let (changed, events) = located.observe(round.clone());
                let after = changed.clone().unwrap_or_else(|| before.clone());
                prop_assert_eq!(changed.is_some(), after != before);
                for id in before.keys() {
                    prop_assert!(after.contains_key(id));
                }
                for (id, at) in &after {
                    prop_assert!(*id < NAMES && at.is_ipv4() == id.is_multiple_of(2));
                    let old = before.get(id);
                    let found = round.get(id).cloned().and_then(Result::ok).unwrap_or_default();
                    match old {
                        Some(old) if old == at => {}
                        _ => {
                            prop_assert!(found.contains(at));
                            prop_assert!(old.is_none_or(|old| !found.contains(old)));
                            let event = Event::NeighbourAt { interface: *id, address: *at };
                            prop_assert_eq!(events.iter().filter(|e| **e == event).count(), 1);
                        }
                    }
                }
                for event in &events {
                    if let Event::NeighbourUnknown { interface, .. } = event {
                        prop_assert!(unknown.insert(*interface), "reported twice");
                    }
                }
                let fits = |id: &u16, found: &Result<Vec<SocketAddr>, String>| {
                    let all = found.as_deref().unwrap_or_default();
                    all.iter().any(|at| at.is_ipv4() == id.is_multiple_of(2))
                };
                unknown.retain(|id| !round.get(id).is_some_and(|found| fits(id, found)));
                before = after;
            }
        }
    }

    #[tokio::test]
    async fn names_are_looked_up_by_the_system() {
        let mut located = located();
        located.names = [
            (0, "127.0.0.1:50001".to_owned()),
            // A name that never exists (RFC 6761, section 6.4).
            (2, "nowhere.invalid:50001".to_owned()),
        ]
        .into();
        let round = located.look_up().await;
        let (changed, events) = located.observe(round);
        let at = "127.0.0.1:50001".parse().unwrap();
        assert_eq!(changed, Some([(0, at)].into()));
        assert_eq!(events.len(), 2, "{events:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_that_are_not_in_force_are_handed_over_again() {
        let mut located = located();
        located.names = [(0, "127.0.0.1:50001".to_owned())].into();
        let (updates, mut taken) = tokio::sync::mpsc::channel(1);
        let (events, _said) = tokio::sync::mpsc::unbounded_channel();
        let locating = tokio::spawn(locate(located, updates, events));
        for is_in_force in [false, false, true] {
            let Some(Update::Neighbours(known, outcome)) = taken.recv().await else {
                panic!("no addresses");
            };
            assert_eq!(known, [(0, "127.0.0.1:50001".parse().unwrap())].into());
            outcome.send(is_in_force).unwrap();
        }
        // What is in force and stays is handed over no more.
        let more = timeout(Duration::from_secs(3600), taken.recv()).await;
        assert!(more.is_err());
        locating.abort();
    }
}
