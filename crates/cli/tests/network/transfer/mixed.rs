//! One swarm of programs in a lab: a seeder in a SCION network and on plain IP, four leechers on SCION, two
//! on both, and two on plain IP, which find each other in one way alone. All links have limits.
//!
//! Each test prints the goodput of the part on SCION beside what the links to the seeder allow. The measurements
//! do so with more content, for people to read: `cargo test -p hawser-cli --test network
//! measure_a_mixed_swarm -- --ignored --nocapture --test-threads 1`.

use std::sync::mpsc;

use hawser_experiments::ceiling::{PathCost, ceiling};
use hawser_experiments::{Sample, TransferReport};
use hawser_topology::Network;

use super::*;

/// The AS of the leechers and that of the seeder, with two links between them.
const TOPOLOGY: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {core: true}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE, rate: 16mbit}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:111#2", linkAtoB: CORE, rate: 16mbit}
"#;

/// Bytes of the largest SCION packet over each link, and of a path over one: its meta header, an info field and
/// two hop fields.
const MTU: u16 = 1472;
const PATH_BYTES: usize = 4 + 8 + 2 * 12;

/// The hosts of the two ASes.
const A_HOST: &str = "10.0.1.1";
const B_HOST: &str = "10.0.2.1";

/// The leechers, by the networks that they are in.
const LEECHERS: [Kind; 8] = [
    Kind::Both,
    Kind::Both,
    Kind::Scion,
    Kind::Scion,
    Kind::Scion,
    Kind::Scion,
    Kind::Ip,
    Kind::Ip,
];

/// Bytes of the content of tests.
const SIZE: usize = 6 << 20;

/// Bytes of the content of measurements: half a minute of both links.
const LARGE: usize = 96 << 20;

/// Longest wait for an event that must come: far longer than it takes.
const LONG: Duration = Duration::from_secs(300);

/// The networks that a peer is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scion,
    Ip,
    Both,
}

/// How peers find each other.
enum Way {
    /// By a tracker at these URLs, over plain IP and over SCION.
    Tracker { ip: String, scion: String },
    /// By the DHTs over plain IP and over SCION, entered at these nodes.
    Dht { ip: String, scion: String },
    /// One of them is named to all, and the seeder to that one.
    Exchange,
}

impl Way {
    /// The flags with which a peer of `kind` finds others.
    fn flags(&self, kind: Kind) -> Vec<&str> {
        match self {
            Self::Tracker { .. } => vec!["--find", "tracker"],
            Self::Exchange => vec!["--find", "pex"],
            Self::Dht { ip, scion } => {
                let mut flags = vec!["--find", "dht"];
                if kind != Kind::Scion {
                    flags.extend(["--dht-node", ip]);
                }
                if kind != Kind::Ip {
                    flags.extend(["--dht-node", scion]);
                }
                flags
            }
        }
    }
}

/// A running program whose lines of JSON are read as they come.
struct Program {
    lines: mpsc::Receiver<String>,
    // Is killed at the end of the test, which ends the threads that read.
    running: Running,
}

impl Program {
    fn start(lab: &TestLab, isd_as: &str, state: &Path, args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let state = format!("XDG_STATE_HOME={}", state.display());
        let mut running = Running::start_with(lab, isd_as, &[&state], &args);
        let (sender, lines) = mpsc::channel();
        let out = BufReader::new(running.0.stdout.take().unwrap());
        // Nobody reads the lines after the one that is waited for.
        std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { lines, running }
    }

    /// The next line of JSON.
    fn json(&mut self, what: &str) -> Value {
        let line = self.lines.recv_timeout(LONG).unwrap_or_else(|error| {
            // With the end of the program its log ends, too.
            let _ = self.running.0.kill();
            let mut log = String::new();
            let stderr = self.running.0.stderr.as_mut().unwrap();
            stderr.read_to_string(&mut log).unwrap();
            panic!("{what} printed nothing ({error}): {log}")
        });
        serde_json::from_str(&line).unwrap()
    }
}

