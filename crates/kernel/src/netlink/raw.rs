//! Requests and answers as bytes, for objects that the netlink crates do not support, or of which there
//! are thousands.

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use super::{BATCH, Netlink, NetlinkError};

/// Length in bytes of `struct nlmsghdr` of netlink(7).
const HEADER: usize = 16;
/// The message types of netlink(7) that are not objects.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_DUMP_INTR`: objects changed while they were listed, so that some may be missing.
const INTERRUPTED: u16 = 0x10;
/// How often a list that changes while it is read is read again.
const ATTEMPTS: usize = 10;

/// A request: the type of its message, flags, and what follows the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRequest {
    /// The type (`RTM_` of rtnetlink(7)).
    pub kind: u16,
    /// Flags (`NLM_F_` of netlink(7)) beside those that every request has.
    pub flags: u16,
    /// The message without its header.
    pub payload: Vec<u8>,
}

/// A message of the kernel.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    port: u32,
    payload: &'a [u8],
}

impl Netlink {
    /// Sends requests for changes, which have no answers, with few system calls. The kernel carries them out in order; a refused
    /// one does not stop the others sent in the same call.
    ///
    /// # Errors
    /// The index of the first request that failed, and its error; some changes may have been made.
    pub fn raw_batch(&mut self, requests: &[RawRequest]) -> Result<(), (usize, NetlinkError)> {
        for (batch, requests) in requests.chunks(BATCH).enumerate() {
            let at = |i: usize| batch * BATCH + i;
            let first = self.sequence.wrapping_add(1);
            let mut bytes = Vec::new();
            for (i, request) in requests.iter().enumerate() {
                let last = i + 1 == requests.len();
                let flags = request.flags | if last { NLM_F_ACK } else { 0 };
                self.write(&mut bytes, request.kind, flags, &request.payload);
            }
            let failed = |error| (at(0), NetlinkError::Socket(error));
            self.send(&bytes).map_err(failed)?;
            let mut refused = None;
            let mut complete = false;
            while !complete {
                let datagram = self.receive().map_err(failed)?;
                for message in messages(&datagram) {
                    let message = message.map_err(|error| (at(0), error))?;
                    let i = message.sequence.wrapping_sub(first) as usize;
                    if i >= requests.len() || message.kind != ERROR {
                        continue;
                    }
                    match code(message.payload).map_err(|error| (at(i), error))? {
                        0 => {}
                        code if refused.is_none() => refused = Some((at(i), refusal(code))),
                        _ => {}
                    }
                    complete |= i + 1 == requests.len();
                }
            }
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
        Ok(())
    }

    /// All objects that a query lists, each as its message without the header.
    ///
    /// # Errors
    /// [`NetlinkError`]; also when the objects change each time that they are listed.
    pub fn raw_dump(&mut self, kind: u16, payload: &[u8]) -> Result<Vec<Vec<u8>>, NetlinkError> {
        for _ in 0..ATTEMPTS {
            if let Some(objects) = self.list(kind, payload)? {
                return Ok(objects);
            }
        }
        let error = "the objects change while they are listed";
        Err(NetlinkError::Invalid(error.to_owned()))
    }

    /// The objects of one list; `None` if they changed meanwhile.
    fn list(&mut self, kind: u16, payload: &[u8]) -> Result<Option<Vec<Vec<u8>>>, NetlinkError> {
        let mut bytes = Vec::new();
        self.write(&mut bytes, kind, NLM_F_DUMP, payload);
        self.send(&bytes).map_err(NetlinkError::Socket)?;
        let mut objects = Vec::new();
        let mut whole = true;
        loop {
            let datagram = self.receive().map_err(NetlinkError::Socket)?;
            for message in messages(&datagram) {
                let message = message?;
                if message.sequence != self.sequence {
                    continue;
                }
                whole &= message.flags & INTERRUPTED == 0;
                match message.kind {
                    ERROR | DONE => {
                        return match code(message.payload)? {
                            0 => Ok(whole.then_some(objects)),
                            code => Err(refusal(code)),
                        };
                    }
                    _ => objects.push(message.payload.to_vec()),
                }
            }
        }
    }

    /// Appends a request.
    fn write(&mut self, bytes: &mut Vec<u8>, kind: u16, flags: u16, payload: &[u8]) {
        self.sequence = self.sequence.wrapping_add(1);
        let length = (HEADER + payload.len()) as u32;
        bytes.extend(length.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((flags | NLM_F_REQUEST).to_ne_bytes());
        bytes.extend(self.sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(payload);
        // Messages begin at multiples of four bytes.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }

    /// The port under which the kernel knows this socket: it is in the notifications of its changes.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn port(&self) -> io::Result<u32> {
        let address = rustix::net::getsockname(&self.socket)?;
        Ok(SocketAddrNetlink::try_from(address)?.pid())
    }
}

/// A socket on which the kernel reports changes in the network namespace in which it was opened.
#[derive(Debug)]
pub struct Notifications(rustix::fd::OwnedFd);

impl Notifications {
    /// Subscribes to groups: a bit for each, as `RTMGRP_` of rtnetlink(7).
    ///
    /// # Errors
    /// [`NetlinkError::Socket`].
    pub fn subscribe(groups: u32) -> Result<Self, NetlinkError> {
        let failed = |error: rustix::io::Errno| NetlinkError::Socket(error.into());
        let (kind, flags) = (
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        );
        let socket = socket_with(AddressFamily::NETLINK, kind, flags, None).map_err(failed)?;
        bind(&socket, &SocketAddrNetlink::new(0, groups)).map_err(failed)?;
        Ok(Self(socket))
    }

    /// Reads what has been reported, and returns whether any of it was caused by others than the socket
    /// with the port `own`. Reports that did not fit into the socket's buffer count as caused by others.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn others_than(&self, own: u32) -> io::Result<bool> {
        let mut others = false;
        let mut buffer = vec![0; 64 << 10];
        loop {
            match recv(&self.0, &mut buffer[..], RecvFlags::empty()) {
                Ok((_, length)) => {
                    let mut all = messages(&buffer[..length]);
                    others |= all.any(|one| one.is_ok_and(|one| one.port != own));
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(others),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::NOBUFS) => others = true,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl std::os::fd::AsFd for Notifications {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The messages of a datagram.
fn messages(bytes: &[u8]) -> impl Iterator<Item = Result<Message<'_>, NetlinkError>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message = first(rest);
        rest = match &message {
            Some(message) => rest
                .get((HEADER + message.payload.len()).next_multiple_of(4)..)
                .unwrap_or_default(),
            None => &[],
        };
        let cut = || NetlinkError::Invalid("a message is cut short".to_owned());
        Some(message.ok_or_else(cut))
    })
}

/// The first message.
fn first(bytes: &[u8]) -> Option<Message<'_>> {
    let long = |at: usize| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(word))
    };
    let short = |at: usize| {
        let word = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(u16::from_ne_bytes(word))
    };
    Some(Message {
        kind: short(4)?,
        flags: short(6)?,
        sequence: long(8)?,
        port: long(12)?,
        payload: bytes.get(HEADER..long(0)? as usize)?,
    })
}

/// The error code of a confirmation, or of the end of a list.
fn code(payload: &[u8]) -> Result<i32, NetlinkError> {
    let code = payload.first_chunk().copied().map(i32::from_ne_bytes);
    code.ok_or_else(|| NetlinkError::Invalid("an answer without its code".to_owned()))
}

fn refusal(code: i32) -> NetlinkError {
    NetlinkError::Refused(io::Error::from_raw_os_error(code.saturating_abs()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::namespace::{NetNs, is_privileged};

    /// Message types of rtnetlink(7).
    const GET_LINK: u16 = 18;
    const SET_LINK: u16 = 19;
    const NEW_QDISC: u16 = 36;
    const DEL_QDISC: u16 = 37;
    const RTMGRP_TC: u32 = 8;

    /// `struct ifinfomsg` of rtnetlink(7).
    fn link(index: i32, flags: u32) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.extend(index.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes
    }

    #[test]
    fn all_interfaces_are_listed() {
        let found = Netlink::open()
            .unwrap()
            .raw_dump(GET_LINK, &link(0, 0))
            .unwrap();
        let indices = found.iter().map(|one| one[4..8].try_into().unwrap());
        assert!(indices.map(i32::from_ne_bytes).any(|index| index == 1));
    }

    fn in_a_namespace(body: impl FnOnce(&mut Netlink) + Send) {
        if !is_privileged() {
            eprintln!("skipped: needs root");
            return;
        }
        let namespace = NetNs::create().unwrap();
        namespace
            .run(|| body(&mut Netlink::open().unwrap()))
            .unwrap();
    }

    #[test]
    fn the_first_refused_request_is_named() {
        in_a_namespace(|netlink| {
            let request = |index| RawRequest {
                kind: SET_LINK,
                flags: 0,
                payload: link(index, 1),
            };
            netlink.raw_batch(&[request(1), request(1)]).unwrap();
            let mut requests = vec![request(1); 300];
            for at in [200, 250] {
                requests[at] = request(i32::MAX);
            }
            let (at, error) = netlink.raw_batch(&requests).unwrap_err();
            assert_eq!((at, error.refusal()), (200, Some(libc::ENODEV)));
            // The next requests are not affected.
            netlink.raw_batch(&[request(1)]).unwrap();
        });
    }

    #[test]
    fn changes_of_others_are_told_from_own() {
        in_a_namespace(|netlink| {
            let own = netlink.port().unwrap();
            let reports = Notifications::subscribe(RTMGRP_TC).unwrap();
            assert!(!reports.others_than(own).unwrap());
            // A queueing discipline of the loopback device.
            let mut payload = vec![0; 4];
            for word in [1, 0x10000, u32::MAX, 0] {
                payload.extend(u32::to_ne_bytes(word));
            }
            payload.extend(10_u16.to_ne_bytes());
            payload.extend(1_u16.to_ne_bytes());
            payload.extend(b"pfifo\0\0\0");
            let set = |kind| RawRequest {
                kind,
                flags: libc::NLM_F_CREATE as u16,
                payload: payload.clone(),
            };
            netlink.raw_batch(&[set(NEW_QDISC)]).unwrap();
            assert!(!reports.others_than(own).unwrap());
            let mut other = Netlink::open().unwrap();
            other.raw_batch(&[set(DEL_QDISC)]).unwrap();
            assert!(reports.others_than(own).unwrap());
            assert!(!reports.others_than(own).unwrap());
        });
    }

    proptest! {
        #[test]
        fn reading_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            for message in messages(&bytes).flatten() {
                let _ = code(message.payload);
            }
        }
    }
}
