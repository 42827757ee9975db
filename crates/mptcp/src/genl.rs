//! Generic netlink: the requests, answers and multicast messages of one family of the kernel.
//!
//! Sources: Linux documentation, userspace-api/netlink/intro; `linux/genetlink.h`.

use std::io;

use hawser_kernel::socket;
use netlink_packet_core::{
    DecodeError, NLM_F_ACK, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NlaBuffer,
    NlasIterator,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
};

// `linux/netlink.h`, which libc has in part.
const NETLINK_ADD_MEMBERSHIP: i32 = 1;
const NETLINK_CAP_ACK: i32 = 10;
const NETLINK_EXT_ACK: i32 = 11;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLMSGERR_ATTR_OFFS: u16 = 2;
const NLA_F_NESTED: u16 = 0x8000;
/// The length of a netlink header.
const HEADER: usize = 16;
/// The length of a netlink header and a generic netlink header: attributes begin here.
pub(crate) const ATTRIBUTES: usize = HEADER + 4;

/// The family of families (`GENL_ID_CTRL`), and what of it is used.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GROUPS: u16 = 7;
const GROUP_NAME: u16 = 1;
const GROUP_ID: u16 = 2;

/// Why a request was not carried out.
#[derive(Debug)]
pub(crate) enum Error {
    /// The socket failed.
    Socket(io::Error),
    /// The kernel refused the request.
    Refused(Refusal),
    /// The message is not as the documentation says.
    Invalid(String),
}

/// What the kernel says about a refused request.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// errno(3).
    pub(crate) errno: i32,
    /// Its explanation, if there is one.
    pub(crate) message: Option<String>,
    /// The attribute that it does not accept, counted in bytes from the start of the request.
    pub(crate) offset: Option<u32>,
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// Attributes in their binary form.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    /// Appends an attribute. `value` is shorter than 64 KiB.
    pub(crate) fn push(&mut self, kind: u16, value: &[u8]) {
        let length = 4 + value.len();
        self.0.extend((length as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        // Attributes begin at multiples of four bytes.
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// The bytes of all attributes.
    #[cfg(test)]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Appends an attribute that contains attributes.
    pub(crate) fn push_nested(&mut self, kind: u16, inner: &Self) {
        self.push(kind | NLA_F_NESTED, &inner.0);
    }
}

/// The attributes in `bytes`, by kind.
pub(crate) fn attributes(
    bytes: &[u8],
) -> impl Iterator<Item = Result<(u16, &[u8]), Error>> + use<'_> {
    NlasIterator::new(bytes).map(|attribute| {
        let attribute: NlaBuffer<&[u8]> = attribute?;
        let value = 4..usize::from(attribute.length());
        let kind = attribute.kind();
        let value = attribute.into_inner().get(value);
        let value = value.ok_or_else(|| Error::Invalid("an attribute is cut off".to_owned()))?;
        Ok((kind, value))
    })
}

/// The value of an attribute of fixed size.
pub(crate) fn value<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Error> {
    let invalid = |_| Error::Invalid(format!("{} bytes instead of {N}", bytes.len()));
    bytes.try_into().map_err(invalid)
}

/// A message of the family.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) command: u8,
    pub(crate) attributes: Vec<u8>,
}

/// A socket for one family, to the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Genl {
    socket: OwnedFd,
    family: u16,
    groups: Vec<(String, u32)>,
    /// Sequence number of the last request, which its answers repeat.
    sequence: u32,
}

impl Genl {
    /// Opens a socket and looks up the family; [`Error::Refused`] with `ENOENT` if the kernel does
    /// not have it.
    pub(crate) fn open(family: &str) -> Result<Self, Error> {
        let failed = |error: Errno| Error::Socket(error.into());
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let socket =
            socket_with(AddressFamily::NETLINK, kind, flags, Some(GENERIC)).map_err(failed)?;
        // Port 0 is the kernel. A connected socket receives no messages from other processes.
        connect(&socket, &SocketAddrNetlink::new(0, 0)).map_err(failed)?;
        for option in [NETLINK_CAP_ACK, NETLINK_EXT_ACK] {
            socket::set_option(&socket, libc::SOL_NETLINK, option, 1).map_err(Error::Socket)?;
        }
        let mut genl = Self {
            socket,
            family: CONTROL,
            groups: Vec::new(),
            sequence: 0,
        };
        let mut name = Attributes::default();
        name.push(FAMILY_NAME, &[family.as_bytes(), &[0]].concat());
        let answers = genl.request(GET_FAMILY, &name)?;
        let [answer] = &answers[..] else {
            let count = answers.len();
            return Err(Error::Invalid(format!("{count} families named {family}")));
        };
        (genl.family, genl.groups) = parse_family(&answer.attributes)?;
        Ok(genl)
    }

