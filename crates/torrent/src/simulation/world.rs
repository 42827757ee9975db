//! All hosts, and the messages between them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::host::Host;
use super::{HostId, Message, Outcome, RTT, STEP, Setting, TICK};

/// Steps for which the parts of connections in an uplink stay the same.
const PHASE: u32 = 40;

/// The longest time that a swarm may take.
const MAX_TIME: Duration = Duration::from_secs(3600);

/// The bounds of the times at which hosts begin, in steps.
const MAX_DELAY: u32 = 100;

/// A message on its way.
struct UnderWay {
    due: Instant,
    from: HostId,
    to: HostId,
    message: Message,
}

/// Runs a swarm until all leechers but the free riders have everything.
pub(super) fn run(setting: Setting, seed: u64) -> Outcome {
    let start = Instant::now();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut hosts: Vec<Host> = (0..setting.hosts())
        .map(|id| Host::new(setting, id, rng.u64(..), start))
        .collect();
    // The seeder comes first.
    let begins: Vec<u32> = (0..setting.hosts())
        .map(|id| {
            if id < setting.seeders {
                0
            } else {
                rng.u32(..MAX_DELAY)
            }
        })
        .collect();
    let mut under_way: VecDeque<UnderWay> = VecDeque::new();
    let mut complete = vec![None; hosts.len()];
    complete[..setting.seeders as usize].fill(Some(0.0));
    for step in 0.. {
        let since = STEP * step;
        assert!(since < MAX_TIME, "the swarm hangs: {complete:?}");
        let now = start + since;
        while let Some(first) = under_way.front()
            && first.due <= now
            && let Some(UnderWay {
                from, to, message, ..
            }) = under_way.pop_front()
        {
            hosts[to as usize].handle(from, message, now);
        }
        for (id, host) in hosts.iter_mut().enumerate() {
            if step < begins[id] {
                continue;
            }
            if step % PHASE == 0 {
                let connections = host.connections.values_mut();
                let weights = (0..).map(|at| (0.2 + 1.6 * rng.f64()) * setting.skew.powi(at));
                connections
                    .zip(weights)
                    .for_each(|(it, weight)| it.weight = weight);
            }
            host.send();
            host.act((step + id as u32).is_multiple_of(TICK), now);
            let sent = host.outbox.drain(..).map(|(to, message)| UnderWay {
                due: now + RTT / 2,
                from: id as HostId,
                to,
                message,
            });
            under_way.extend(sent);
            if complete[id].is_none() && host.is_complete() {
                complete[id] = Some(since.as_secs_f64());
            }
        }
        let awaited = hosts.len() - setting.free_riders as usize;
        if complete[..awaited].iter().all(Option::is_some) {
            break;
        }
    }
    let (seeders, leechers) = hosts.split_at(setting.seeders as usize);
    let from_leechers = |host: &Host| {
        let others = host
            .connections
            .iter()
            .filter(|(id, _)| **id >= setting.seeders);
        others.map(|(_, it)| it.received).sum()
    };
    Outcome {
        complete: complete
            .into_iter()
            .skip(setting.seeders as usize)
            .flatten()
            .collect(),
        seeded: seeders
            .iter()
            .flat_map(|it| it.connections.values())
            .map(|it| it.sent)
            .sum(),
        wasted: leechers.iter().map(|host| host.wasted).sum(),
        shared: leechers.iter().map(from_leechers).collect(),
    }
}
