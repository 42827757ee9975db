//! Limits that those of a torrent are within: of a group of torrents, and of its session.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::RateLimits;
use super::level::{Level, Turn};

/// Limits of the rates of some torrents of a [`Session`](crate::Session) together. Clones are the same group.
#[derive(Debug, Clone)]
pub struct RateGroup(Arc<Group>);

#[derive(Debug)]
struct Group {
    up: Arc<Level<u64>>,
    down: Arc<Level<u64>>,
    /// Whether the limits of the session do not hold for its torrents.
    is_exempt: watch::Sender<bool>,
}

impl Default for RateGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl RateGroup {
    /// Without limits of its own, within those of the session.
    pub fn new() -> Self {
        Self(Arc::new(Group {
            up: Arc::new(Level::new(None)),
            down: Arc::new(Level::new(None)),
            is_exempt: watch::Sender::new(false),
        }))
    }

    /// Sets how fast its torrents together send and receive, from now on, and whether the limits of the
    /// session do not hold for them.
    pub fn set(&self, limits: RateLimits, is_exempt: bool) {
        self.0.up.set_rate(limits.upload);
        self.0.down.set_rate(limits.download);
        self.0
            .is_exempt
            .send_if_modified(|kept| std::mem::replace(kept, is_exempt) != is_exempt);
    }

    fn level(&self, direction: Direction) -> &Arc<Level<u64>> {
        match direction {
            Direction::Up => &self.0.up,
            Direction::Down => &self.0.down,
        }
    }
}

/// How much a torrent gets of the limits that it has together with others, while these want more than there is.
/// Each priority gets four times as much as the one below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BandwidthPriority {
    /// A quarter of what normal ones get.
    Low,
    /// As much as most torrents.
    #[default]
    Normal,
    /// Four times what normal ones get.
    High,
}

impl BandwidthPriority {
    /// What a byte of such a torrent costs, see [`Turns`](super::turns::Turns).
    fn price(self) -> u64 {
        match self {
            Self::Low => 16,
            Self::Normal => 4,
            Self::High => 1,
        }
    }
}

/// Which limits those of a torrent are within.
#[derive(Debug, Clone, Default)]
pub struct OuterLimits {
    /// The group that the torrent is in.
    pub group: Option<RateGroup>,
    /// Whether neither the limits of the group nor those of the session hold for it.
    pub is_exempt: bool,
    /// How much it gets of them.
    pub priority: BandwidthPriority,
}

/// What the rate is of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    Up,
    Down,
}

/// The outer levels of one direction of a torrent.
#[derive(Debug)]
pub(super) struct Outer {
    direction: Direction,
    /// Whether only the level of the session counts, so that nothing is locked to see that.
    is_plain: AtomicBool,
    limits: watch::Sender<OuterLimits>,
}

impl Outer {
    /// That of the session.
    pub fn new(direction: Direction) -> Self {
        Self {
            direction,
            is_plain: AtomicBool::new(true),
            limits: watch::Sender::new(OuterLimits::default()),
        }
    }

    pub fn set(&self, limits: &OuterLimits) {
        let is_plain = limits.group.is_none() && !limits.is_exempt;
        self.is_plain.store(is_plain, Ordering::Relaxed);
        self.limits.send_if_modified(|kept| {
            let facts = |limits: &OuterLimits| {
                let group = limits.group.as_ref().map(|it| Arc::as_ptr(&it.0));
                (group, limits.is_exempt, limits.priority)
            };
            let is_same = facts(kept) == facts(limits);
            *kept = limits.clone();
            !is_same
        });
    }

    /// The lower of the outer limits in bytes per second; `None` without a limit.
    pub fn rate(&self, of_session: &Level<u64>) -> Option<u64> {
        if self.is_plain.load(Ordering::Relaxed) {
            return of_session.rate();
        }
        let limits = self.limits.borrow();
        let group = match (&limits.group, limits.is_exempt) {
            (_, true) => return None,
            (None, false) => return of_session.rate(),
            (Some(group), false) => group,
        };
        let own = group.level(self.direction).rate();
        match *group.0.is_exempt.borrow() {
            true => own,
            false => own.into_iter().chain(of_session.rate()).min(),
        }
    }

    /// Waits for the turns of a torrent in those of the outer levels that have a limit. When other levels hold
    /// meanwhile, those are waited for.
    pub async fn turns(
        &self,
        of_session: &Arc<Level<u64>>,
        torrent: u64,
    ) -> [Option<Turn<u64>>; 2] {
        let mut changes = self.limits.subscribe();
        loop {
            let limits = changes.borrow_and_update().clone();
            let group = limits.group.filter(|_| !limits.is_exempt);
            let mut exempts = group.as_ref().map(|group| group.0.is_exempt.subscribe());
            let group_is_exempt = exempts.as_mut().is_some_and(|it| *it.borrow_and_update());
            let of_session = (!limits.is_exempt && !group_is_exempt).then_some(of_session);
            let of_group = group.as_ref().map(|group| group.level(self.direction));
            let price = limits.priority.price();
            let turns = async {
                [
                    turn(of_group, torrent, price).await,
                    turn(of_session, torrent, price).await,
                ]
            };
            let exempted = async {
                match &mut exempts {
                    // The group is there as long as this.
                    Some(exempts) => drop(exempts.changed().await),
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                turns = turns => return turns,
                _ = changes.changed() => {}
                () = exempted => {}
            }
        }
    }
}

/// The turn of a torrent, where there is a limit.
async fn turn(level: Option<&Arc<Level<u64>>>, torrent: u64, price: u64) -> Option<Turn<u64>> {
    let level = level.filter(|level| level.rate().is_some())?;
    Some(level.turn(torrent, price).await)
}
