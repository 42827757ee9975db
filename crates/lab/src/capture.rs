//! Capturing what crosses a link.

mod pcapng;
mod socket;

use std::io;
use std::time::Duration;

use hawser_topology::{End, IsdAsn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;

pub use self::pcapng::{CaptureInterface, CaptureWriter};
use self::socket::PacketSocket;
use crate::Lab;
use crate::error::LabError;

/// Bytes of a frame that are kept at most: more than the largest super-packet of segmentation
/// offload, and what tcpdump keeps.
pub const SNAP_LENGTH: u32 = 262_144;

/// One frame as it crossed a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When, since the beginning of 1970.
    pub time: Duration,
    /// Whether the interface sent it; else it received it.
    pub outgoing: bool,
    /// Its length in bytes; what is longer than [`SNAP_LENGTH`] is cut off.
    pub length: u32,
    /// The Ethernet frame, without its checksum.
    pub data: &'a [u8],
}

/// A capture at one end of a link, of both directions.
///
/// Frames that the interface sends are seen after the link's limit and delay, those that it
/// receives as they arrive. A super-packet of segmentation offload is one frame.
#[derive(Debug)]
pub struct Capture {
    socket: PacketSocket,
    interface: CaptureInterface,
}

impl Lab {
    /// Begins to capture at an interface. Moves the calling process, which must have one thread
    /// when the lab runs without root (user_namespaces(7)), into the namespace of the AS: it ends
    /// with the lab at the latest.
    ///
    /// # Errors
    /// When there is no such interface, or it cannot be listened at.
    pub fn capture(&self, isd_as: IsdAsn, id: u16) -> Result<Capture, LabError> {
        let state = self.dir.read_state()?;
        let network = self.dir.read_network()?;
        let Some((index, side)) = network.link_at(isd_as, id) else {
            return Err(crate::link::unknown(&network, isd_as, id));
        };
        let device = &state.links[index].end(side).device;
        let link = &network.links[index];
        let name = |end: &End| format!("{}#{}", end.isd_as, end.id);
        let interface = CaptureInterface {
            device: device.clone(),
            near: name(link.end(side)),
            far: name(link.end(side.other())),
        };
        self.enter(isd_as)?;
        let socket = PacketSocket::open(device).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    ": it takes CAP_NET_RAW: run it as root, or in a lab of your own"
                }
                _ => "",
            };
            LabError::Failed(format!("cannot capture at {device}: {error}{hint}"))
        })?;
        Ok(Capture { socket, interface })
    }
}

impl Capture {
    /// What is captured.
    pub fn interface(&self) -> &CaptureInterface {
        &self.interface
    }

    /// The next frame; none when no more waits.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        self.socket.receive()
    }

    /// Waits until a frame waits, or something is to be read of `stop`: false when it is the
    /// latter.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn wait(&self, stop: BorrowedFd<'_>) -> io::Result<bool> {
        let mut fds = [
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN),
        ];
        rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        Ok(fds[0].revents().is_empty())
    }

    /// How many frames the kernel has dropped so far, for want of room.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn dropped(&mut self) -> io::Result<u64> {
        self.socket.dropped()
    }
}