fn text(object: &Value, key: &str) -> String {
    let value = object[key].as_str();
    value.unwrap_or_else(|| panic!("no {key}: {object}")).into()
}

/// A lab and content for a swarm.
struct Swarm {
    lab: TestLab,
    files: Files,
    size: usize,
    /// What runs beside the swarm.
    others: Vec<Program>,
}

impl Swarm {
    fn new(name: &str, size: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = crate::support::topology(folder.path(), TOPOLOGY);
        let lab = As::default().up(&file, name)?;
        Some(Self {
            lab,
            files: Files::new(&[("data", size)]),
            size,
            others: Vec::new(),
        })
    }

    fn folder(&self, name: &str) -> std::path::PathBuf {
        self.files.folder.path().join(name)
    }

    /// Starts a program that keeps its state in a folder of this name.
    fn start(&self, isd_as: &str, name: &str, args: &[&str]) -> Program {
        Program::start(&self.lab, isd_as, &self.folder(name).join("state"), args)
    }

    /// Starts a tracker over HTTP and over SCION in the AS of the seeder.
    fn tracker(&mut self) -> Way {
        let (http, state) = (format!("{B_HOST}:0"), self.folder("swarms"));
        let state = state.to_str().unwrap();
        let args = [
            "tracker", "--http", &http, "--listen", &http, "--json", "--state", state,
        ];
        let mut tracker = self.start(B, "tracker", &args);
        let ready = tracker.json("the tracker");
        let urls = ready["announce"].as_array().unwrap().iter();
        let urls: Vec<&str> = urls.map(|url| url.as_str().unwrap()).collect();
        let url = |scheme: &str| {
            let mut urls = urls.iter();
            urls.find(|url| url.starts_with(scheme))
                .unwrap()
                .to_string()
        };
        let way = Way::Tracker {
            ip: url("http://"),
            scion: url("udp://["),
        };
        self.others.push(tracker);
        way
    }

    /// Starts nodes of both DHTs in the AS of the seeder.
    fn dht(&mut self) -> Way {
        let other = Files::new(&[("data", 70_000)]);
        let tcp = format!("{B_HOST}:0");
        let (torrent, content) = (other.torrent(), other.content());
        let nobody = format!("{B},{B_HOST}:32000");
        let args = [
            "seed",
            torrent.to_str().unwrap(),
            content.to_str().unwrap(),
            "--json",
            "--find",
            "dht",
            "--tcp",
            &tcp,
            "--dht-node",
            &nobody,
        ];
        let mut router = self.start(B, "router", &args);
        let ready = router.json("the first node");
        let nodes = ready["dht"].as_array().unwrap().iter();
        let nodes: Vec<&str> = nodes.map(|node| node.as_str().unwrap()).collect();
        let node = |is_scion: bool| {
            let mut nodes = nodes.iter();
            let node = nodes.find(|node| node.contains(',') == is_scion && !node.starts_with('['));
            node.unwrap_or_else(|| panic!("{ready}")).to_string()
        };
        let way = Way::Dht {
            ip: node(false),
            scion: node(true),
        };
        self.others.push(router);
        way
    }

    /// The torrent as a peer of `kind` has it: with the tracker that it asks.
    fn torrent(&self, way: &Way, kind: Kind) -> std::path::PathBuf {
        let (name, url) = match (way, kind) {
            (Way::Tracker { scion, .. }, Kind::Scion) => ("scion.torrent", scion),
            (Way::Tracker { ip, .. }, _) => ("ip.torrent", ip),
            _ => return self.files.torrent(),
        };
        let torrent = self.folder(name);
        let mut create = Command::new(env!("CARGO_BIN_EXE_hawser"));
        create.args(["torrent", "create", "--force", "-a", url, "-o"]);
        let output = create.arg(&torrent).arg(self.files.content()).output();
        assert!(output.as_ref().unwrap().status.success(), "{output:?}");
        torrent
    }

