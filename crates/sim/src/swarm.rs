//! The state of a swarm, and what happens in a step.

mod carry;
mod choke;
mod members;

use std::time::{Duration, Instant};

use hawser_manager::SelectBy;
use hawser_topology::Network;

use self::choke::Chokers;
use self::members::Members;
use crate::book::Book;
use crate::choose::{Chooser, Downloaders, Now, Orders, Uploaders};
use crate::flow::{Flow, Flows};
use crate::host::{self, Host};
use crate::names::Pair;
use crate::options::{Options, STEP, SimulateError};
use crate::random::generator;

/// Round trips until the first byte: connect, exchange handshakes, request.
const FIRST_BYTE_ROUND_TRIPS: u32 = 3;

/// A swarm.
pub(crate) struct Swarm {
    pub book: Book,
    pub hosts: Vec<Host>,
    pub flows: Flows,
    pub orders: Orders,
    chooser: Box<dyn Chooser>,
    members: Members,
    chokers: Chokers,
    rng: fastrand::Rng,
    base: Instant,
    steps: u64,
    /// Whether flows began or ended, so that rates change.
    changed: bool,
    pub loads: Vec<Load>,
    /// How often a choker was called, or a picker for a block or a review: the cost of all steps.
    pub looks: u64,
    /// The total of flows whose leecher or uploader left.
    past: Total,
}

/// The load of one direction of a link.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    pub bytes: u64,
    /// Path-level peers on it: now, the maximum, and the sum over all steps.
    pub now: u32,
    pub most: u32,
    pub sum: u64,
}

/// Path-level peers that carried anything, and their bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Total {
    pub flows: usize,
    pub bytes: u64,
}

impl Total {
    fn add(&mut self, flow: &Flow) {
        self.flows += usize::from(flow.bytes > 0);
        self.bytes += flow.bytes;
    }
}

impl Swarm {
    pub fn new(network: &Network, options: &Options, by: SelectBy) -> Result<Self, SimulateError> {
        let base = Instant::now();
        let hosts = host::hosts(network, options, base)?;
        let book = Book::new(network, &hosts, options, by);
        Ok(Self {
            loads: vec![Load::default(); book.directions],
            book,
            flows: Flows::new(hosts.len()),
            members: Members::new(options, &hosts),
            chokers: Chokers::new(&hosts),
            hosts,
            orders: Orders::default(),
            chooser: match by {
                SelectBy::Downloader => Box::new(Downloaders::new(options)),
                SelectBy::Uploader => Box::new(Uploaders::new(options)),
            },
            rng: generator(options.seed, 4),
            base,
            steps: 0,
            changed: false,
            looks: 0,
            past: Total::default(),
        })
    }

    /// When the next step begins.
    pub fn now(&self) -> Duration {
        STEP * self.steps as u32
    }

    /// The leechers, including those that have not joined yet and those that left.
    pub fn leechers(&self) -> &[Host] {
        &self.hosts[self.members.seeders..]
    }

    /// Number of leechers that are complete.
    pub fn finished(&self) -> usize {
        self.members.finished
    }

    /// Advances by one step.
    ///
    /// # Errors
    /// When there is no path between two hosts that must be connected.
    pub fn step(&mut self) -> Result<(), SimulateError> {
        let since = self.now();
        let now = Now {
            since,
            instant: self.base + since,
        };
        self.welcome(now);
        self.announce();
        self.choke(now)?;
        self.chooser.tick(&self.flows, now, &mut self.orders);
        self.obey(since);
        self.review(now);
        self.set_carrying(since);
        if std::mem::take(&mut self.changed) {
            self.share_out();
        }
        self.steps += 1;
        self.carry(now);
        self.part(now);
        Ok(())
    }

    fn connect(&mut self, pair: Pair, now: Now) -> Result<(), SimulateError> {
        let [from, to] = [pair.from, pair.to].map(|host| self.hosts[host as usize].isd_as);
        let between = self.book.between(from, to);
        if between.known.is_empty() {
            return Err(SimulateError::NoPath(from, to));
        }
        self.chooser.connect(pair, between, now, &mut self.orders);
        self.obey(now.since);
        Ok(())
    }

    fn disconnect(&mut self, pair: Pair, now: Now) {
        self.chooser.disconnect(pair);
        let ends = self.flows.between(pair).map(|(key, _)| (key, false));
        self.orders.list.extend(ends);
        self.obey(now.since);
    }

    /// Applies the orders of the path manager.
    fn obey(&mut self, now: Duration) {
        for (key, use_) in std::mem::take(&mut self.orders.list) {
            let flow = match self.flows.get_mut(key) {
                Some(flow) => flow,
                None if !use_ => continue,
                None => {
                    let new = Flow::new(&mut self.book, &self.hosts, key);
                    let has = self.hosts[key.from as usize].pieces.held().clone();
                    self.hosts[key.to as usize].pieces.begin(key, has);
                    self.flows.insert(key, new)
                }
            };
            if flow.used == use_ {
                continue;
            }
            flow.used = use_;
            if (key.from as usize) < self.members.seeders {
                self.members.count_fed(key.to, use_);
            }
            if use_ {
                let is_new = flow.ready == Duration::ZERO;
                flow.ready = now + flow.rtt * if is_new { FIRST_BYTE_ROUND_TRIPS } else { 1 };
            } else if flow.fetch.take().is_some() {
                // What has arrived of the block is lost.
                self.hosts[key.to as usize].pieces.release(key);
            }
        }
    }

    /// The total of all path-level peers so far.
    pub fn total(&self) -> Total {
        let mut total = self.past;
        self.flows.iter().for_each(|(_, flow)| total.add(flow));
        total
    }
}
