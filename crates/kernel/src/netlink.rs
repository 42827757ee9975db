//! Round trips over rtnetlink(7): requests to the kernel, and its answers.

mod raw;

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkBuffer, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

pub use self::raw::{Notifications, RawRequest};

/// Maximum number of requests sent at once: if all fail, the answers still fit into a socket's
/// buffer.
const BATCH: usize = 128;

/// The room that is offered for a datagram, in bytes: the kernel fills as much of it with a list as it
/// has seen offered before, up to this. For each further datagram it walks again over what it has
/// listed, so with small ones long lists take quadratic time.
const LIST: usize = 32 << 10;

/// A socket to the network namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    /// Sequence number of the last request, which its answers repeat.
    sequence: u32,
}

/// The reason why a request was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetlinkError {
    /// The socket failed.
    #[error("cannot talk to the kernel over netlink: {0}")]
    Socket(#[source] io::Error),
    /// The kernel refused the request.
    #[error("{0}")]
    Refused(#[source] io::Error),
    /// The kernel's answer is not as netlink(7) documents it.
    #[error("cannot read the kernel's answer: {0}")]
    Invalid(String),
}

impl NetlinkError {
    /// The error number (errno(3)) with which the kernel refused the request; `None` for other
    /// errors.
    pub fn refusal(&self) -> Option<i32> {
        match self {
            Self::Refused(error) => error.raw_os_error(),
            _ => None,
        }
    }
}

impl From<NetlinkError> for io::Error {
    fn from(error: NetlinkError) -> Self {
        match error {
            NetlinkError::Socket(error) | NetlinkError::Refused(error) => error,
            NetlinkError::Invalid(_) => Self::other(error),
        }
    }
}

type Message = NetlinkMessage<RouteNetlinkMessage>;

impl Netlink {
    /// Opens a socket to the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn open() -> Result<Self, NetlinkError> {
        let failed = |error: Errno| NetlinkError::Socket(error.into());
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, None).map_err(failed)?;
        // Port 0 is the kernel. A connected socket receives no messages from other processes.
        connect(&socket, &SocketAddrNetlink::new(0, 0)).map_err(failed)?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Sends a request, waits until the kernel has carried it out, and returns the answers: no
    /// objects for a change, one object for a query, or with `NLM_F_DUMP` all objects of a kind.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn request(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        self.exchange(vec![request], flags)
    }

    /// Sends many requests for changes with few system calls. The kernel carries them out in order;
    /// a refused one does not stop the others sent in the same call.
    ///
    /// # Errors
    /// The first [`NetlinkError`]; some changes may have been made.
    pub fn batch(
        &mut self,
        requests: impl IntoIterator<Item = RouteNetlinkMessage>,
        flags: u16,
    ) -> Result<(), NetlinkError> {
        let mut requests = requests.into_iter();
        loop {
            let batch: Vec<_> = requests.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return Ok(());
            }
            self.exchange(batch, flags)?;
        }
    }

    /// Sends requests at once, and collects the answers. By netlink(7) the kernel processes the
    /// requests in order, answers those that fail, and confirms the last one.
    fn exchange(
        &mut self,
        requests: Vec<RouteNetlinkMessage>,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        let first = self.sequence.wrapping_add(1);
        let count = requests.len();
        let mut bytes = Vec::new();
        for (i, request) in requests.into_iter().enumerate() {
            self.sequence = self.sequence.wrapping_add(1);
            let mut request = NetlinkMessage::from(request);
            request.header.flags = NLM_F_REQUEST | flags;
            if i + 1 == count {
                request.header.flags |= NLM_F_ACK;
            }
            request.header.sequence_number = self.sequence;
            request.finalize();
            let start = bytes.len();
            // Messages begin at multiples of four bytes.
            bytes.resize(start + request.buffer_len().next_multiple_of(4), 0);
            request.serialize(&mut bytes[start..]);
        }
        self.send(&bytes).map_err(NetlinkError::Socket)?;

        let mut answers = Vec::new();
        let mut refused = None;
        loop {
            for message in split(&self.receive().map_err(NetlinkError::Socket)?)? {
                let sequence = message.header.sequence_number;
                // An answer to an earlier exchange that ended with an error.
                if sequence.wrapping_sub(first) >= count as u32 {
                    continue;
                }
                let code = match message.payload {
                    NetlinkPayload::InnerMessage(answer) => {
                        answers.push(answer);
                        continue;
                    }
                    NetlinkPayload::Error(error) => error.code.map_or(0, |code| code.get()),
                    NetlinkPayload::Done(done) => done.code,
                    other => return Err(NetlinkError::Invalid(format!("unexpected {other:?}"))),
                };
                if code != 0 && refused.is_none() {
                    let error = io::Error::from_raw_os_error(code.saturating_abs());
                    refused = Some(NetlinkError::Refused(error));
                }
                if sequence == self.sequence {
                    return refused.map_or(Ok(answers), Err);
                }
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::io::retry_on_intr(|| send(&self.socket, bytes, SendFlags::empty()))?;
        Ok(())
    }

    /// Receives one complete datagram from the kernel.
    fn receive(&self) -> io::Result<Vec<u8>> {
        // With TRUNC the kernel returns the length of the datagram even if the buffer is too small.
        let flags = RecvFlags::PEEK | RecvFlags::TRUNC;
        let (_, length) = rustix::io::retry_on_intr(|| recv(&self.socket, &mut [0; 0], flags))?;
        let mut bytes = vec![0; length.max(LIST)];
        let none = RecvFlags::empty();
        rustix::io::retry_on_intr(|| recv(&self.socket, &mut bytes[..], none))?;
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// The messages of a datagram.
fn split(mut bytes: &[u8]) -> Result<Vec<Message>, NetlinkError> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let invalid =
            |error: netlink_packet_core::DecodeError| NetlinkError::Invalid(error.to_string());
        let buffer = NetlinkBuffer::new_checked(bytes).map_err(invalid)?;
        let length = buffer.length() as usize;
        messages.push(Message::deserialize(&bytes[..length]).map_err(invalid)?);
        // Messages begin at multiples of four bytes.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
    use netlink_packet_route::AddressFamily;
    use netlink_packet_route::address::{AddressAttribute, AddressMessage};
    use netlink_packet_route::link::{LinkAttribute, LinkMessage};
    use proptest::prelude::*;

    use super::*;
    use crate::namespace::{NetNs, is_privileged};

    fn link(name: &str) -> RouteNetlinkMessage {
        let mut message = LinkMessage::default();
        message
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        RouteNetlinkMessage::GetLink(message)
    }

    #[test]
    fn one_interface_is_found_by_name_and_all_by_a_dump() {
        let mut netlink = Netlink::open().unwrap();
        let found = netlink.request(link("lo"), 0).unwrap();
        let [RouteNetlinkMessage::NewLink(lo)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(lo.header.index, 1);
        let all = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let all = netlink.request(all, NLM_F_DUMP).unwrap();
        let is_lo = |message: &RouteNetlinkMessage| match message {
            RouteNetlinkMessage::NewLink(link) => link.header.index == 1,
            _ => false,
        };
        assert_eq!(all.iter().filter(|message| is_lo(message)).count(), 1);
    }

    #[test]
    fn long_lists_come_in_large_pieces() {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        const COUNT: usize = 2000;
        let listed = NetNs::create().unwrap().run(|| {
            let mut netlink = Netlink::open().unwrap();
            let address = |i: usize| {
                let mut message = AddressMessage::default();
                (message.header.family, message.header.prefix_len) = (AddressFamily::Inet, 32);
                message.header.index = 1;
                let ip = Ipv4Addr::from_bits(0x0a00_0000 + i as u32);
                message.attributes.push(AddressAttribute::Local(ip.into()));
                RouteNetlinkMessage::NewAddress(message)
            };
            let create = NLM_F_CREATE | NLM_F_EXCL;
            netlink.batch((0..COUNT).map(address), create).unwrap();
            // RTM_GETADDR of rtnetlink(7), for IPv4.
            let request = [24, 0, 22, NLM_F_REQUEST | NLM_F_DUMP, 77, 0, 0, 0];
            let request = request.map(u16::to_ne_bytes).concat();
            netlink
                .send(&[&request[..], &[2, 0, 0, 0, 0, 0, 0, 0]].concat())
                .unwrap();
            let mut lengths = Vec::new();
            let mut count = 0;
            loop {
                let datagram = netlink.receive().unwrap();
                lengths.push(datagram.len());
                for message in split(&datagram).unwrap() {
                    match message.payload {
                        NetlinkPayload::Done(_) => return (count, lengths),
                        _ => count += 1,
                    }
                }
            }
        });
        let (count, lengths) = listed.unwrap();
        assert_eq!(count, COUNT);
        let bytes: usize = lengths.iter().sum();
        // The first ones are made before any room was offered.
        assert!(lengths.len() <= 12 + bytes / (LIST / 2), "{lengths:?}");
    }

    #[test]
    fn a_refusal_is_returned_and_does_not_affect_the_next_request() {
        let mut netlink = Netlink::open().unwrap();
        let error = netlink.request(link("hawser-no-such"), 0).unwrap_err();
        assert_eq!(error.refusal(), Some(libc::ENODEV));
        assert_eq!(netlink.request(link("lo"), 0).unwrap().len(), 1);
        let refused = ["hawser-no-such", "hawser-none"].map(link);
        let error = netlink.batch(refused, 0).unwrap_err();
        assert_eq!(error.refusal(), Some(libc::ENODEV));
        assert_eq!(netlink.request(link("lo"), 0).unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn parsing_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = split(&bytes);
        }

        #[test]
        fn parsing_any_payload_never_panics(
            kind in 0..120u16,
            payload in prop::collection::vec(any::<u8>(), 0..128),
        ) {
            let mut bytes = (16 + payload.len() as u32).to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(payload);
            let _ = split(&bytes);
        }
    }
}
