//! Measures SCION/UDP packets from host to host through two border routers, and through two bare UDP
//! forwarders on the same links in the same run.
//!
//! `cargo bench -p hawser-router --bench chain [-- OPTIONS]`
//!
//! Each side is a network namespace, as in a lab: the host and its router share one, and a veth pair
//! is the link. Packets have 1472 bytes, and the host sends them in batches (GSO), which the kernel
//! does not copy, so that the host takes little CPU time. Every router is a process of its own.
//! Devices either carry a batch whole, or the kernel cuts it into single packets before each device
//! ("per packet").
//!
//! In the last two cases one router is the bottleneck: it sends the packets of 256 flows one by one,
//! as to a link of 1 Mbit/s (the bench does not set up the link's limit itself). It has one thread,
//! then two. The kernel delivers each batch of the host eight times without copying it, and the
//! device at the far end drops the packets, so that nearly all CPU time is left to the router. There
//! are that many flows because the router shares them out by a hash: with 64, the busier of two
//! threads often has 37 or more of them, and determines the rate.
//!
//! The host keeps a fixed number of packets in flight, so that it does not overload the routers: only
//! packets that arrive are counted. CPU time is that of each process, which includes the work that
//! the kernel does for its packets at the next hop.
//!
//! Options: `--seconds S` of each measurement (1), `--rounds N` (5; medians are printed), `--flows N`
//! (1), `--size BYTES` of a packet (1472), `--batch N` packets of a send of the host (64, as far as they
//! fit), `--only NAME` of a contestant, `--case NAME`, `--json FILE`.
//! `HAWSER_OLD` names a `hawser` program whose routers are measured beside those of this build. It
//! needs root, `ip` and `tc` of iproute2, and a kernel with clsact, u32 and mirred.

#![allow(clippy::unwrap_used, reason = "a panic is how this fails")]

#[path = "../tests/common/mod.rs"]
mod common;

#[path = "chain/bare.rs"]
mod bare;
#[path = "chain/hosts.rs"]
mod hosts;
#[path = "chain/links.rs"]
mod links;
#[path = "chain/process.rs"]
mod process;
#[path = "chain/report.rs"]
mod report;

use std::collections::BTreeMap;
use std::iter;
use std::num::NonZeroU16;
use std::time::Duration;

use hawser_kernel::namespace::is_privileged;
use hawser_router::{Options, Router, Signals};
use hawser_topology::{AsDir, LinkState, Shape};

use self::common::net::{Net, SHAPE};
use self::common::{DST_PORT, SRC_PORT};
use self::hosts::End;
use self::links::Links;
use self::process::{Process, machine_time};
use self::report::{Outcome, Report};

/// Time in which queues fill before a measurement starts.
const WARM_UP: Duration = Duration::from_millis(200);

/// Where packets are forwarded.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Whether devices carry batches whole.
    whole: bool,
    routers: u8,
    /// Threads of each router.
    threads: u16,
    /// The rate of the link in bit/s, from which the router concludes how much it may send at once.
    rate: Option<u64>,
    /// Minimum number of flows.
    flows: u32,
    /// Number of bytes in flight.
    window: u64,
    /// How many times the kernel delivers each batch of the host.
    copies: usize,
}

const CASES: [Case; 4] = [
    Case {
        name: "batches",
        whole: true,
        routers: 2,
        threads: 1,
        rate: None,
        flows: 1,
        window: 1 << 20,
        copies: 1,
    },
    Case {
        name: "per packet",
        whole: false,
        routers: 2,
        threads: 1,
        rate: None,
        flows: 1,
        window: 1 << 20,
        copies: 1,
    },
    Case {
        name: "one thread",
        whole: true,
        routers: 1,
        threads: 1,
        rate: Some(1_000_000),
        flows: 256,
        window: 12 << 20,
        copies: 8,
    },
    Case {
        name: "two threads",
        whole: true,
        routers: 1,
        threads: 2,
        rate: Some(1_000_000),
        flows: 256,
        window: 12 << 20,
        copies: 8,
    },
];

/// What forwards the packets.
#[derive(Clone, Copy, PartialEq)]
enum Contestant<'a> {
    /// The routers of this build.
    Routers,
    /// The routers of another `hawser` program.
    Program(&'a str),
    /// Forwarders that look at nothing.
    Bare,
}

impl Contestant<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Routers => "hawser",
            Self::Program(_) => "old",
            Self::Bare => "bare",
        }
    }
}

/// What to measure.
struct Arguments {
    time: Duration,
    rounds: usize,
    flows: u32,
    size: usize,
    batch: usize,
    only: Option<String>,
    case: Option<String>,
    json: Option<String>,
}

