//! Subflows of a host that share links.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Time of which the rate of a member before counts.
const BEFORE_WINDOW: Duration = Duration::from_secs(1);
/// The present rate is that of this many round trips, within these bounds.
const RECENT_ROUND_TRIPS: u32 = 2;
const RECENT_BOUNDS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));
/// A member has fallen when it delivers less than this part of what it did before. Probing for the
/// shortest round-trip time takes less.
const FALLEN: f64 = 0.7;
/// Times as long as the present rate is measured, for which a member takes what others give up.
const TAKING: u32 = 4;
/// The rate that a member takes is raised meanwhile when it would grow by this part.
const MIN_RAISE: f64 = 0.02;

/// The subflows of a host, and the interfaces that their paths cross. A subflow that shares an
/// interface with others is their *member*.
///
/// Rate control of members is coupled, so that they take one flow's share of the link together:
/// each [learns](crate::RateControl::couple) with how many it shares its busiest link, and what one
/// gives up is [taken](crate::RateControl::take) by the others at once, since the link that they
/// share has carried it until now. Subflows over disjoint paths stay independent.
#[derive(Debug)]
pub struct Coupling<K, I> {
    members: BTreeMap<K, Member<I>>,
}

#[derive(Debug)]
struct Member<I> {
    interfaces: Vec<I>,
    /// Bytes delivered until some times, the latest last.
    delivered: VecDeque<(Instant, u64)>,
    recent: Duration,
    /// Since when it takes what others give up, and the rate.
    taken: Option<(Instant, f64)>,
}

impl<K, I> Default for Coupling<K, I> {
    fn default() -> Self {
        Self {
            members: BTreeMap::new(),
        }
    }
}

impl<I> Member<I> {
    /// Bytes per second between two times; `None` if that is not known.
    fn rate(&self, from: Instant, until: Instant) -> Option<f64> {
        let at = |time: Instant| {
            let after = self.delivered.partition_point(|(at, _)| *at <= time);
            self.delivered.get(after.checked_sub(1)?).copied()
        };
        let ((first, before), (last, bytes)) = (at(from)?, at(until)?);
        let time = last.saturating_duration_since(first);
        (!time.is_zero()).then(|| (bytes - before) as f64 / time.as_secs_f64())
    }

    /// Whether it is to send at `rate` from now on. Until a member has taken for a while, only a higher
    /// rate is new to it.
    fn takes(&mut self, now: Instant, rate: f64) -> bool {
        let taking = |(since, _): &(Instant, f64)| now <= *since + TAKING * self.recent;
        match &mut self.taken {
            Some(taken) if taking(taken) => {
                let raised = rate > (1.0 + MIN_RAISE) * taken.1;
                if raised {
                    taken.1 = rate;
                }
                raised
            }
            taken => {
                *taken = Some((now, rate));
                true
            }
        }
    }

    /// The present rate, and the one before, in bytes per second.
    fn rates(&self, now: Instant) -> Option<(f64, f64)> {
        let middle = now.checked_sub(self.recent)?;
        let present = self.rate(middle, now)?;
        Some((
            present,
            self.rate(middle.checked_sub(BEFORE_WINDOW)?, middle)?,
        ))
    }
}

impl<K: Copy + Ord, I: Ord> Coupling<K, I> {
    /// Adds a subflow over a path that crosses `interfaces`.
    pub fn add(&mut self, key: K, interfaces: Vec<I>) {
        let member = Member {
            interfaces,
            delivered: VecDeque::new(),
            recent: RECENT_BOUNDS.1,
            taken: None,
        };
        self.members.insert(key, member);
    }

    /// Removes a subflow.
    pub fn remove(&mut self, key: K) {
        self.members.remove(&key);
    }

    /// The subflows over the busiest link of each subflow's path, itself included.
    pub fn shares(&self) -> impl Iterator<Item = (K, u32)> {
        let mut counts: BTreeMap<&I, u32> = BTreeMap::new();
        for interface in self.members.values().flat_map(|one| &one.interfaces) {
            *counts.entry(interface).or_default() += 1;
        }
        self.members.iter().map(move |(key, one)| {
            let shared = one.interfaces.iter().filter_map(|one| counts.get(one));
            (*key, shared.copied().max().unwrap_or(1))
        })
    }

    /// Records that a subflow with a round-trip time of `rtt` has delivered `bytes` altogether; to be
    /// called every 10 ms or so.
    pub fn delivered(&mut self, now: Instant, key: K, bytes: u64, rtt: Duration) {
        let Some(one) = self.members.get_mut(&key) else {
            return;
        };
        one.recent = (RECENT_ROUND_TRIPS * rtt).clamp(RECENT_BOUNDS.0, RECENT_BOUNDS.1);
        one.delivered.push_back((now, bytes));
        let kept = BEFORE_WINDOW + one.recent + RECENT_BOUNDS.0;
        while let Some((at, _)) = one.delivered.front()
            && now.saturating_duration_since(*at) > kept
        {
            one.delivered.pop_front();
        }
    }

    /// The subflows that take now what others have given up, and the rate at which each is to send: its
    /// own before, and its part of what was given up, in bytes per second.
    pub fn take(&mut self, now: Instant) -> Vec<(K, f64)> {
        let rates: BTreeMap<K, (f64, f64)> = (self.members.iter())
            .filter_map(|(key, one)| Some((*key, one.rates(now)?)))
            .collect();
        let has_fallen = |(present, before): &(f64, f64)| *present < FALLEN * before;
        let mut taken: BTreeMap<K, f64> = BTreeMap::new();
        for (key, (present, before)) in rates.iter().filter(|(_, rates)| has_fallen(rates)) {
            let interfaces = &self.members[key].interfaces;
            let shares = |other: &K| {
                let other = &self.members[other].interfaces;
                interfaces.iter().any(|one| other.contains(one))
            };
            let takers = rates.iter().filter(|(_, rates)| !has_fallen(rates));
            let takers: Vec<_> = takers.filter(|(other, _)| shares(other)).collect();
            for (taker, (_, before_it)) in &takers {
                let part = (before - present) / takers.len() as f64;
                *taken.entry(**taker).or_insert(*before_it) += part;
            }
        }
        taken.retain(|key, rate| {
            let one = self.members.get_mut(key);
            one.is_some_and(|one| one.takes(now, *rate))
        });
        taken.into_iter().collect()
    }
}