    /// Starts the seeder; returns where peers connect.
    fn seeder(&self, way: &Way) -> (Program, [String; 2]) {
        let (torrent, content) = (self.torrent(way, Kind::Both), self.files.content());
        let (torrent, content) = (torrent.to_str().unwrap(), content.to_str().unwrap());
        let tcp = format!("{B_HOST}:0");
        let args = ["seed", torrent, content, "--json", "--tcp", &tcp];
        let args = [&args[..], &way.flags(Kind::Both)].concat();
        let mut seeder = self.start(B, "seeder", &args);
        let ready = seeder.json("the seeder");
        let addrs = ["listening", "listening_tcp"].map(|key| text(&ready, key));
        (seeder, addrs)
    }

    /// Starts a leecher with these known peers.
    fn leecher(&self, number: usize, kind: Kind, way: &Way, known: &[String]) -> Program {
        let (name, torrent) = (format!("get{number}"), self.torrent(way, kind));
        let into = self.folder(&name);
        let (torrent, into) = (torrent.to_str().unwrap(), into.to_str().unwrap());
        let (tcp, listen) = (format!("{A_HOST}:{}", 20_000 + number), listen(number));
        let mut args = vec!["get", torrent, "-o", into, "--seed", "--json", "--samples"];
        args.extend(match kind {
            Kind::Both => vec!["--tcp", &tcp, "--listen", &listen],
            // IP peers are not reached: none of them listens to uTP.
            Kind::Scion => vec!["--listen", &listen, "--transport", "utp"],
            Kind::Ip => vec!["--tcp", &tcp, "--no-scion"],
        });
        args.extend(way.flags(kind));
        known.iter().for_each(|peer| args.extend(["--peer", peer]));
        self.start(A, &name, &args)
    }

    /// Runs the swarm until all have everything, and prints how fast the part on SCION was.
    fn run(&self, way: &Way, what: &str) {
        let (_seeder, seeder) = self.seeder(way);
        if let Way::Tracker { ip, .. } = way {
            self.await_announced(ip);
        }
        let start = |(number, kind): (usize, &Kind)| {
            let first = [format!("{A},{}", listen(0)), format!("{A_HOST}:{}", 20_000)];
            let known = match (way, number, kind) {
                (Way::Exchange, 0, _) => seeder.to_vec(),
                (Way::Exchange, _, Kind::Scion) => first[..1].to_vec(),
                (Way::Exchange, _, Kind::Ip) => first[1..].to_vec(),
                (Way::Exchange, _, Kind::Both) => first.to_vec(),
                _ => Vec::new(),
            };
            (number, *kind, self.leecher(number, *kind, way, &known))
        };
        let began = Instant::now();
        let leechers: Vec<_> = LEECHERS.iter().enumerate().map(start).collect();
        let mut reports = Vec::new();
        let mut programs = Vec::new();
        for (number, kind, mut leecher) in leechers {
            let report = leecher.json(&format!("leecher {number} on {kind:?}"));
            let report: TransferReport = serde_json::from_value(report).unwrap();
            let got = fs::read(self.folder(&format!("get{number}")).join("data")).unwrap();
            let is_same = got == fs::read(self.files.content()).unwrap();
            assert!(is_same, "leecher {number} on {kind:?} has another file");
            let used = report.paths.iter().filter(|path| path.bytes > 0);
            for path in used {
                let is_scion = path.peer.contains(',');
                let is_right = match kind {
                    Kind::Scion => is_scion,
                    Kind::Ip => !is_scion,
                    Kind::Both => true,
                };
                assert!(
                    is_right,
                    "a leecher on {kind:?} has fetched from {}",
                    path.peer
                );
            }
            reports.push((kind, report));
            programs.push(leecher);
        }
        println!(
            "{what}: all have everything after {:.1} s",
            began.elapsed().as_secs_f64()
        );
        self.print(&reports, &seeder);
    }