impl Arguments {
    fn read() -> Self {
        let words: Vec<String> = std::env::args().collect();
        let value = |name: &str| {
            let at = words.iter().position(|word| word == name)?;
            Some(words.get(at + 1).expect("an option has a value").clone())
        };
        let number = |name, default| {
            value(name).map_or(default, |text| text.parse::<f64>().expect("a number"))
        };
        Self {
            time: Duration::from_secs_f64(number("--seconds", 1.0)),
            rounds: number("--rounds", 5.0) as usize,
            flows: number("--flows", 1.0) as u32,
            size: number("--size", 1472.0) as usize,
            batch: number("--batch", hosts::BATCH_PACKETS as f64) as usize,
            only: value("--only"),
            case: value("--case"),
            json: value("--json"),
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["router", dir, threads] => return run_router(dir, threads.parse().unwrap()),
        ["bare", from, by, to] => return bare::forward([from, by, to].map(|a| a.parse().unwrap())),
        _ => {}
    }
    if !is_privileged() || !links::has_iproute() {
        println!("skipped: needs root, and `ip` and `tc` of iproute2");
        return;
    }
    let options = Arguments::read();
    let old = std::env::var("HAWSER_OLD").ok();
    let mut contestants = vec![Contestant::Routers, Contestant::Bare];
    contestants.extend(old.as_deref().map(Contestant::Program));
    if let Some(only) = &options.only {
        contestants.retain(|contestant| contestant.name() == only);
    }
    let mut cases = CASES.to_vec();
    if let Some(name) = &options.case {
        cases.retain(|case| case.name.contains(name));
    }
    let mut report = Report::default();
    for _ in 0..options.rounds {
        for case in &cases {
            for contestant in &contestants {
                // Only the routers of this build are known to have threads.
                if case.routers == 2 || *contestant == Contestant::Routers {
                    let outcome = measure(case, *contestant, &options);
                    report.add(case.name, contestant.name(), outcome);
                }
            }
        }
    }
    report.print();
    if let Some(file) = &options.json {
        report.write(file);
    }
}

/// Runs the border router of the AS in `dir` until it is killed.
fn run_router(dir: &str, threads: NonZeroU16) {
    let options = Options::default().with_threads(threads);
    let router = Router::open(&AsDir::new(dir), None, &options).unwrap();
    router.run(&Signals::block().unwrap()).unwrap();
}

/// Sends for a while through routers, or what takes their place.
fn measure(case: &Case, contestant: Contestant<'_>, options: &Arguments) -> Outcome {
    let net = Net::between([10, 200, 0]);
    let shape = Shape {
        rate: case.rate,
        ..SHAPE
    };
    let state = LinkState { up: true, shape };
    net.dir(1)
        .write_links(&BTreeMap::from([(1, state)]))
        .unwrap();
    let links = Links::new(&net, case.whole);
    let mut forwarders: Vec<Process> = (1..=case.routers)
        .map(|number| {
            let forwarder = forwarder(&net, number, case, contestant);
            forwarder.start(links.namespace(number))
        })
        .collect();
    let packets: Vec<Vec<u8>> = (0..options.flows.max(case.flows))
        .map(|flow| {
            let empty = net.packet(0, DST_PORT, 2).len() - 2;
            let mut packet = net.packet(0, DST_PORT, options.size - empty);
            packet[1..4].copy_from_slice(&(flow + 1).to_be_bytes()[1..]);
            packet
        })
        .collect();
    let socket = links.namespace(1).run(|| net.host(1, SRC_PORT)).unwrap();
    if case.copies > 1 {
        links.multiply(socket.local_addr().unwrap(), case.copies);
    }
    let source = hosts::Source {
        socket,
        router: net.router(1),
        window: case.window,
        batch: options.batch.min(hosts::BATCH_PACKETS),
        copies: case.copies,
    };
    let end = match case.routers {
        1 => End::Drop(links.drop_at_far_end(&net)),
        _ => {
            let to = links.namespace(2).run(|| net.host(2, DST_PORT));
            End::Receive(to.unwrap())
        }
    };
    hosts::exchange(source, end, packets, |progress| {
        let started = progress.wait_for_start();
        forwarders.iter_mut().for_each(Process::assert_runs);
        assert!(
            started,
            "{}, {}: no packets arrive",
            case.name,
            contestant.name()
        );
        std::thread::sleep(WARM_UP);
        let before = Sample::take(&forwarders, progress);
        std::thread::sleep(options.time);
        let after = Sample::take(&forwarders, progress);
        forwarders.iter_mut().for_each(Process::assert_runs);
        after.since(&before, options.size)
    })
}

/// The command that forwards in place of router `number`.
fn forwarder(net: &Net, number: u8, case: &Case, contestant: Contestant<'_>) -> Process {
    let dir = net.dir(number);
    match contestant {
        Contestant::Routers => Process::of_this_program("router")
            .arg(dir.path())
            .arg(case.threads.to_string()),
        Contestant::Program(path) => Process::new(path).arg("router").arg("run").arg(dir.path()),
        Contestant::Bare => {
            let ends = match number {
                1 => [net.router(1), net.link_end(1), net.link_end(2)],
                _ => [
                    net.link_end(2),
                    net.link_end(2),
                    (net.ip(20), DST_PORT).into(),
                ],
            };
            let process = Process::of_this_program("bare");
            ends.iter()
                .fold(process, |process, end| process.arg(end.to_string()))
        }
    }
}

/// All counts at one moment.
struct Sample {
    at: std::time::Instant,
    packets: u64,
    lost: u64,
    forwarders: Vec<f64>,
    hosts: [f64; 2],
    machine: f64,
}

impl Sample {
    fn take(forwarders: &[Process], progress: &hosts::Progress) -> Self {
        Self {
            at: std::time::Instant::now(),
            packets: progress.arrived(),
            lost: progress.lost(),
            forwarders: forwarders.iter().map(Process::cpu_time).collect(),
            hosts: progress.cpu_times(),
            machine: machine_time(),
        }
    }

    fn since(&self, before: &Self, size: usize) -> Outcome {
        let seconds = (self.at - before.at).as_secs_f64();
        let packets = (self.packets - before.packets) as f64;
        let gigabytes = packets * size as f64 / 1e9;
        let each = |now: f64, then: f64| (now - then) / gigabytes;
        Outcome {
            gbit_per_second: gigabytes * 8.0 / seconds,
            packets_per_second: packets / seconds,
            lost_packets: (self.lost - before.lost) as f64,
            routers: iter::zip(&self.forwarders, &before.forwarders)
                .map(|(now, then)| each(*now, *then))
                .collect(),
            hosts: [0, 1].map(|at| each(self.hosts[at], before.hosts[at])),
            machine: each(self.machine, before.machine),
        }
    }
}
