//! The network namespace with the TUN device and the MPTCP sockets.

use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{io, thread};

use hawser_kernel::interface::is_local;
use hawser_kernel::namespace::{NetNs, enter_net};
use hawser_kernel::netlink::Netlink;
use hawser_kernel::route::Route;
use hawser_mptcp::{Events, PathManager, Settings, SocketOptions};
use hawser_tun::{Queue, Tun};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::error::HolderError;
use crate::address::{Block, SLOTS, Slot};
use crate::protocol::segment::PORT;

/// The name of the device, which no other namespace sees.
const DEVICE: &str = "shim";
/// The device's MTU until a path is known: what a path of a few ASes at 1500 bytes takes.
const INITIAL_MTU: u32 = 1376;
/// Packets that may wait for the carrier, perhaps large ones.
const QUEUE: u32 = 1000;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// Longest wait for the routes of the device's addresses.
const ROUTE_TIMEOUT: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

/// The namespace. Cloning shares it.
#[derive(Clone)]
pub(super) struct Network(Arc<Inner>);

struct Inner {
    own: Block,
    /// The descriptor of the device's queue; carriers get copies.
    queue: OwnedFd,
    index: u32,
    /// To the thread inside the namespace: sockets belong to the namespace in which they are made.
    jobs: mpsc::Sender<Job>,
}

impl Network {
    /// Creates a namespace whose own addresses are `own`.
    pub(super) fn create(own: Block) -> Result<Self, HolderError> {
        let namespace = NetNs::create().map_err(HolderError::Namespace)?;
        // Whoever has a job waits for its result.
        let (jobs, queue): (mpsc::Sender<Job>, mpsc::Receiver<Job>) = mpsc::channel();
        let (sender, result) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("shim-net".into())
            .spawn(move || {
                let entered = enter_net(namespace.as_fd()).map_err(HolderError::Namespace);
                let _ = sender.send(entered.and_then(|()| set_up_device(own)));
                // Ends with the last sender.
                while let Ok(job) = queue.recv() {
                    // A panic was reported; who waits for the job learns that it has ended.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
            })
            .map_err(HolderError::Namespace)?;
        let (queue, index) = result.recv().map_err(|_| ended())??;
        Ok(Self(Arc::new(Inner {
            own,
            queue: queue.into(),
            index,
            jobs,
        })))
    }

    pub(super) fn own(&self) -> Block {
        self.0.own
    }

    /// A copy of the device's queue.
    pub(super) fn queue(&self) -> Result<Queue, HolderError> {
        let copy = self.0.queue.try_clone();
        let copy = copy.map_err(HolderError::system("copy the TUN device's queue"))?;
        Ok(copy.into())
    }

    /// Runs `job` inside the namespace, and waits for its result.
    fn inside<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HolderError> {
        let (sender, result) = mpsc::sync_channel(1);
        let job = Box::new(move || {
            let _ = sender.send(job());
        });
        self.0.jobs.send(job).map_err(|_| ended())?;
        result.recv().map_err(|_| ended())
    }

    /// The path manager of the namespace, and its events.
    pub(super) fn path_manager(&self) -> Result<(PathManager, Events), HolderError> {
        self.inside(|| Ok((PathManager::open()?, Events::subscribe()?)))?
    }

    /// A listener for connections of other holders.
    pub(super) fn listen(&self) -> Result<TcpListener, HolderError> {
        let failed = HolderError::system("listen inside the namespace");
        let address = SocketAddr::from((self.own().address(0), PORT));
        let socket = self.inside(move || hawser_mptcp::listen(address, BACKLOG, &options()))?;
        TcpListener::from_std(socket.map_err(&failed)?.into()).map_err(failed)
    }

    /// A socket that connects from this host's `slot` to the holder at `peer`.
    pub(super) async fn connect(&self, slot: Slot, peer: Ipv6Addr) -> io::Result<OwnedFd> {
        let local = SocketAddr::from((self.own().address(slot), 0));
        let remote = SocketAddr::from((peer, PORT));
        let (sender, result) = oneshot::channel();
        let ended = || io::Error::other("the shim's namespace has ended");
        let job = Box::new(move || {
            // Without Fast Open: Linux 6.18 often delivers nothing after data in an MPTCP SYN.
            let _ = sender.send(hawser_mptcp::connect(local, remote, &options()));
        });
        self.0.jobs.send(job).map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }

    /// Sets the MTU of the device, in bytes.
    pub(super) fn set_mtu(&self, mtu: u32) -> Result<(), HolderError> {
        let index = self.0.index;
        let set =
            self.inside(move || -> io::Result<()> { Ok(Netlink::open()?.set_mtu(index, mtu)?) })?;
        set.map_err(HolderError::system("set the TUN device's MTU"))
    }
}

fn ended() -> HolderError {
    HolderError::Namespace(io::Error::other("its thread has ended"))
}

/// The options of all sockets to other holders.
fn options() -> SocketOptions {
    SocketOptions::default().with_no_delay()
}

/// Makes the TUN device in the calling thread's namespace, with all addresses. Returns its queue
/// and index.
fn set_up_device(own: Block) -> Result<(Queue, u32), HolderError> {
    Settings::default().apply()?;
    let tun = Tun::create(DEVICE, 1)?;
    let index = tun.index;
    let configured = || -> io::Result<()> {
        let mut netlink = Netlink::open()?;
        netlink.set_mtu(index, INITIAL_MTU)?;
        netlink.set_queue_length(index, QUEUE)?;
        // The loopback interface is the first one of every namespace.
        netlink.set_up(1, true)?;
        netlink.set_up(index, true)?;
        for slot in 0..=SLOTS {
            netlink.add_address(index, own.address(slot).into(), 128)?;
        }
        let peers = "fd00::/8".parse().map_err(io::Error::other)?;
        Ok(netlink.add_route(&Route::new(peers, index))?)
    };
    let failed = HolderError::system("set up the TUN device");
    configured().map_err(&failed)?;
    wait_for_address(own.address(SLOTS)).map_err(&failed)?;
    let queue = tun.queues.into_iter().next();
    let queue = queue.ok_or_else(|| failed(io::Error::other("it has no queue")))?;
    Ok((queue, index))
}

/// Waits until packets to `address`, the last one added, are for this host.
pub(super) fn wait_for_address(address: Ipv6Addr) -> io::Result<()> {
    let deadline = Instant::now() + ROUTE_TIMEOUT;
    while !is_local(address)? {
        if Instant::now() > deadline {
            return Err(io::Error::other("its addresses have no routes"));
        }
        thread::yield_now();
    }
    Ok(())
}
