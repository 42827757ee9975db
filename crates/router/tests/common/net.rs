//! Two routers over loopback addresses, in threads.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_router::live::{self, Reply, Request};
use hawser_router::{Counters, Options, Router, RouterError, Signals};
use hawser_topology::{
    AsDir, AsTopology, Bfd, BorderRouter, Interface, IsdAsn, LinkAddresses, LinkState, LinkTo,
    Shape,
};
use noq_udp::{Transmit, UdpSocketState};
use tempfile::TempDir;

use super::{MTU, Segment, TestAddr, TestPath, udp_between};

/// Two core ASes, 1-1 and 1-2, with a link between their interfaces 1.
pub struct Net {
    folder: TempDir,
    /// The first three bytes of all addresses but the link's, different in each test.
    block: [u8; 3],
    /// The first three bytes of the addresses of the link's ends.
    link_block: [u8; 3],
    /// BFD on the link; disabled unless the test enables it.
    bfd: Bfd,
    /// Number of threads of each router.
    pub threads: u16,
    /// The keys of the ASes' hop fields, once they were needed.
    keys: OnceLock<[[u8; 16]; 2]>,
    /// The control socket of each router, and its thread.
    running: Vec<(PathBuf, JoinHandle<Result<(), RouterError>>)>,
}

/// Longest wait for anything, also on a machine that is very busy.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A link that is up and has no delay, jitter, loss or rate.
pub const PLAIN: LinkState = LinkState {
    up: true,
    shape: SHAPE,
};
pub const SHAPE: Shape = Shape {
    rate: None,
    delay: Duration::ZERO,
    jitter: Duration::ZERO,
    loss: 0.0,
    queue: Duration::from_millis(50),
};

fn run(router: Router) -> Result<(), RouterError> {
    router.run(&Signals::block().unwrap())
}

impl Net {
    /// Writes both ASes' folders.
    pub fn new() -> Self {
        Self::with_bfd(Bfd {
            disable: true,
            ..Bfd::default()
        })
    }

    /// Writes both ASes' folders, with `bfd` on the link.
    pub fn with_bfd(bfd: Bfd) -> Self {
        Self::on(None, bfd)
    }

    /// Writes the folders of ASes whose link is between two devices, with addresses that begin with
    /// `link_block`. BFD is disabled.
    pub fn between(link_block: [u8; 3]) -> Self {
        let disabled = Bfd {
            disable: true,
            ..Bfd::default()
        };
        Self::on(Some(link_block), disabled)
    }

