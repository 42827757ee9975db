//! A network of pipes to test the engine on: hosts, paths with rate and delay, paths that go down,
//! freeze and recover.

mod pipe;

use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hawser_address::PeerAddr;
use hawser_endhost::ScionAddr;
use hawser_path::{Fingerprint, Interface, Metadata};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

pub use self::pipe::Pipe;
use self::pipe::link;
use crate::dht::DhtContacts;
use crate::metainfo::Metainfo;
use crate::transport::{Connection, Offers, Transport};

/// The rate and delay of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Bits per second in each direction; `None` for no limit.
    pub rate: Option<u64>,
    /// Delay in one direction.
    pub delay: Duration,
}

/// A direct pipe between both ends: it cannot be frozen or put down.
pub const FAST: Shape = Shape {
    rate: None,
    delay: Duration::ZERO,
};

/// An MTU that leaves no room for data.
const NARROW: u16 = 1;

pub fn mbit(rate: f64, delay_ms: u64) -> Shape {
    Shape {
        rate: Some((rate * 1e6) as u64),
        delay: Duration::from_millis(delay_ms),
    }
}

/// The state of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Up,
    /// No byte gets through, and neither end notices.
    Frozen,
    /// Not offered; its connections end.
    Down,
}

#[derive(Clone, Default)]
pub struct Net(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    hosts: HashMap<ScionAddr, mpsc::UnboundedSender<Pipe>>,
    /// Paths by destination.
    paths: HashMap<ScionAddr, Vec<TestPath>>,
    /// Offers by source and destination.
    offers: HashMap<(ScionAddr, ScionAddr), watch::Sender<Arc<Vec<TestPath>>>>,
    dials: Vec<(PeerAddr, Fingerprint)>,
    /// The ends of connections that expect data, each with the address of its peer.
    expecting: Arc<Mutex<Vec<PeerAddr>>>,
}

#[derive(Debug, Clone)]
pub struct TestPath {
    info: Arc<hawser_path::Path>,
    shape: Shape,
    state: watch::Sender<State>,
    /// The only host that may use it; every host if `None`.
    from: Option<ScionAddr>,
    /// The reverse path, as the other end sees it.
    back: Option<Fingerprint>,
    neck: Option<Neck>,
    /// Its connections have addresses of plain IP at both ends.
    is_plain_ip: bool,
}

/// A bottleneck that paths share, both directions together.
#[derive(Debug, Clone)]
pub struct Neck {
    rate: u64,
    next: Arc<Mutex<Instant>>,
}

impl Neck {
    /// A bottleneck of `rate` Mbit/s.
    pub fn mbit(rate: f64) -> Self {
        Self {
            rate: (rate * 1e6) as u64,
            next: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// The time at which `bytes` bytes have passed.
    fn pass(&self, bytes: usize) -> Instant {
        let mut next = self.next.lock().unwrap();
        let credit = Instant::now() - Duration::from_millis(20);
        *next = (*next).max(credit) + time_of(bytes, self.rate);
        *next
    }
}

/// Time to send `bytes` at `rate` bit/s.
fn time_of(bytes: usize, rate: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 * 8.0 / rate as f64)
}

impl TestPath {
    pub fn fingerprint(&self) -> Fingerprint {
        self.info.fingerprint()
    }

    /// This way over plain IP.
    pub fn over_plain_ip(&self) -> Self {
        Self {
            is_plain_ip: true,
            ..self.clone()
        }
    }
}

impl AsRef<hawser_path::Path> for TestPath {
    fn as_ref(&self) -> &hawser_path::Path {
        &self.info
    }
}

/// A torrent of these files (path, length, whether it is padding) with wrong piece hashes.
pub fn torrent_of(files: &[(&str, u64, bool)], piece_length: u32) -> Metainfo {
    let total: u64 = files.iter().map(|(_, length, _)| length).sum();
    let files = files.iter().map(|(path, length, padding)| {
        let attr = if *padding { "4:attr1:p" } else { "" };
        format!("d{attr}6:lengthi{length}e4:pathl{}:{path}ee", path.len())
    });
    let pieces = total.div_ceil(piece_length.into()) as usize * 20;
    let text = format!(
        "d4:infod5:filesl{}e4:name3:set12:piece lengthi{piece_length}e6:pieces{pieces}:{}ee",
        files.collect::<String>(),
        "a".repeat(pieces)
    );
    Metainfo::parse(text.as_bytes()).unwrap()
}

/// The address of host `n`.
pub fn scion_addr(n: u16) -> ScionAddr {
    let host = SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 6881));
    ScionAddr::new(format!("1-ff00:0:{n:x}").parse().unwrap(), host)
}

