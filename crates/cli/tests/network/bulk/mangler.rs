//! An attacker on a link: reads its packets, and sends changed copies after the genuine ones.
//!
//! The attacker is a separate process inside an AS: this same program, started with [`PLAN`]. It ends
//! with its standard input, and then prints how many copies it sent.

mod frame;

use std::collections::VecDeque;
use std::env;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hawser_lab::{Capture, Lab};
use hawser_path::Interface;

use self::frame::Frame;
use crate::flood::this_program;

/// The environment variable that makes this program an attacker: lab and interface.
const PLAN: &str = "HAWSER_TEST_MANGLER";
/// What every line of the attacker begins with: the test harness prints others.
const PREFIX: &str = "mangler:";
/// The test that is the attacker.
const NAME: &str = "bulk::mangled::attacker";
/// One packet of this many is sent again much later.
const KEPT: usize = 4;
/// Packets kept for that, and for how long at least.
const QUEUE: usize = 256;
const LATER: Duration = Duration::from_millis(300);

/// Which fields of a changed packet are made right again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mend {
    /// Lengths and checksums of SCION and UDP, and of the link: it reaches its program.
    All,
    /// Those of the link: it reaches the router.
    Link,
    /// None.
    Nothing,
}

type Change = (&'static str, fn(&mut Frame, &mut Rng), Mend);

/// Parts of a datagram of bulk transfer: header byte, subflow id, packet number, sealed payload,
/// tag (docs/bulk-protocol.md).
const ID: usize = 1;
const NUMBER: usize = 9;
const SEALED: usize = 13;
const TAG: usize = 16;

const CHANGES: [Change; 23] = [
    ("copied", |_, _| {}, Mend::All),
    ("header byte", |one, rng| one.flip(0..ID, rng), Mend::All),
    (
        "subflow id",
        |one, rng| one.flip(ID..NUMBER, rng),
        Mend::All,
    ),
    (
        "packet number",
        |one, rng| one.flip(NUMBER..SEALED, rng),
        Mend::All,
    ),
    (
        "sealed payload",
        |one, rng| one.flip(SEALED..one.length().saturating_sub(TAG), rng),
        Mend::All,
    ),
    (
        "tag",
        |one, rng| one.flip(one.length().saturating_sub(TAG)..one.length(), rng),
        Mend::All,
    ),
    ("forged", |one, rng| one.fill(SEALED, rng), Mend::All),
    (
        "forged far ahead",
        |one, rng| one.fill(NUMBER, rng),
        Mend::All,
    ),
    ("forged wholly", |one, rng| one.fill(0, rng), Mend::All),
    (
        "cut",
        |one, rng| one.resize(rng.usize(0..=one.length()), rng),
        Mend::All,
    ),
    (
        "cut to the header",
        |one, rng| one.resize(rng.usize(0..=SEALED + TAG), rng),
        Mend::All,
    ),
    (
        "lengthened",
        |one, rng| one.resize(one.length() + rng.usize(1..100), rng),
        Mend::All,
    ),
    (
        "cut with the lengths of before",
        |one, rng| one.resize(rng.usize(0..=one.length()), rng),
        Mend::Link,
    ),
    (
        "cut on the link",
        |one, rng| one.resize(rng.usize(0..=one.length()), rng),
        Mend::Nothing,
    ),
    (
        "wrong checksum",
        |one, rng| one.flip(0..one.length(), rng),
        Mend::Link,
    ),
    ("wrong header", |one, rng| one.flip_header(rng), Mend::Link),
    ("source AS", |one, rng| one.change_source_as(rng), Mend::All),
    (
        "source host",
        |one, rng| one.change_source_host(rng),
        Mend::All,
    ),
    (
        "source port",
        |one, rng| one.change_source_port(rng),
        Mend::All,
    ),
    // Only the router that a packet comes to verifies a hop.
    (
        "hop before",
        |one, rng| one.change_hop(-1, 6..12, rng),
        Mend::All,
    ),
    (
        "expiry of the hop before",
        |one, rng| one.change_hop(-1, 1..2, rng),
        Mend::All,
    ),
    ("hop", |one, rng| one.change_hop(0, 1..12, rng), Mend::All),
    ("info field", |one, rng| one.change_info(rng), Mend::All),
];

/// Attacks until standard input ends, if this process was started as an attacker.
pub fn attack_if_planned() {
    let Ok(plan) = env::var(PLAN) else {
        return;
    };
    let (lab, interface) = plan.split_once(' ').unwrap();
    let interface: Interface = interface.parse().unwrap();
    let lab = Lab::open(lab).unwrap();
    let mut capture = lab.capture(interface.isd_as, interface.id).unwrap();
    println!("\n{PREFIX} ready");
    let mut attack = Attack::default();
    while capture.wait(std::io::stdin().as_fd()).unwrap() {
        while let Some(seen) = capture.next_frame().unwrap() {
            let frame = seen.outgoing.then(|| Frame::parse(seen.data)).flatten();
            if let Some(frame) = frame {
                attack.on_frame(&capture, &frame);
            }
        }
        attack.replay(&capture, LATER);
    }
    attack.replay(&capture, Duration::ZERO);
    let [data, control] = attack
        .sent
        .map(|sent| sent.map(|count| count.to_string()).join(" "));
    println!(
        "{PREFIX} {data} {control} {} {}",
        attack.late, attack.crossed
    );
}

#[derive(Default)]
struct Attack {
    rng: Rng,
    /// Packets to send again, and when they were seen.
    kept: VecDeque<(Instant, Vec<u8>)>,
    seen: usize,
    /// The change of the next datagram.
    next: usize,
    /// Copies sent, by change: of datagrams, and of QUIC's packets.
    sent: [[u32; CHANGES.len()]; 2],
    /// Packets sent again much later, and to the other one of the receiver's sockets.
    late: u32,
    crossed: u32,
    /// The receiver's ports for datagrams and for QUIC.
    ports: [Option<[u8; 2]>; 2],
}

impl Attack {
    fn on_frame(&mut self, capture: &Capture, frame: &Frame) {
        self.seen += 1;
        if self.seen.is_multiple_of(KEPT) && self.kept.len() < QUEUE {
            self.kept
                .push_back((Instant::now(), frame.bytes(Mend::All)));
        }
        let quic = usize::from(frame.is_quic());
        self.ports[quic] = Some(frame.port());
        if let Some(port) = self.ports[1 - quic] {
            let mut crossed = frame.clone();
            crossed.set_port(port);
            self.crossed += u32::from(inject(capture, &crossed.bytes(Mend::All)));
        }
        if frame.is_quic() {
            // There are few.
            (0..CHANGES.len()).for_each(|change| self.send(capture, frame, change));
        } else {
            self.send(capture, frame, self.next);
            self.next = (self.next + 1) % CHANGES.len();
        }
    }

    fn send(&mut self, capture: &Capture, frame: &Frame, change: usize) {
        let (_, apply, mend) = CHANGES[change];
        let mut changed = frame.clone();
        apply(&mut changed, &mut self.rng);
        if inject(capture, &changed.bytes(mend)) {
            self.sent[usize::from(frame.is_quic())][change] += 1;
        }
    }

    /// Sends packets again that were seen `age` ago.
    fn replay(&mut self, capture: &Capture, age: Duration) {
        while let Some((seen, bytes)) = self.kept.front()
            && seen.elapsed() >= age
        {
            self.late += u32::from(inject(capture, bytes));
            self.kept.pop_front();
        }
    }
}

/// Sends a frame out of the interface; whether there was room for it in the link's queue.
fn inject(capture: &Capture, frame: &[u8]) -> bool {
    rustix::io::write(capture, frame).is_ok()
}

/// An attacker that runs, at the end of a link from which it sends.
pub struct Mangler {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Mangler {
    /// Starts an attacker at an interface of `lab`; `exec` makes a command inside its AS.
    pub fn start(lab: &str, interface: &str, exec: impl FnOnce(&[&str]) -> Command) -> Self {
        let arguments = ["--exact", NAME, "--ignored", "--nocapture"];
        let mut words = vec!["env".to_owned(), format!("{PLAN}={lab} {interface}")];
        words.extend(this_program(&arguments));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = exec(&words);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut mangler = Self {
            child,
            stdin,
            stdout,
        };
        assert_eq!(mangler.line(), "ready");
        mangler
    }

    /// The next line that is the attacker's.
    fn line(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
            if let Some(line) = line.trim().strip_prefix(PREFIX) {
                return line.trim().to_owned();
            }
        }
    }

    /// Ends the attack. Returns what it sent.
    pub fn end(mut self) -> Sent {
        self.stdin = None;
        let line = self.line();
        let counts: Vec<u32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let (counts, [late, crossed]) = counts.split_last_chunk().unwrap();
        let (datagrams, quic) = counts.split_at(CHANGES.len());
        let counts = CHANGES.iter().zip(datagrams).zip(quic);
        let counts = counts.map(|(((name, ..), datagrams), quic)| (*name, *datagrams, *quic));
        Sent {
            changed: counts.collect(),
            late: *late,
            crossed: *crossed,
        }
    }
}

/// How many copies an attacker sent.
#[derive(Debug)]
pub struct Sent {
    /// By change: its name, copies of datagrams, and of QUIC's packets.
    pub changed: Vec<(&'static str, u32, u32)>,
    /// Unchanged ones, much later.
    pub late: u32,
    /// Those to the other one of the receiver's sockets.
    pub crossed: u32,
}

impl Drop for Mangler {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