    /// Receives the multicast messages of a group from now on.
    pub(crate) fn join(&self, group: &str) -> Result<(), Error> {
        let found = self.groups.iter().find(|(name, _)| name == group);
        let invalid = || Error::Invalid(format!("the family has no group {group}"));
        let (_, id) = found.ok_or_else(invalid)?;
        let option = NETLINK_ADD_MEMBERSHIP;
        socket::set_option(&self.socket, libc::SOL_NETLINK, option, *id as i32)
            .map_err(Error::Socket)
    }

    /// Sends a request, waits until the kernel has carried it out, and returns the answers.
    pub(crate) fn request(
        &mut self,
        command: u8,
        attributes: &Attributes,
    ) -> Result<Vec<Message>, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = (ATTRIBUTES + attributes.0.len()) as u32;
        let flags = NLM_F_REQUEST | NLM_F_ACK;
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(self.family.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(self.sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        // Version 1, which both families that are used here have accepted from the start.
        bytes.extend([command, 1, 0, 0]);
        bytes.extend(&attributes.0);
        let failed = |error: Errno| Error::Socket(error.into());
        rustix::io::retry_on_intr(|| send(&self.socket, &bytes, SendFlags::empty()))
            .map_err(failed)?;

        let mut answers = Vec::new();
        loop {
            let bytes = receive(self.socket.as_fd(), RecvFlags::empty()).map_err(Error::Socket)?;
            for (sequence, answer) in split(&bytes)? {
                // An answer to an earlier request that ended with an error.
                if sequence != self.sequence {
                    continue;
                }
                match answer {
                    Answer::Message(message) => answers.push(message),
                    Answer::End(None) => return Ok(answers),
                    Answer::End(Some(refusal)) => return Err(Error::Refused(refusal)),
                }
            }
        }
    }

    /// The multicast messages of one datagram; `None` if there is none now. `ENOBUFS` in
    /// [`Error::Socket`] means that the kernel has dropped some.
    pub(crate) fn try_receive(&self) -> Result<Option<Vec<Message>>, Error> {
        let bytes = match receive(self.socket.as_fd(), RecvFlags::DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            received => received.map_err(Error::Socket)?,
        };
        let messages = split(&bytes)?.into_iter();
        let messages = messages.filter_map(|(_, answer)| match answer {
            Answer::Message(message) => Some(message),
            Answer::End(_) => None,
        });
        Ok(Some(messages.collect()))
    }
}

impl AsFd for Genl {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Receives one complete datagram from the kernel.
fn receive(socket: BorrowedFd<'_>, flags: RecvFlags) -> io::Result<Vec<u8>> {
    // With TRUNC the kernel returns the length of the datagram even if the buffer is too small.
    let peek = flags | RecvFlags::PEEK | RecvFlags::TRUNC;
    let (_, length) = rustix::io::retry_on_intr(|| recv(socket, &mut [0; 0], peek))?;
    let mut bytes = vec![0; length];
    rustix::io::retry_on_intr(|| recv(socket, &mut bytes[..], flags))?;
    Ok(bytes)
}

/// One message to this process.
#[derive(Debug)]
enum Answer {
    Message(Message),
    /// The request has been carried out, or was refused.
    End(Option<Refusal>),
}

/// The messages of a datagram, each with its sequence number.
fn split(mut bytes: &[u8]) -> Result<Vec<(u32, Answer)>, Error> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let message = NetlinkBuffer::new_checked(bytes)?;
        let length = message.length() as usize;
        let payload = message.payload();
        let answer = match message.message_type() {
            NLMSG_ERROR => Some(parse_end(message.flags(), payload)?),
            NLMSG_DONE => Some(Answer::End(None)),
            // Other control messages: nothing to do (netlink(7)).
            0..CONTROL => None,
            _ => {
                let [command, _version, _, _, attributes @ ..] = payload else {
                    return Err(Error::Invalid("a message is cut off".to_owned()));
                };
                Some(Answer::Message(Message {
                    command: *command,
                    attributes: attributes.to_vec(),
                }))
            }
        };
        messages.extend(answer.map(|answer| (message.sequence_number(), answer)));
        // Messages begin at multiples of four bytes.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(messages)
}

/// The end of a request: an error number, the header of the request, attributes (extended
/// acknowledgement).
fn parse_end(flags: u16, payload: &[u8]) -> Result<Answer, Error> {
    let cut_off = || Error::Invalid("an acknowledgement is cut off".to_owned());
    let (code, rest) = payload.split_first_chunk().ok_or_else(cut_off)?;
    let errno = i32::from_ne_bytes(*code).saturating_abs();
    if errno == 0 {
        return Ok(Answer::End(None));
    }
    let mut refusal = Refusal {
        errno,
        message: None,
        offset: None,
    };
    if flags & NLM_F_ACK_TLVS != 0 {
        for attribute in attributes(rest.get(HEADER..).ok_or_else(cut_off)?) {
            match attribute? {
                (NLMSGERR_ATTR_MSG, text) => {
                    let text = String::from_utf8_lossy(text);
                    refusal.message = Some(text.trim_end_matches('\0').to_owned());
                }
                (NLMSGERR_ATTR_OFFS, offset) => {
                    refusal.offset = Some(u32::from_ne_bytes(value(offset)?));
                }
                _ => {}
            }
        }
    }
    Ok(Answer::End(Some(refusal)))
}

/// The number of a family, and its multicast groups.
fn parse_family(bytes: &[u8]) -> Result<(u16, Vec<(String, u32)>), Error> {
    let (mut id, mut groups) = (None, Vec::new());
    for attribute in attributes(bytes) {
        match attribute? {
            (FAMILY_ID, bytes) => id = Some(u16::from_ne_bytes(value(bytes)?)),
            (GROUPS, list) => {
                for group in attributes(list) {
                    let (mut name, mut number) = (None, None);
                    for attribute in attributes(group?.1) {
                        match attribute? {
                            (GROUP_NAME, text) => {
                                let text = String::from_utf8_lossy(text);
                                name = Some(text.trim_end_matches('\0').to_owned());
                            }
                            (GROUP_ID, bytes) => number = Some(u32::from_ne_bytes(value(bytes)?)),
                            _ => {}
                        }
                    }
                    groups.extend(name.zip(number));
                }
            }
            _ => {}
        }
    }
    let id = id.ok_or_else(|| Error::Invalid("a family without number".to_owned()))?;
    Ok((id, groups))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_family_that_does_not_exist_is_refused() {
        let Err(Error::Refused(refusal)) = Genl::open("hawser-none") else {
            panic!("there is such a family");
        };
        assert_eq!(refusal.errno, libc::ENOENT);
    }

    #[test]
    fn the_control_family_finds_itself() {
        let genl = Genl::open("nlctrl").unwrap();
        assert_eq!(genl.family, CONTROL);
        assert!(genl.groups.iter().any(|(name, _)| name == "notify"));
    }

    #[test]
    fn attributes_are_read_back() {
        let (mut inner, mut outer) = (Attributes::default(), Attributes::default());
        inner.push(3, b"abcde");
        inner.push(4, &[]);
        outer.push_nested(7, &inner);
        let read: Vec<_> = attributes(&outer.0).map(Result::unwrap).collect();
        let [(7, nested)] = read[..] else {
            panic!("{read:?}");
        };
        let read: Vec<_> = attributes(nested).map(Result::unwrap).collect();
        assert_eq!(read, [(3, &b"abcde"[..]), (4, &[])]);
    }

    #[test]
    fn an_acknowledgement_explains_the_refusal() {
        let mut extended = Attributes::default();
        extended.push(NLMSGERR_ATTR_MSG, b"invalid token\0");
        extended.push(NLMSGERR_ATTR_OFFS, &20u32.to_ne_bytes());
        let mut payload = (-libc::EINVAL).to_ne_bytes().to_vec();
        payload.extend([0; HEADER]);
        payload.extend(&extended.0);
        let Ok(Answer::End(Some(refusal))) = parse_end(NLM_F_ACK_TLVS, &payload) else {
            panic!("not a refusal");
        };
        assert_eq!(refusal.errno, libc::EINVAL);
        assert_eq!(refusal.message.as_deref(), Some("invalid token"));
        assert_eq!(refusal.offset, Some(20));
    }

    proptest! {
        #[test]
        fn parsing_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = split(&bytes);
            let _ = parse_family(&bytes);
            let _ = parse_end(NLM_F_ACK_TLVS, &bytes);
        }

        #[test]
        fn parsing_any_payload_never_panics(
            kind in 0..40u16,
            flags: u16,
            payload in prop::collection::vec(any::<u8>(), 0..128),
        ) {
            let mut bytes = (16 + payload.len() as u32).to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(flags.to_ne_bytes());
            bytes.extend([0; 8]);
            bytes.extend(payload);
            let _ = split(&bytes);
        }
    }
}