/// The address of host `n`, as a peer.
pub fn addr(n: u16) -> PeerAddr {
    scion_addr(n).into()
}

/// The SCION address of a peer: this network has no other peers.
fn scion(peer: PeerAddr) -> ScionAddr {
    peer.scion().unwrap()
}

impl Net {
    /// A host at `addr(n)`.
    pub fn host(&self, n: u16) -> Host {
        let (sender, incoming) = mpsc::unbounded_channel();
        self.0.lock().unwrap().hosts.insert(scion_addr(n), sender);
        Host {
            net: self.clone(),
            addr: scion_addr(n),
            incoming: Arc::new(tokio::sync::Mutex::new(incoming)),
            dht: Arc::default(),
            exchanges_peers: true,
        }
    }

    /// Host `n` again, as one that dials: its connections go to the first handle.
    pub fn host_handle(&self, n: u16) -> Host {
        Host {
            net: self.clone(),
            addr: scion_addr(n),
            incoming: Arc::new(tokio::sync::Mutex::new(mpsc::unbounded_channel().1)),
            dht: Arc::default(),
            exchanges_peers: true,
        }
    }

    /// Removes host `n`: its address no longer answers.
    pub fn remove_host(&self, n: u16) {
        self.0.lock().unwrap().hosts.remove(&scion_addr(n));
    }

    /// Adds a path to host `n`, which shares no link with other paths.
    pub fn path(&self, n: u16, shape: Shape) -> TestPath {
        self.path_of(n, shape, Metadata::default())
    }

    /// Adds such a path, over which nothing can be sent.
    pub fn narrow_path(&self, n: u16) -> TestPath {
        let metadata = Metadata {
            mtu: NARROW,
            ..Metadata::default()
        };
        self.path_of(n, FAST, metadata)
    }

    /// Adds a path to host `n` that shares only a link in the middle with other such paths. Its
    /// rate is not shared.
    pub fn bridged_path(&self, n: u16, shape: Shape) -> TestPath {
        let middle = [200, 201].map(|as_| Interface {
            isd_as: scion_addr(as_).isd_as,
            id: 1,
        });
        self.path_over(n, shape, Metadata::default(), Some(middle))
    }

    fn path_of(&self, n: u16, shape: Shape, metadata: Metadata) -> TestPath {
        self.path_over(n, shape, metadata, None)
    }

    fn path_over(
        &self,
        n: u16,
        shape: Shape,
        metadata: Metadata,
        middle: Option<[Interface; 2]>,
    ) -> TestPath {
        let mut inner = self.0.lock().unwrap();
        let paths = inner.paths.entry(scion_addr(n)).or_default();
        let id = n * 100 + paths.len() as u16 + 1;
        let (src, dst) = (scion_addr(0).isd_as, scion_addr(n).isd_as);
        let (out, into) = (Interface { isd_as: src, id }, Interface { isd_as: dst, id });
        let interfaces = match middle {
            None => vec![out, into],
            Some([a, b]) => {
                let (a_in, b_out) = (Interface { id, ..a }, Interface { id, ..b });
                vec![out, a_in, a, b, b_out, into]
            }
        };
        let info = hawser_path::Path::new(src, dst, interfaces, metadata).unwrap();
        let path = TestPath {
            info: Arc::new(info),
            shape,
            state: watch::Sender::new(State::Up),
            from: None,
            back: None,
            neck: None,
            is_plain_ip: false,
        };
        paths.push(path.clone());
        inner.publish();
        path
    }

    /// Adds a path between hosts `a` and `b` over AS `via`, known at both; paths with the same neck
    /// share its rate. Interfaces have the number of the AS at the other end, so paths over the
    /// same two neighbours share them. Returns the path as seen from `a`.
    pub fn between(&self, a: u16, via: u16, b: u16, shape: Shape, neck: Option<&Neck>) -> TestPath {
        let interface = |of: u16, id| Interface {
            isd_as: scion_addr(of).isd_as,
            id,
        };
        let there = vec![
            interface(a, via),
            interface(via, a),
            interface(via, b),
            interface(b, via),
        ];
        let back: Vec<Interface> = there.iter().rev().copied().collect();
        let names = [Fingerprint::of(&there), Fingerprint::of(&back)];
        let state = watch::Sender::new(State::Up);
        let path = |from: u16, to: u16, interfaces, back| {
            let (src, dst) = (scion_addr(from).isd_as, scion_addr(to).isd_as);
            let info = hawser_path::Path::new(src, dst, interfaces, Metadata::default());
            TestPath {
                info: Arc::new(info.unwrap()),
                shape,
                state: state.clone(),
                from: Some(scion_addr(from)),
                back: Some(back),
                neck: neck.cloned(),
                is_plain_ip: false,
            }
        };
        let (there, back) = (path(a, b, there, names[1]), path(b, a, back, names[0]));
        let mut inner = self.0.lock().unwrap();
        inner
            .paths
            .entry(scion_addr(b))
            .or_default()
            .push(there.clone());
        inner.paths.entry(scion_addr(a)).or_default().push(back);
        inner.publish();
        there
    }