    /// Waits until the tracker has the seeder.
    fn await_announced(&self, url: &str) {
        let info_hash = Command::new(env!("CARGO_BIN_EXE_hawser"))
            .args(["torrent", "show", "--json"])
            .arg(self.files.torrent())
            .output()
            .unwrap();
        let shown: Value = serde_json::from_slice(&info_hash.stdout).unwrap();
        let hash = text(&shown, "info_hash");
        let hash: Vec<&str> = (0..20).map(|at| &hash[2 * at..2 * at + 2]).collect();
        let address = url.strip_prefix("http://").unwrap();
        let (host, port) = address.split_once('/').unwrap().0.rsplit_once(':').unwrap();
        let script = format!(
            "exec 3<>/dev/tcp/{host}/{port}; printf 'GET /scrape?info_hash=%%{} HTTP/1.0\\r\\n\\r\\n' \
             >&3; cat <&3",
            hash.join("%%")
        );
        eventually("the seeder is announced", || {
            let output = self.lab.exec(B, &["bash", "-c", &script]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains("8:completei1e")
        });
    }

    /// Prints the goodput of the leechers on SCION, and the most that the paths to the seeder allow.
    fn print(&self, reports: &[(Kind, TransferReport)], seeder: &[String; 2]) {
        let [scion, ip] = seeder.each_ref().map(|addr| host(addr));
        let network = Network::parse(TOPOLOGY).unwrap();
        let part = reports.iter().filter(|(kind, _)| *kind != Kind::Ip);
        let part: Vec<&TransferReport> = part.map(|(_, report)| report).collect();
        let from_seeder = |seeder: &str| {
            let paths = reports.iter().flat_map(|(_, report)| &report.paths);
            let from_seeder = paths.filter(|path| host(&path.peer) == seeder);
            from_seeder.map(|path| path.bytes).sum::<u64>() as f64
        };
        let (over_scion, over_ip) = (from_seeder(scion), from_seeder(ip));
        let sent = over_scion + over_ip;
        let most = most(&network, over_ip / sent) / 1e6;
        for (kind, report) in reports {
            let of = |is_counted: &dyn Fn(&str) -> bool| {
                let counted = report.paths.iter().filter(|path| is_counted(&path.peer));
                counted.map(|path| path.bytes).sum::<u64>() >> 10
            };
            println!(
                "  {kind:?}: {:.1} s, KiB from the seeder {} and {}, from others {} and {} (SCION, IP), \
                 wasted {}",
                report.seconds,
                of(&|peer| host(peer) == scion),
                of(&|peer| host(peer) == ip),
                of(&|peer| host(peer) != scion && peer.contains(',')),
                of(&|peer| host(peer) != ip && !peer.contains(',')),
                report.transferred.wasted_bytes >> 10,
            );
        }
        let seconds = part.iter().map(|report| report.seconds).fold(0.0, f64::max);
        let first = part
            .iter()
            .filter_map(|report| first_bytes(&report.samples));
        let first = first.fold(seconds, f64::min);
        let goodput = |seconds: f64| self.size as f64 * 8e-6 / seconds;
        let (whole, flowing) = (goodput(seconds), goodput(seconds - first));
        println!(
            "  the seeder sent {:.3} copies, {:.0} % over IP",
            sent / self.size as f64,
            100.0 * over_ip / sent,
        );
        println!(
            "  on SCION the last of {} was complete after {seconds:.2} s ({whole:.2} Mbit/s), {:.2} s after \
             the first bytes ({flowing:.2} Mbit/s); the paths to the seeder allow {most:.2} Mbit/s: ratios \
             {:.3} and {:.3}",
            part.len(),
            seconds - first,
            whole / most,
            flowing / most,
        );
    }
}

/// The most that the links to the seeder allow, in bits of content per second, if this part of the content comes over
/// IP, whose headers are shorter than those of SCION.
fn most(network: &Network, over_ip: f64) -> f64 {
    // Reports have no MTU of paths to peers that were found.
    let costs = [1, 2].map(|number| {
        let end = |isd_as: &str| format!("{isd_as}#{number}").parse().unwrap();
        PathCost::blocks(vec![end(B), end(A)], MTU, PATH_BYTES)
    });
    let [from, to] = [B, A].map(|isd_as| isd_as.parse().unwrap());
    let ip = PathCost::plain_tcp(network, from, to).unwrap();
    let scion = costs[0].efficiency();
    // Both links are full: the one that IP takes carries SCION packets, too.
    let mixed = 1.0 / (over_ip / ip.efficiency() + (1.0 - over_ip) / scion);
    ceiling(network, &costs).unwrap() * mixed / scion
}

/// Where a leecher listens to SCION peers.
fn listen(number: usize) -> String {
    format!("{A_HOST}:{}", 31_500 + number)
}

/// The host of an address. The seeder connects to peers that it finds, over TCP from other ports than it listens to.
fn host(addr: &str) -> &str {
    addr.rsplit_once(':').unwrap().0
}

/// When the first bytes were there.
fn first_bytes(samples: &[Sample]) -> Option<f64> {
    let first = samples.iter().find(|sample| sample.bytes > 0);
    first.map(|sample| sample.seconds)
}

/// Runs a swarm in a lab of this name.
fn run(name: &str, size: usize, what: &str, way: fn(&mut Swarm) -> Way) {
    let Some(mut swarm) = Swarm::new(name, size) else {
        return;
    };
    let way = way(&mut swarm);
    swarm.run(&way, what);
}

#[test]
fn what_comes_over_ip_has_shorter_headers() {
    let network = Network::parse(TOPOLOGY).unwrap();
    let [none, third, half] = [0.0, 1.0 / 3.0, 0.5].map(|part| most(&network, part) / 32e6);
    // Of a frame of 1,514 bytes, SCION leaves 1,359 to blocks, and TCP 1,448.
    assert!((none - 1359.0 / 1514.0).abs() < 0.002, "{none}");
    assert!(none < third && third < half, "{third}");
    assert!(half < 1448.0 / 1514.0, "{half}");
}

#[test]
fn addresses_of_a_host_differ_in_their_ports_alone() {
    assert_eq!(host("10.0.2.1:40000"), host("10.0.2.1:20000"));
    assert_eq!(host("1-ff00:0:111,10.0.2.1:40000"), "1-ff00:0:111,10.0.2.1");
    assert_ne!(host("1-ff00:0:111,10.0.2.1:1"), host("10.0.2.1:1"));
}

#[test]
fn a_mixed_swarm_finds_itself_by_a_tracker_alone() {
    run("mixed-tracker", SIZE, "by a tracker", Swarm::tracker);
}

#[test]
fn a_mixed_swarm_finds_itself_by_the_dht_alone() {
    run("mixed-dht", SIZE, "by the DHT", Swarm::dht);
}

#[test]
fn a_mixed_swarm_finds_itself_by_exchange_alone() {
    run("mixed-pex", SIZE, "by exchange", |_| Way::Exchange);
}

#[test]
#[ignore = "a measurement, to be read by people"]
fn measure_a_mixed_swarm_by_a_tracker() {
    run("measure-tracker", LARGE, "by a tracker", Swarm::tracker);
}

#[test]
#[ignore = "a measurement, to be read by people"]
fn measure_a_mixed_swarm_by_the_dht() {
    run("measure-dht", LARGE, "by the DHT", Swarm::dht);
}

#[test]
#[ignore = "a measurement, to be read by people"]
fn measure_a_mixed_swarm_by_exchange() {
    run("measure-pex", LARGE, "by exchange", |_| Way::Exchange);
}
