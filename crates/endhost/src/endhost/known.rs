//! What is known about paths, and when to ask again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_path::Interface;
use sciparse::identifier::isd_asn::IsdAsn;
use tokio::sync::watch;

use crate::outage::{HOLD_WITHOUT_ANSWERS, Outage, Outages};
use crate::path::Path;
use crate::service::SourceError;
use crate::source::{Age, LocalAs};

/// How often paths somebody watches are asked for, and all while something is down.
const WATCHED: Duration = Duration::from_secs(1);
/// How often other paths in use are; and how old an answer may be that is given out.
const UNWATCHED: Duration = Duration::from_secs(60);
/// Paths nobody asked for in this time are forgotten.
const FORGET: Duration = Duration::from_secs(300);
/// New paths are asked for so long before the first of the old ones expires, or when half its time
/// has passed, whichever is later.
const BEFORE_EXPIRY: Duration = Duration::from_secs(120);

/// All that is known.
pub(super) struct State {
    local: LocalAs,
    known: HashMap<IsdAsn, Known>,
    outages: Outages,
}

/// The paths to one AS.
pub(super) struct Known {
    /// As they were offered.
    offered: Vec<Path>,
    /// Those of them that can be used.
    pub(super) usable: watch::Sender<Arc<Vec<Path>>>,
    /// When they were last asked for, whether or not there was an answer.
    asked: Option<Instant>,
    /// Whether there was.
    answered: bool,
    /// How many are asking right now.
    asking: usize,
    /// When the first of them expires, in seconds since the Unix epoch, and when to ask for new
    /// ones because of that.
    renew: Option<(u64, Instant)>,
    /// When somebody last wanted to know.
    wanted: Instant,
}

fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

impl Known {
    /// Whether the last answer is recent.
    pub(super) fn is_fresh(&self) -> bool {
        let young = self.asked.is_some_and(|asked| asked.elapsed() < UNWATCHED);
        self.answered && young
    }

    /// When to ask for the paths next, and what.
    fn due(&self, down: bool, now: Instant) -> (Instant, Age) {
        let Some(asked) = self.asked else {
            return (now, Age::Known);
        };
        let watched = self.usable.receiver_count() > 0;
        let regular = if watched || down || !self.answered {
            asked + WATCHED
        } else {
            asked + UNWATCHED
        };
        match self.renew {
            Some((_, renew)) if renew <= regular => (renew.max(asked + WATCHED), Age::New),
            _ => (regular, Age::Known),
        }
    }
}

impl State {
    pub(super) fn new(local: LocalAs) -> Self {
        Self {
            local,
            known: HashMap::new(),
            outages: Outages::default(),
        }
    }

    /// The entry of `dst`, made if there is none, because somebody wants to know.
    pub(super) fn known(&mut self, dst: IsdAsn) -> &mut Known {
        let (now, local) = (Instant::now(), self.local);
        let known = self.known.entry(dst).or_insert_with(|| {
            let here = (dst == local.isd_as).then(|| Path::within(dst, local.mtu));
            let offered = Vec::from_iter(here);
            Known {
                usable: watch::Sender::new(Arc::new(offered.clone())),
                offered,
                asked: None,
                answered: false,
                asking: 0,
                renew: None,
                wanted: now,
            }
        });
        known.wanted = now;
        known
    }

    /// The usable paths to `dst`, and how many there are in all.
    pub(super) fn usable(&self, dst: IsdAsn) -> (Vec<Path>, usize) {
        let Some(known) = self.known.get(&dst) else {
            return (Vec::new(), 0);
        };
        let now = unix_now();
        let alive = known.offered.iter().filter(|path| path.expiry() > now);
        let usable = alive.filter(|path| !self.outages.cut(&path.info().interfaces));
        (usable.cloned().collect(), known.offered.len())
    }

    /// Tells watchers what is usable now, where that changed.
    pub(super) fn publish(&self) {
        for (dst, known) in &self.known {
            let (usable, _) = self.usable(*dst);
            known.usable.send_if_modified(|current| {
                let changed = **current != usable;
                if changed {
                    *current = Arc::new(usable);
                }
                changed
            });
        }
    }