    /// Sets the state of a path; `Down` also withdraws it, `Up` offers it again.
    pub fn set(&self, path: &TestPath, state: State) {
        assert_ne!(
            path.shape, FAST,
            "nothing stands between the ends of such a path"
        );
        path.state.send_replace(state);
        self.0.lock().unwrap().publish();
    }

    /// The peers from which data is expected, once for each connection.
    pub fn expecting(&self) -> Vec<PeerAddr> {
        self.0.lock().unwrap().expecting.lock().unwrap().clone()
    }

    /// The dials so far, each with its peer and path.
    pub fn dials(&self) -> Vec<(PeerAddr, Fingerprint)> {
        self.0.lock().unwrap().dials.clone()
    }
}

impl Inner {
    fn publish(&mut self) {
        for ((from, to), sender) in &self.offers {
            let paths = self.paths.get(to).into_iter().flatten();
            let up = paths.filter(|path| {
                *path.state.borrow() != State::Down && path.from.is_none_or(|who| who == *from)
            });
            let up: Arc<Vec<TestPath>> = Arc::new(up.cloned().collect());
            let names = |paths: &[TestPath]| {
                let paths = paths.iter().map(TestPath::fingerprint);
                paths.collect::<BTreeSet<_>>()
            };
            sender.send_if_modified(|old| {
                let changed = names(old) != names(&up);
                *old = Arc::clone(&up);
                changed
            });
        }
    }
}

/// A host, and its end of the network.
#[derive(Clone)]
pub struct Host {
    net: Net,
    pub addr: ScionAddr,
    incoming: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Pipe>>>,
    pub dht: Arc<OnceLock<DhtContacts>>,
    /// Whether peers are told of each other.
    pub exchanges_peers: bool,
}

impl Host {
    /// Accepts the next connection.
    pub async fn accept_pipe(&self) -> Option<Pipe> {
        self.incoming.lock().await.recv().await
    }
}

impl Transport for Host {
    type Path = TestPath;

    fn exchanges_peers(&self) -> bool {
        self.exchanges_peers
    }

    fn offers(&self, peer: PeerAddr) -> Offers<TestPath> {
        let peer = scion(peer);
        let mut inner = self.net.0.lock().unwrap();
        let offers = inner
            .offers
            .entry((self.addr, peer))
            .or_insert_with(|| watch::Sender::new(Arc::default()));
        let offers = offers.subscribe();
        inner.publish();
        offers
    }

    async fn lookup(&self, peer: PeerAddr) -> Result<(), String> {
        match self.offers(peer).borrow().is_empty() {
            true => Err(format!("no path to {}", scion(peer).isd_as)),
            false => Ok(()),
        }
    }

    fn fits(&self, _peer: PeerAddr, path: &TestPath) -> Result<(), String> {
        match path.info.metadata.mtu {
            NARROW => Err("the path is too narrow".into()),
            _ => Ok(()),
        }
    }

    async fn dial(&self, peer: PeerAddr, path: TestPath) -> Result<Arc<dyn Connection>, String> {
        let peer = scion(peer);
        self.net
            .0
            .lock()
            .unwrap()
            .dials
            .push((peer.into(), path.fingerprint()));
        let state = *path.state.borrow();
        match state {
            State::Up => {}
            State::Frozen => return pending().await,
            State::Down => return Err("the path is down".into()),
        }
        tokio::time::sleep(path.shape.delay * 2).await;
        let inner = self.net.0.lock().unwrap();
        let (ours, theirs) = link(self.addr, peer, &path, &inner.expecting);
        let listener = inner.hosts.get(&peer).ok_or("nobody there")?;
        listener.send(theirs).map_err(|_| "nobody listens there")?;
        Ok(Arc::new(ours))
    }

    async fn accept(&self) -> Option<Arc<dyn Connection>> {
        Some(Arc::new(self.accept_pipe().await?))
    }

    fn reaches(&self, peer: PeerAddr) -> bool {
        peer.scion().is_some()
    }

    fn local(&self) -> Option<ScionAddr> {
        Some(self.addr)
    }

    fn port(&self, _peer: PeerAddr) -> Option<u16> {
        Some(self.addr.host.port())
    }

    fn dht(&self) -> Option<&DhtContacts> {
        self.dht.get()
    }
}
