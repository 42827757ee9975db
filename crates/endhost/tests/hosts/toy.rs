//! Two ASes in one process: a daemon for each, whose answers the test sets, and a link between two
//! routers that only forward packets. No cryptography; everything else is real.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hawser_endhost::{Daemon, Endhost, Headers, IsdAsn, ScionAddr};
use hawser_packet::{Packet, ScmpError};
use hawser_proto::daemon as pb;
use hawser_proto::well_known::Timestamp;
use hawser_rpc::{Router, RpcError};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The dispatched ports of all ASes here.
pub const PORTS: (u16, u16) = (31000, 32767);
/// The MTU of all ASes and links here.
pub const MTU: u16 = 1472;

pub fn isd_as(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

pub fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// The daemon's answers.
#[derive(Default)]
pub struct Answers {
    pub isd_as: u64,
    pub mtu: u32,
    pub ports: (u32, u32),
    pub interfaces: BTreeMap<u64, String>,
    pub paths: HashMap<u64, Vec<pb::Path>>,
    /// The answer to all requests, if it is set.
    pub error: Option<RpcError>,
}

/// A daemon, and how often its paths were requested.
pub struct ToyDaemon {
    pub address: String,
    pub answers: Arc<Mutex<Answers>>,
    pub asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// An answer of the daemon, as the test has set it.
fn answer<T>(
    answers: &Mutex<Answers>,
    answer: impl FnOnce(&Answers) -> T,
) -> std::future::Ready<Result<T, RpcError>> {
    let answers = answers.lock().unwrap();
    std::future::ready(match &answers.error {
        Some(error) => Err(error.clone()),
        None => Ok(answer(&answers)),
    })
}

/// The methods of the daemon that a host calls.
fn methods(all: &Arc<Mutex<Answers>>, asked: &Arc<AtomicUsize>) -> Router {
    let [paths, local, interfaces, ports] = std::array::from_fn(|_| Arc::clone(all));
    let asked = Arc::clone(asked);
    Router::new()
        .with_method(pb::PATHS, move |request| {
            asked.fetch_add(1, Ordering::SeqCst);
            let dst = request.destination_isd_as;
            answer(&paths, |answers| pb::PathsResponse {
                paths: answers.paths.get(&dst).cloned().unwrap_or_default(),
            })
        })
        .with_method(pb::AS, move |_| {
            answer(&local, |answers| pb::ASResponse {
                isd_as: answers.isd_as,
                mtu: answers.mtu,
                ..Default::default()
            })
        })
        .with_method(pb::INTERFACES, move |_| {
            answer(&interfaces, |answers| pb::InterfacesResponse {
                interfaces: answers
                    .interfaces
                    .iter()
                    .map(|(id, address)| (*id, interface(address)))
                    .collect(),
            })
        })
        .with_method(pb::PORT_RANGE, move |_| {
            answer(&ports, |answers| pb::PortRangeResponse {
                dispatched_port_start: answers.ports.0,
                dispatched_port_end: answers.ports.1,
            })
        })
}

/// Has a service answer at an address until the task is aborted.
pub async fn serve(at: SocketAddr, router: Router) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (_never, stopped) = watch::channel(false);
        hawser_rpc::serve(listener, router, stopped).await;
    });
    (address, task)
}

pub fn interface(address: &str) -> pb::Interface {
    pb::Interface {
        address: Some(pb::Underlay {
            address: address.into(),
        }),
    }
}

impl ToyDaemon {
    pub async fn start(answers: Answers) -> Self {
        let answers = Arc::new(Mutex::new(answers));
        let asked = Arc::new(AtomicUsize::new(0));
        let any = (Ipv4Addr::LOCALHOST, 0).into();
        let (address, task) = serve(any, methods(&answers, &asked)).await;
        Self {
            address: address.to_string(),
            answers,
            asked,
            task,
        }
    }

    /// An AS without links.
    pub async fn alone(isd_as: IsdAsn) -> Self {
        Self::start(Answers {
            isd_as: isd_as.to_u64(),
            mtu: MTU.into(),
            ports: (PORTS.0.into(), PORTS.1.into()),
            ..Answers::default()
        })
        .await
    }

    pub fn client(&self) -> Daemon {
        Daemon::connect(&self.address).unwrap()
    }

    pub async fn endhost(&self) -> Endhost {
        Endhost::new(self.client()).await.unwrap()
    }

    pub fn set_paths(&self, dst: IsdAsn, paths: Vec<pb::Path>) {
        self.answers
            .lock()
            .unwrap()
            .paths
            .insert(dst.to_u64(), paths);
    }
}