    /// Takes in the answer to what was asked about `dst` at `asked`.
    pub(super) fn take_in(
        &mut self,
        dst: IsdAsn,
        asked: Instant,
        age: Age,
        answer: Result<Vec<Path>, SourceError>,
    ) -> Result<(), SourceError> {
        let Self { known, outages, .. } = self;
        let Some(known) = known.get_mut(&dst) else {
            return answer.map(drop);
        };
        if known.asked.is_some_and(|latest| asked < latest) {
            // Somebody asked later and was answered earlier.
            return answer.map(drop);
        }
        known.asked = Some(asked);
        known.answered = answer.is_ok();
        // An answer counts from when it was asked for; without one, old paths are tried again some
        // time after they were reported down.
        let (offered_at, answer) = match answer {
            Ok(paths) => {
                let expiry = paths.iter().map(Path::expiry).min();
                let same = known.renew.map(|(expiry, _)| expiry) == expiry;
                // Paths offered once more are no younger for it.
                if !same || age == Age::New {
                    known.renew = expiry.and_then(|expiry| renewal(expiry, asked));
                }
                known.offered = paths;
                (Some(asked), Ok(()))
            }
            Err(error) => (asked.checked_sub(HOLD_WITHOUT_ANSWERS), Err(error)),
        };
        for path in &known.offered {
            if let Some(at) = offered_at {
                outages.offered(&path.info().interfaces, at);
            }
        }
        self.publish();
        answer
    }

    /// Takes `outage` in. Says whether it is news that matters here.
    pub(super) fn report(&mut self, outage: Outage) -> bool {
        let cuts_known = self
            .known
            .values()
            .flat_map(|known| &known.offered)
            .any(|path| outage.cuts(&path.info().interfaces));
        // Only what cuts a known path is remembered, so that reports cost no memory.
        let news = cuts_known && self.outages.report(outage, Instant::now());
        if news {
            self.publish();
        }
        news
    }

    /// Ends holds on a path over `interfaces`, because a packet sent at `sent` was acknowledged.
    pub(super) fn refute(&mut self, interfaces: &[Interface], sent: Instant) {
        if self.outages.refute(interfaces, sent) {
            self.publish();
        }
    }

    /// What to ask for now, and when to look again. [`State::done`] is to be called for each when
    /// it has been asked for.
    pub(super) fn plan(&mut self) -> (Vec<(IsdAsn, Age)>, Option<Instant>) {
        let now = Instant::now();
        // Paths expire also while nobody answers.
        self.publish();
        self.known.retain(|_, known| {
            known.asking > 0 || known.usable.receiver_count() > 0 || now < known.wanted + FORGET
        });
        let down = self.outages.any(now);
        let (mut due_now, mut next) = (Vec::new(), None);
        for (dst, known) in &mut self.known {
            if *dst == self.local.isd_as {
                continue;
            }
            let (due, age) = match known.asking {
                0 => known.due(down, now),
                _ => (now + WATCHED, Age::Known),
            };
            if due <= now {
                known.asking += 1;
                due_now.push((*dst, age));
            } else if next.is_none_or(|next| due < next) {
                next = Some(due);
            }
        }
        (due_now, next)
    }

    /// Notes that somebody is about to ask about `dst`.
    pub(super) fn begin(&mut self, dst: IsdAsn) {
        self.known(dst).asking += 1;
    }

    /// Notes that somebody has asked about `dst`, or given up.
    pub(super) fn done(&mut self, dst: IsdAsn) {
        if let Some(known) = self.known.get_mut(&dst) {
            known.asking = known.asking.saturating_sub(1);
        }
    }
}

/// When to ask for new paths in place of those offered at `offered`, the first of which expires at
/// `expiry`.
fn renewal(expiry: u64, offered: Instant) -> Option<(u64, Instant)> {
    let left = Duration::from_secs(expiry.saturating_sub(unix_now()));
    let renew = offered.checked_add(left.saturating_sub(BEFORE_EXPIRY.min(left / 2)))?;
    Some((expiry, renew))
}

#[cfg(test)]
mod tests;
