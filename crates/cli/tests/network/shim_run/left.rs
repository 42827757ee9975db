//! What there is in a namespace; and a program whose traffic must not be touched.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use super::bed::Bed;

/// Longest wait for an answer on the same host.
const PATIENCE: Duration = Duration::from_secs(300);

/// Rules, routes, devices and tables of the client's namespace, and control groups if they were
/// asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot {
    printed: Vec<String>,
    groups: BTreeSet<String>,
}

impl Snapshot {
    /// With the control groups of commands below that of this process, which several tests would share: for
    /// one test.
    pub fn with_groups(bed: &Bed) -> Self {
        let mut snapshot = Self::take(bed);
        let text = fs::read_to_string("/proc/self/cgroup").unwrap();
        let of_commands = |line: &&str| line.starts_with("0::") || line.contains("net_cls");
        let own = text.lines().filter(of_commands);
        let own: Vec<&str> = own.filter_map(|line| line.splitn(3, ':').nth(2)).collect();
        collect_groups(Path::new("/sys/fs/cgroup"), &own, &mut snapshot.groups);
        snapshot
    }

    pub fn take(bed: &Bed) -> Self {
        let commands = [
            "ip rule",
            "ip -6 rule",
            "ip route show table all",
            "ip -6 route show table all",
            "ip -o link",
            "nft list ruleset",
        ];
        let print = |command: &&str| {
            let mut words = command.split(' ');
            let mut command = Command::new(words.next().unwrap());
            command.args(words);
            match bed.client.run(|| command.output()) {
                Ok(output) => String::from_utf8(output.stdout).unwrap(),
                // Not every machine has `nft`.
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                Err(error) => panic!("{error}"),
            }
        };
        Self {
            printed: commands.iter().map(print).collect(),
            groups: BTreeSet::new(),
        }
    }
}

/// The control groups of commands that are in one of the groups `own`, in the trees in `folder`.
fn collect_groups(folder: &Path, own: &[&str], groups: &mut BTreeSet<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let path = entry.path();
            let is_of_command = entry
                .file_name()
                .to_string_lossy()
                .starts_with("hawser-run-");
            let is_own = |own: &&str| folder.ends_with(own.trim_start_matches('/'));
            if is_of_command && own.iter().any(is_own) {
                groups.insert(path.to_string_lossy().into_owned());
            }
            collect_groups(&path, own, groups);
        }
    }
}

/// Packets and bytes that go to and fro between two programs in the client's namespace.
pub struct PingPong {
    ends: Arc<AtomicBool>,
    players: Vec<JoinHandle<Played>>,
}

impl PingPong {
    pub fn begin(bed: &Bed) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let own = bed.own_address();
        let players = bed.client.run(|| {
            let datagrams = {
                let ends = Arc::clone(&ends);
                thread::spawn(move || datagrams(own, &ends))
            };
            let stream = {
                let ends = Arc::clone(&ends);
                thread::spawn(move || stream(own, &ends))
            };
            vec![datagrams, stream]
        });
        Self { ends, players }
    }

    /// Ends both players. Each has played, and every round came back.
    pub fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        for player in self.players {
            let played = player.join().unwrap();
            let played = played.unwrap_or_else(|(rounds, error)| panic!("round {rounds}: {error}"));
            assert!(played > 0);
        }
    }
}

/// How many rounds came back; the first one that did not, with the reason.
type Played = Result<u64, (u64, io::Error)>;

/// Plays until the end.
fn play(ends: &AtomicBool, mut round: impl FnMut() -> io::Result<Vec<u8>>) -> Played {
    let mut rounds = 0;
    while !ends.load(Ordering::Relaxed) {
        let back = round().map_err(|error| (rounds, error))?;
        assert_eq!(back, b"ping", "round {rounds}");
        rounds += 1;
        thread::sleep(Duration::from_millis(1));
    }
    Ok(rounds)
}

fn datagrams(own: IpAddr, ends: &AtomicBool) -> Played {
    let bind = || {
        let socket = UdpSocket::bind((own, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let (here, there) = (bind(), bind());
    here.connect(there.local_addr().unwrap()).unwrap();
    there.connect(here.local_addr().unwrap()).unwrap();
    play(ends, || {
        let mut buffer = [0; 8];
        here.send(b"ping")?;
        let length = there.recv(&mut buffer)?;
        there.send(&buffer[..length])?;
        let length = here.recv(&mut buffer)?;
        Ok(buffer[..length].to_vec())
    })
}

fn stream(own: IpAddr, ends: &AtomicBool) -> Played {
    let listener = TcpListener::bind((own, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // A new connection each time, as rules apply to the first packet.
    play(ends, || {
        let mut here = TcpStream::connect(address)?;
        let (mut there, _) = listener.accept()?;
        here.set_read_timeout(Some(PATIENCE))?;
        let mut bytes = [0; 4];
        here.write_all(b"ping")?;
        there.read_exact(&mut bytes)?;
        there.write_all(&bytes)?;
        here.read_exact(&mut bytes)?;
        Ok(bytes.to_vec())
    })
}