impl Drop for ToyDaemon {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A data-plane path of one segment in construction direction over `hops` (ingress, egress).
pub fn raw_path(hops: &[(u16, u16)], timestamp: u32) -> Vec<u8> {
    let mut raw = ((hops.len() as u32) << 12).to_be_bytes().to_vec();
    raw.extend_from_slice(&[1, 0, 0x12, 0x34]);
    raw.extend_from_slice(&timestamp.to_be_bytes());
    for (ingress, egress) in hops {
        // Expiry unit 63: six hours.
        raw.extend_from_slice(&[0, 63]);
        raw.extend_from_slice(&ingress.to_be_bytes());
        raw.extend_from_slice(&egress.to_be_bytes());
        // The toy's MAC changes with the timestamp, as real ones do.
        raw.extend_from_slice(&timestamp.to_be_bytes());
        raw.extend_from_slice(&[0xaa, 0xbb]);
    }
    raw
}

/// The path over one link, as a daemon returns it.
pub fn path_over(
    from: (IsdAsn, u16),
    to: (IsdAsn, u16),
    router: SocketAddr,
    timestamp: u32,
) -> pb::Path {
    let end = |(isd_as, id): (IsdAsn, u16)| pb::PathInterface {
        isd_as: isd_as.to_u64(),
        id: id.into(),
    };
    pb::Path {
        raw: raw_path(&[(0, from.1), (to.1, 0)], timestamp),
        interface: Some(interface(&router.to_string())),
        interfaces: vec![end(from), end(to)],
        mtu: MTU.into(),
        expiration: Some(Timestamp {
            seconds: i64::from(timestamp) + 6 * 3600,
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// How a link treats packets; by default it forwards them.
#[derive(Default)]
pub struct Conduct {
    /// Answers packets with "interface down" instead of forwarding them.
    pub down: AtomicBool,
    /// Answers packets with "interface down" and forwards them nevertheless.
    pub lies: AtomicBool,
    /// Answers packets of more bytes with "packet too big" instead of forwarding them; zero for no
    /// limit.
    pub narrow: AtomicU64,
    /// Drops packets.
    pub silent: AtomicBool,
    /// Delivers packets of the first AS by another interface of the second.
    pub detour: AtomicBool,
    /// Sends two copies of each packet of the first AS over its path as of this timestamp, zero for no
    /// copies: before the packet one that is changed at the end, and one that is not after it.
    pub copies: AtomicU64,
    /// Bytes per second, zero for no limit; each packet counts 42 more, as in Ethernet.
    pub rate: AtomicU64,
    /// Bytes that may wait for the link; further packets are dropped.
    pub queue: AtomicU64,
    /// Milliseconds that packets take in each direction.
    pub delay: AtomicU64,
    pub flights: Mutex<Flights>,
    pub passed: AtomicU64,
    pub dropped: AtomicU64,
}

/// How many flights there were until a packet: one more than until the latest packet that had arrived
/// where it was sent. With a delay much longer than hosts take to answer, that is the number of packets
/// one after the other that led to it, and one.
#[derive(Default)]
pub struct Flights {
    /// Until the latest packet that has arrived at the first AS, and at the second.
    pub arrived: [u32; 2],
    /// The flights until each packet from the first AS, with the packet's source port and payload, if there is
    /// a delay.
    pub sent: Vec<(u32, u16, Vec<u8>)>,
}

/// Two ASes with one link between them, unless more are requested.
pub struct ToyNet {
    pub a: ToyDaemon,
    pub b: ToyDaemon,
    pub a_as: IsdAsn,
    pub b_as: IsdAsn,
    /// The conduct of the first link.
    pub conduct: Arc<Conduct>,
    pub links: Vec<ToyLink>,
}

/// A link, with its interface and router in each AS.
pub struct ToyLink {
    pub conduct: Arc<Conduct>,
    ids: (u16, u16),
    routers: (SocketAddr, SocketAddr),
    tasks: Vec<JoinHandle<()>>,
}

impl ToyLink {
    async fn start(ases: (IsdAsn, IsdAsn), ids: (u16, u16)) -> Self {
        let conduct = Arc::new(Conduct::default());
        let bind = || UdpSocket::bind("127.0.0.1:0");
        let (a, b) = (bind().await.unwrap(), bind().await.unwrap());
        let routers = (a.local_addr().unwrap(), b.local_addr().unwrap());
        let (a, b) = (Arc::new(a), Arc::new(b));
        let down = [(ases.0, ids.0), (ases.1, ids.1)];
        let tasks = [(&a, &b, down[0]), (&b, &a, down[1])].map(|(from, to, down)| {
            let pass = pass(Arc::clone(from), Arc::clone(to), down, Arc::clone(&conduct));
            tokio::spawn(pass)
        });
        Self {
            conduct,
            ids,
            routers,
            tasks: tasks.into(),
        }
    }
}

impl ToyNet {
    pub async fn start() -> Self {
        Self::with_links(1).await
    }

    /// Interfaces 1, 3... of the first AS are linked to 2, 4... of the second.
    pub async fn with_links(count: u16) -> Self {
        let (a_as, b_as) = (isd_as("1-ff00:0:110"), isd_as("1-ff00:0:111"));
        let (a, b) = (ToyDaemon::alone(a_as).await, ToyDaemon::alone(b_as).await);
        let mut links = Vec::new();
        for link in 0..count {
            links.push(ToyLink::start((a_as, b_as), (2 * link + 1, 2 * link + 2)).await);
        }
        for link in &links {
            let name = |id: u16, router: SocketAddr| (id.into(), router.to_string());
            let (of_a, of_b) = (
                name(link.ids.0, link.routers.0),
                name(link.ids.1, link.routers.1),
            );
            a.answers.lock().unwrap().interfaces.extend([of_a]);
            b.answers.lock().unwrap().interfaces.extend([of_b]);
        }
        let net = Self {
            a,
            b,
            a_as,
            b_as,
            conduct: Arc::clone(&links[0].conduct),
            links,
        };
        net.offer(unix_now() as u32);
        net
    }

    /// Makes both daemons offer the paths over the links as of `timestamp`.
    pub fn offer(&self, timestamp: u32) {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for ToyLink { ids, routers, .. } in &self.links {
            let (a, b) = ((self.a_as, ids.0), (self.b_as, ids.1));
            there.push(path_over(a, b, routers.0, timestamp));
            back.push(path_over(b, a, routers.1, timestamp));
        }
        self.a.set_paths(self.b_as, there);
        self.b.set_paths(self.a_as, back);
    }

    /// Makes both daemons offer no paths.
    pub fn withdraw(&self) {
        self.a.set_paths(self.b_as, Vec::new());
        self.b.set_paths(self.a_as, Vec::new());
    }

    pub fn router_a(&self) -> SocketAddr {
        self.links[0].routers.0
    }

    /// Stops both routers: afterwards no socket is bound to their addresses.
    pub async fn stop_routers(&mut self) {
        for task in self.links.iter_mut().flat_map(|link| link.tasks.drain(..)) {
            task.abort();
            // The socket is closed when its task has ended.
            let _ = task.await;
        }
    }
}

impl Drop for ToyLink {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Forwards packets from the hosts of one AS to those of the other.
async fn pass(
    from: Arc<UdpSocket>,
    to: Arc<UdpSocket>,
    down: (IsdAsn, u16),
    conduct: Arc<Conduct>,
) {
    let mut buffer = vec![0; 65536];
    let mut busy_until = Instant::now();
    let (queue, mut queued) =
        tokio::sync::mpsc::unbounded_channel::<(Instant, u32, Vec<u8>, SocketAddr)>();
    let (here, there) = if down.1 % 2 == 1 { (0, 1) } else { (1, 0) };
    let arriving = Arc::clone(&conduct);
    let out = tokio::spawn(async move {
        while let Some((at, flight, packet, dst)) = queued.recv().await {
            tokio::time::sleep_until(at.into()).await;
            {
                let arrived = &mut arriving.flights.lock().unwrap().arrived[there];
                *arrived = flight.max(*arrived);
            }
            let _ = to.send_to(&packet, dst).await;
        }
    });
    let _out = AbortOnDrop(out);
    loop {
        let Ok((length, sender)) = from.recv_from(&mut buffer).await else {
            continue;
        };
        let bytes = &mut buffer[..length];
        let Ok(packet) = Packet::parse(bytes) else {
            panic!("a host sends no SCION packet: {bytes:02x?}");
        };
        if conduct.silent.load(Ordering::SeqCst) {
            continue;
        }
        let lies = conduct.lies.load(Ordering::SeqCst);
        if lies || conduct.down.load(Ordering::SeqCst) {
            if let Some(report) = interface_down(&packet, down, from.local_addr().unwrap()) {
                from.send_to(&report, sender).await.unwrap();
            }
            if !lies {
                continue;
            }
        }
        let narrow = conduct.narrow.load(Ordering::SeqCst);
        if narrow != 0 && length as u64 > narrow {
            let report = too_big(&packet, down.0, narrow as u16, from.local_addr().unwrap());
            from.send_to(&report.unwrap(), sender).await.unwrap();
            continue;
        }
        let port = match packet.udp() {
            Ok(udp) => udp.dst_port,
            Err(_) if packet.is_scmp() => scmp_port(&packet),
            Err(error) => panic!("a host sends a broken packet: {error}"),
        };
        let dst = SocketAddr::new(packet.dst_host().unwrap(), port);
        let delay = Duration::from_millis(conduct.delay.load(Ordering::SeqCst));
        let flight = {
            let flights = &mut *conduct.flights.lock().unwrap();
            let flight = flights.arrived[here] + 1;
            if here == 0
                && !delay.is_zero()
                && let Ok(udp) = packet.udp()
            {
                let sent = (flight, udp.src_port, udp.payload.to_vec());
                flights.sent.push(sent);
            }
            flight
        };
        let path_at = length - packet.payload().len() - packet.path().len();
        // Of two hops the second is the current one.
        bytes[path_at] = (bytes[path_at] & 0b1100_0000) | 1;
        if conduct.detour.load(Ordering::SeqCst) && down.1 == 1 {
            let ingress = path_at + 4 + 8 + 12 + 2;
            bytes[ingress..ingress + 2].copy_from_slice(&9u16.to_be_bytes());
        }
        conduct.passed.fetch_add(1, Ordering::SeqCst);
        let rate = conduct.rate.load(Ordering::SeqCst);
        let now = Instant::now();
        busy_until = busy_until.max(now);
        if rate != 0 {
            let backlog = (busy_until - now).as_secs_f64() * rate as f64;
            if backlog as u64 > conduct.queue.load(Ordering::SeqCst) {
                conduct.dropped.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            busy_until += Duration::from_secs_f64((length + 42) as f64 / rate as f64);
        }
        let arrival = busy_until + delay;
        let original = bytes.to_vec();
        let copies = conduct.copies.load(Ordering::SeqCst);
        if copies == 0 || down.1 != 1 {
            queue.send((arrival, flight, original, dst)).unwrap();
            continue;
        }
        let mut copy = original.clone();
        let timestamp = path_at + 4 + 4;
        copy[timestamp..timestamp + 4].copy_from_slice(&(copies as u32).to_be_bytes());
        let mut changed = copy.clone();
        change(&mut changed);
        for packet in [changed, original, copy] {
            queue.send((arrival, flight, packet, dst)).unwrap();
        }
    }
}

/// Changes the last whole words of a packet such that its checksum stays right.
fn change(packet: &mut [u8]) {
    let end = packet.len() & !1;
    for (at, add) in [(end - 4, 1), (end - 2, 65534)] {
        let word = u32::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
        let changed = ((word + add) % 65535) as u16;
        packet[at..at + 2].copy_from_slice(&changed.to_be_bytes());
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Echo requests go to the host's responder, replies to the port they were sent from.
fn scmp_port(packet: &Packet<'_>) -> u16 {
    let message = packet.payload();
    match message[0] {
        129 | 131 => u16::from_be_bytes([message[4], message[5]]),
        _ => hawser_endhost::responder::PORT,
    }
}

/// The SCMP error of a router of `down`'s AS about a packet that would cross its dead link.
pub fn interface_down(
    packet: &Packet<'_>,
    down: (IsdAsn, u16),
    router: SocketAddr,
) -> Option<Vec<u8>> {
    let (isd_as, interface) = down;
    let down = ScmpError::ExternalInterfaceDown { isd_as, interface };
    error(packet, isd_as, router, down)
}

/// The SCMP error of a router of the AS about a packet that is larger than its link takes.
pub fn too_big(
    packet: &Packet<'_>,
    isd_as: IsdAsn,
    mtu: u16,
    router: SocketAddr,
) -> Option<Vec<u8>> {
    error(packet, isd_as, router, ScmpError::PacketTooBig { mtu })
}

/// An SCMP error to the sender of `packet`, which it quotes.
fn error(
    packet: &Packet<'_>,
    isd_as: IsdAsn,
    router: SocketAddr,
    error: ScmpError,
) -> Option<Vec<u8>> {
    let port = packet.udp().map_or(0, |udp| udp.src_port);
    let local = ScionAddr::new(isd_as, router);
    let headers = Headers::reply(local, packet, port, router).ok()?;
    let mut message = Vec::new();
    error.write(&mut message);
    message.extend_from_slice(&packet.bytes()[..packet.bytes().len().min(1000)]);
    Some(headers.scmp(&message))
}

/// An address for this test only: loopback has many, and tests run in parallel.
pub fn own_ip(last: u8) -> IpAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 100 + high % 100, low, last).into()
}