    fn on(link_block: Option<[u8; 3]>, bfd: Bfd) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        let process = std::process::id();
        let block = [
            127,
            (64 + process % 128) as u8,
            (process / 128 % 8 * 32) as u8 + NEXT.fetch_add(1, Ordering::Relaxed),
        ];
        let net = Self {
            folder: TempDir::new().unwrap(),
            block,
            link_block: link_block.unwrap_or(block),
            bfd,
            threads: 1,
            keys: OnceLock::new(),
            running: Vec::new(),
        };
        for number in [1, 2] {
            let dir = net.dir(number);
            std::fs::create_dir(dir.path()).unwrap();
            dir.write_topology(&net.topology(number)).unwrap();
            dir.write_master_key(&[number; 16]).unwrap();
        }
        net
    }

    /// Starts both routers.
    pub fn up() -> Self {
        let mut net = Self::new();
        net.start(1);
        net.start(2);
        net
    }

    pub fn start(&mut self, number: u8) {
        let router = Router::open(&self.dir(number), None, &self.options()).unwrap();
        self.run(number, router, self.dir(number).router_socket());
    }

    /// Starts the router `name` of an AS with several.
    pub fn start_named(&mut self, number: u8, name: &str) {
        let router = Router::open(&self.dir(number), Some(name), &self.options()).unwrap();
        self.run(number, router, self.dir(number).router_socket_of(name));
    }

    fn options(&self) -> Options {
        Options::default()
            .with_seed(7)
            .with_threads(self.threads.try_into().unwrap())
    }

    /// Runs `router` in a thread with the number of its AS in its name.
    fn run(&mut self, number: u8, router: Router, socket: PathBuf) {
        let thread = std::thread::Builder::new().name(format!("router-{number}"));
        self.running
            .push((socket, thread.spawn(|| run(router)).unwrap()));
    }

    /// Stops the router with the control socket `socket`, and joins its thread.
    pub fn stop(&mut self, socket: &Path) {
        let at = self.running.iter().position(|running| running.0 == socket);
        let (socket, thread) = self.running.remove(at.unwrap());
        assert_eq!(live::call(&socket, &Request::Stop).unwrap(), Reply::Done);
        thread.join().unwrap().unwrap();
    }

    pub fn dir(&self, number: u8) -> AsDir {
        AsDir::new(self.folder.path().join(number.to_string()))
    }

    pub fn ip(&self, last: u8) -> Ipv4Addr {
        let [a, b, c] = self.block;
        Ipv4Addr::new(a, b, c, last)
    }

    pub fn router(&self, number: u8) -> SocketAddr {
        SocketAddr::new(self.ip(10 * number + 4).into(), 30042)
    }

    pub fn link_end(&self, number: u8) -> SocketAddr {
        let [a, b, c] = self.link_block;
        SocketAddr::new(Ipv4Addr::new(a, b, c, 100 + number).into(), 50000)
    }

    pub fn topology(&self, number: u8) -> AsTopology {
        let interface = Interface {
            underlay: LinkAddresses {
                local: self.link_end(number),
                remote: self.link_end(3 - number),
            },
            isd_as: ia(3 - number),
            remote_id: 1,
            link_to: LinkTo::Core,
            mtu: MTU,
            bfd: self.bfd,
        };
        let router = BorderRouter {
            internal_addr: self.router(number),
            interfaces: BTreeMap::from([(1, interface)]),
        };
        AsTopology {
            isd_as: ia(number),
            mtu: MTU,
            core: true,
            dispatched_ports: (31000, 32767),
            control_service: BTreeMap::new(),
            discovery_service: BTreeMap::new(),
            border_routers: BTreeMap::from([(format!("br{number}"), router)]),
        }
    }

    /// A socket of the host in AS `number`.
    pub fn host(&self, number: u8, port: u16) -> UdpSocket {
        let socket = UdpSocket::bind((self.ip(10 * number), port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub fn addr(&self, number: u8) -> TestAddr {
        TestAddr::new(ia(number), self.ip(10 * number))
    }

    /// The path from 1-1 to 1-2.
    pub fn path(&self) -> TestPath {
        // Deriving a key takes far longer than all else of a packet.
        let derive = || [1, 2].map(|number| self.dir(number).hop_key().unwrap());
        fresh_path(&[(0, 1), (1, 0)], self.keys.get_or_init(derive))
    }

    /// A packet from 1-1 to 1-2 whose payload begins with `number`.
    pub fn packet(&self, number: u16, port: u16, payload: usize) -> Vec<u8> {
        let mut packet = udp_between(self.addr(1), self.addr(2), port, self.path(), payload);
        let at = packet.len() - payload;
        packet[at..at + 2].copy_from_slice(&number.to_be_bytes());
        packet
    }

    pub fn call(&self, number: u8, request: &Request) -> Reply {
        live::call(&self.dir(number).router_socket(), request).unwrap()
    }

    pub fn set_link(&self, number: u8, state: LinkState) {
        let request = Request::SetLink { id: 1, state };
        assert_eq!(self.call(number, &request), Reply::Done);
    }

    pub fn counters(&self, number: u8) -> Counters {
        counters_at(&self.dir(number).router_socket())
    }

    /// Waits until router `number` has received `packets` at interface `id` and counted their
    /// results; returns the counters.
    pub fn counters_after(&self, number: u8, id: u16, packets: u64) -> Counters {
        self.counters_when(number, |counters| {
            counters.interfaces[&id].rx_packets >= packets
        })
    }

    /// Waits until the counters of router `number` are as `expected` says; returns them.
    pub fn counters_when(&self, number: u8, expected: impl Fn(&Counters) -> bool) -> Counters {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let counters = self.counters(number);
            if expected(&counters) {
                return counters;
            }
            assert!(Instant::now() < deadline, "{counters:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for (socket, router) in self.running.drain(..) {
            // A router that the test stopped does not answer.
            let _ = live::call(&socket, &Request::Stop);
            let ended = router.join();
            if !std::thread::panicking() {
                ended.unwrap().unwrap();
            }
        }
    }
}

/// A path of one segment that was made a minute ago: the interfaces and the key of each hop.
pub fn fresh_path(hops: &[(u16, u16)], keys: &[[u8; 16]]) -> TestPath {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let timestamp = now.as_secs() as u32 - 60;
    TestPath {
        segments: vec![Segment::new(true, timestamp, hops, keys)],
    }
}

/// The counters of the router with the control socket `socket`.
pub fn counters_at(socket: &Path) -> Counters {
    match live::call(socket, &Request::Counters).unwrap() {
        Reply::Counters(counters) => counters,
        other => panic!("{other:?}"),
    }
}

/// Waits until BFD finds `neighbour` up, or down, at the router with the control socket `socket`.
pub fn wait_for(socket: &Path, neighbour: &str, up: bool) {
    let deadline = Instant::now() + PATIENCE;
    while counters_at(socket).bfd[neighbour] != up {
        assert!(Instant::now() < deadline, "{neighbour} is not up: {up}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn ia(number: u8) -> IsdAsn {
    super::ia(number.into())
}

/// Sends `packets`, all of one length but the last, in one call.
pub fn burst(socket: &UdpSocket, to: SocketAddr, packets: &[Vec<u8>]) {
    let state = UdpSocketState::new(socket.into()).unwrap();
    socket.set_nonblocking(false).unwrap();
    let transmit = Transmit {
        destination: to,
        ecn: None,
        contents: &packets.concat(),
        segment_size: Some(packets[0].len()),
        src_ip: None,
    };
    state.try_send(socket.into(), &transmit).unwrap();
}
