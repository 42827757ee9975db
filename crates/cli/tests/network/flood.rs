//! SCMP errors from an attacker outside the path, who knows what is public: the addresses of the
//! victim and its peer, and the interfaces of the paths between them.
//!
//! The attacker is a separate process inside an AS: this same program, started with [`PLAN`].

use std::env;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use hawser_endhost::socket::Socket;
use hawser_endhost::{Bootstrap, Endhost, Headers, IsdAsn, Path, ScionAddr};
use hawser_path::{Interface, Metadata};

/// The environment variable that makes this program an attacker: kind, rate, links, victim, peer.
const PLAN: &str = "HAWSER_TEST_FLOOD";

/// Four links between A and B, and one from which an attacker reaches B.
pub const FOUR_LINKS: &str = r#"
ASes:
  "1-ff00:0:110": {core: true}
  "1-ff00:0:111": {core: true}
  "1-ff00:0:112": {core: true}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:111#2", linkAtoB: CORE}
  - {a: "1-ff00:0:110#3", b: "1-ff00:0:111#3", linkAtoB: CORE}
  - {a: "1-ff00:0:110#4", b: "1-ff00:0:111#4", linkAtoB: CORE}
  - {a: "1-ff00:0:111#5", b: "1-ff00:0:112#1", linkAtoB: CORE}
"#;
pub const B: &str = "1-ff00:0:111";
pub const ATTACKER: &str = "1-ff00:0:112";
/// The address of the only download in A.
pub const LEECHER: &str = "1-ff00:0:110,10.0.1.1:31000";

/// Kinds of floods, and the ASes that they come from.
pub const KINDS: [(&str, &str); 4] = [
    ("interface-down", ATTACKER),
    // The victim's own AS: only its reports of this kind are accepted.
    ("interface-down", B),
    ("unreachable", ATTACKER),
    ("too-big", ATTACKER),
];

/// SCMP errors against a host that sends to [`LEECHER`].
pub struct Flood<'a> {
    pub kind: &'a str,
    /// Packets per second.
    pub rate: u32,
    /// The links of the quoted packets, in turn.
    pub links: &'a [u16],
    pub victim: &'a str,
}

impl Flood<'_> {
    /// Makes `command`, which starts this program, start the flood.
    pub fn plan(&self, command: &mut Vec<String>) {
        let links: Vec<String> = self.links.iter().map(u16::to_string).collect();
        let (kind, rate, links, victim) = (self.kind, self.rate, links.join(","), self.victim);
        let plan = format!("{PLAN}={kind} {rate} {links} {victim} {LEECHER}");
        command.splice(0..0, ["env".to_owned(), plan]);
    }
}

/// Floods without end if this process was started as an attacker.
pub fn attack_if_planned() {
    let Ok(plan) = env::var(PLAN) else {
        return;
    };
    let words: Vec<&str> = plan.split(' ').collect();
    let [kind, rate, links, victim, peer] = words[..] else {
        panic!("{plan}");
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let (victim, peer) = (victim.parse().unwrap(), peer.parse().unwrap());
    let links = links.split(',').map(|link| link.parse().unwrap());
    let attack = attack(kind, rate.parse().unwrap(), links, victim, peer);
    runtime.unwrap().block_on(attack);
}

async fn attack(
    kind: &str,
    rate: u32,
    links: impl Iterator<Item = u16>,
    victim: ScionAddr,
    peer: ScionAddr,
) {
    let host = Endhost::bootstrap(&Bootstrap::default()).await.unwrap();
    let local = Socket::bind(&host, None).unwrap().local_addr();
    let paths = host.paths(victim.isd_as).await.unwrap();
    let headers = Headers::new(local, victim, &paths[0]).unwrap();
    let packets: Vec<Vec<u8>> = links
        .map(|link| headers.scmp(&message(kind, link, victim, peer)))
        .collect();
    let socket = UdpSocket::bind((local.host.ip(), 0)).unwrap();
    let (began, every) = (Instant::now(), Duration::from_secs(1) / rate);
    for (at, packet) in (0..).zip(packets.iter().cycle()) {
        let due = every * at;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        // The socket's buffer is full or the router is gone: the next packet may arrive.
        let _ = socket.send_to(packet, headers.next_hop);
    }
}

/// The error about an invented packet from `victim` to `peer` over one of the links.
fn message(kind: &str, link: u16, victim: ScionAddr, peer: ScionAddr) -> Vec<u8> {
    let mut quoted = Vec::new();
    let headers = Headers::new(victim, peer, &path(victim.isd_as, peer.isd_as, link));
    headers.unwrap().write(&[0; 1100], 0, &mut quoted);
    let whole = u16::try_from(quoted.len()).unwrap();
    let mut message = match kind {
        "interface-down" => {
            let (isd_as, id) = (victim.isd_as.to_be_bytes(), u64::from(link).to_be_bytes());
            [&[5, 0, 0, 0], &isd_as[..], &id].concat()
        }
        "unreachable" => vec![1, 0, 0, 0, 0, 0, 0, 0],
        "too-big" => [&[2, 0, 0, 0, 0, 0], &(whole - 1).to_be_bytes()[..]].concat(),
        kind => panic!("{kind}"),
    };
    message.extend_from_slice(&quoted);
    message
}

/// The path over a link with the same number at both ends, with zeros for everything that an
/// attacker cannot know.
fn path(src: IsdAsn, dst: IsdAsn, link: u16) -> Path {
    let mut raw = (2u32 << 12).to_be_bytes().to_vec();
    raw.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    for (ingress, egress) in [(0, link), (link, 0)] {
        raw.extend_from_slice(&[0, 63]);
        raw.extend_from_slice(&ingress.to_be_bytes());
        raw.extend_from_slice(&egress.to_be_bytes());
        raw.extend_from_slice(&[0; 6]);
    }
    let interfaces = [src, dst].map(|isd_as| Interface { isd_as, id: link });
    let info = hawser_path::Path::new(src, dst, interfaces.into(), Metadata::default()).unwrap();
    // The next hop, to which nothing is sent.
    Path::new(info, raw, Some("10.0.0.1:1".parse().unwrap())).unwrap()
}

/// The command line that runs this program, a test or a benchmark, as an attacker.
pub fn this_program(arguments: &[&str]) -> Vec<String> {
    let program = env::current_exe().unwrap();
    let mut command = vec![program.to_str().unwrap().to_owned()];
    command.extend(arguments.iter().map(|&word| word.to_owned()));
    command
}

/// Starts a command inside an AS; `exec` makes a command of its words.
pub fn start(command: &[String], exec: impl FnOnce(&[&str]) -> Command) -> std::process::Child {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut command = exec(&words);
    command.stdout(std::process::Stdio::null());
    command.spawn().unwrap()
}
