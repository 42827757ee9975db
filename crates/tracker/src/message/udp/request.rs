//! What clients send.

use thiserror::Error;

use super::form::action;
use crate::message::announce::{AnnounceRequest, Event};
use crate::message::http::{MAX_SCRAPE, find_scion, push};

/// The number that begins a connect request.
const PROTOCOL: u64 = 0x0417_2710_1980;
/// Length of a request's head: connection id, action, transaction id.
const HEAD: usize = 16;
/// Length of an announce without options.
const ANNOUNCE: usize = 98;
/// Longest URL data sent and read, in bytes.
const MAX_URL_DATA: usize = 1024;

/// Types of options (BEP 41).
mod option {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const URL_DATA: u8 = 2;
}

/// A packet of a client. The transaction id comes back in the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UdpRequest {
    /// Asks for a connection id.
    Connect {
        /// Names the request.
        transaction: u32,
    },
    /// An announce.
    Announce {
        /// From the answer to a connect request.
        connection: u64,
        /// Names the request.
        transaction: u32,
        /// The announce.
        announce: UdpAnnounce,
    },
    /// A scrape.
    Scrape {
        /// From the answer to a connect request.
        connection: u64,
        /// Names the request.
        transaction: u32,
        /// Of these swarms, at most [`MAX_SCRAPE`].
        info_hashes: Vec<[u8; 20]>,
    },
}

/// An announce and what a packet has beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpAnnounce {
    /// The announce; it has no tracker id.
    pub request: AnnounceRequest,
    /// Whether the client gives an IPv4 address, which nothing proves; so a client over SCION says that
    /// it reaches IP peers, too.
    pub gives_ip: bool,
    /// Path and query of the tracker's URL (BEP 41); the client's SCION address is added when it is
    /// written.
    pub url_data: String,
}

/// Why a packet is not a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UdpRequestError {
    /// It is shorter than its action needs.
    #[error("the packet is cut short")]
    Short,
    /// It begins like a connect request, but has another protocol number.
    #[error("the packet is not one of a tracker's client")]
    Protocol,
    /// It has an unknown action.
    #[error("the action {0} is unknown")]
    Action(u32),
}

impl UdpRequest {
    /// The packet.
    pub fn write(&self) -> Vec<u8> {
        let head = |connection: u64, action: u32, transaction: u32| {
            let mut out = connection.to_be_bytes().to_vec();
            out.extend(action.to_be_bytes());
            out.extend(transaction.to_be_bytes());
            out
        };
        match self {
            Self::Connect { transaction } => head(PROTOCOL, action::CONNECT, *transaction),
            Self::Announce {
                connection,
                transaction,
                announce,
            } => {
                let mut out = head(*connection, action::ANNOUNCE, *transaction);
                write_announce(announce, &mut out);
                out
            }
            Self::Scrape {
                connection,
                transaction,
                info_hashes,
            } => {
                let mut out = head(*connection, action::SCRAPE, *transaction);
                out.extend(info_hashes.iter().take(MAX_SCRAPE).flatten());
                out
            }
        }
    }

    /// Reads a packet. Of the URL data only the client's SCION address is used.
    ///
    /// # Errors
    /// [`UdpRequestError`] if it is not a request.
    pub fn read(packet: &[u8]) -> Result<Self, UdpRequestError> {
        let short = UdpRequestError::Short;
        let mut reader = Reader(packet);
        let connection = u64::from_be_bytes(reader.take().ok_or(short)?);
        let action = u32::from_be_bytes(reader.take().ok_or(short)?);
        let transaction = u32::from_be_bytes(reader.take().ok_or(short)?);
        match action {
            action::CONNECT if connection == PROTOCOL => Ok(Self::Connect { transaction }),
            action::CONNECT => Err(UdpRequestError::Protocol),
            action::ANNOUNCE => Ok(Self::Announce {
                connection,
                transaction,
                announce: read_announce(&mut reader).ok_or(short)?,
            }),
            action::SCRAPE => {
                let (hashes, _) = packet[HEAD..].as_chunks::<20>();
                let info_hashes: Vec<_> = hashes.iter().take(MAX_SCRAPE).copied().collect();
                match info_hashes.is_empty() {
                    true => Err(short),
                    false => Ok(Self::Scrape {
                        connection,
                        transaction,
                        info_hashes,
                    }),
                }
            }
            action => Err(UdpRequestError::Action(action)),
        }
    }

    /// The transaction id of a packet whose head is whole, for a refusal.
    pub fn transaction(packet: &[u8]) -> Option<u32> {
        let bytes = packet.get(12..HEAD)?;
        bytes.try_into().map(u32::from_be_bytes).ok()
    }
}

fn write_announce(announce: &UdpAnnounce, out: &mut Vec<u8>) {
    let request = &announce.request;
    out.extend(request.info_hash);
    out.extend(request.peer_id);
    out.extend(request.downloaded.to_be_bytes());
    out.extend(request.left.to_be_bytes());
    out.extend(request.uploaded.to_be_bytes());
    let event: u32 = match request.event {
        Event::None => 0,
        Event::Completed => 1,
        Event::Started => 2,
        Event::Stopped => 3,
    };
    out.extend(event.to_be_bytes());
    // An address of documentation (RFC 5737): what counts is that there is one.
    out.extend(match announce.gives_ip {
        true => [192, 0, 2, 1],
        false => [0; 4],
    });
    out.extend(request.key.to_be_bytes());
    let num_want = request
        .num_want
        .map_or(-1, |n| i32::try_from(n).unwrap_or(i32::MAX));
    out.extend(num_want.to_be_bytes());
    out.extend(request.port.to_be_bytes());
    let mut url_data = announce.url_data.clone();
    if let Some(scion) = request.scion {
        if !url_data.contains('?') {
            url_data.push('?');
        }
        push(&mut url_data, "scion", scion.to_string().as_bytes());
    }
    if url_data.is_empty() || url_data.len() > MAX_URL_DATA {
        return;
    }
    for part in url_data.as_bytes().chunks(255) {
        // At most 255.
        out.extend([option::URL_DATA, part.len() as u8]);
        out.extend(part);
    }
    out.push(option::END);
}

fn read_announce(reader: &mut Reader<'_>) -> Option<UdpAnnounce> {
    let (info_hash, peer_id) = (reader.take()?, reader.take()?);
    let [downloaded, left, uploaded] = [(); 3].map(|()| reader.take().map(u64::from_be_bytes));
    let event = match u32::from_be_bytes(reader.take()?) {
        1 => Event::Completed,
        2 => Event::Started,
        3 => Event::Stopped,
        _ => Event::None,
    };
    let gives_ip = reader.take::<4>()? != [0; 4];
    let key = u32::from_be_bytes(reader.take()?);
    // Negative for as many as the tracker likes.
    let num_want = u32::try_from(i32::from_be_bytes(reader.take()?)).ok();
    let port = u16::from_be_bytes(reader.take()?);
    let url_data = read_url_data(reader);
    let query = url_data.split_once('?').map(|(_, query)| query);
    let request = AnnounceRequest {
        info_hash,
        peer_id,
        port,
        uploaded: uploaded?,
        downloaded: downloaded?,
        left: left?,
        event,
        num_want,
        key,
        scion: query.and_then(find_scion),
        tracker_id: None,
    };
    Some(UdpAnnounce {
        request,
        gives_ip,
        url_data,
    })
}

/// The URL data of the options, joined; options of other types are skipped. What cannot be read is
/// ignored: the announce before it is whole.
fn read_url_data(reader: &mut Reader<'_>) -> String {
    let mut data = Vec::new();
    while let Some([kind]) = reader.take() {
        match kind {
            option::END => break,
            option::NOP => continue,
            _ => {}
        }
        let Some(value) = reader.option() else {
            break;
        };
        if kind == option::URL_DATA {
            data.extend_from_slice(value);
        }
    }
    data.truncate(MAX_URL_DATA);
    String::from_utf8(data).unwrap_or_default()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, after) = self.0.split_first_chunk::<N>()?;
        self.0 = after;
        Some(*bytes)
    }

    /// A length byte and that many bytes.
    fn option(&mut self) -> Option<&'a [u8]> {
        let [length] = self.take()?;
        let (value, after) = self.0.split_at_checked(length.into())?;
        self.0 = after;
        Some(value)
    }
}

const _: () = assert!(ANNOUNCE == HEAD + 20 + 20 + 3 * 8 + 4 * 4 + 2);

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_request;

    proptest! {
        #[test]
        fn announces_are_read_back(
            request in any_request(), transaction: u32, connection: u64, gives_ip: bool,
            path in "(/[a-z]{0,400}(\\?[a-z]=[0-9]{0,5})?)?",
        ) {
            let mut request = request;
            request.tracker_id = None;
            let announce = UdpAnnounce { request: request.clone(), gives_ip, url_data: path.clone() };
            let packet = UdpRequest::Announce { connection, transaction, announce }.write();
            prop_assert_eq!(packet.len() == ANNOUNCE, path.is_empty() && request.scion.is_none());
            let Ok(UdpRequest::Announce { announce: read, .. }) = UdpRequest::read(&packet) else {
                return Err(TestCaseError::fail("not an announce"));
            };
            prop_assert!(read.url_data.starts_with(&path));
            prop_assert_eq!(read.gives_ip, gives_ip);
            prop_assert_eq!(read.request, request);
            prop_assert_eq!(UdpRequest::transaction(&packet), Some(transaction));
            for cut in 0..ANNOUNCE {
                prop_assert!(UdpRequest::read(&packet[..cut]).is_err());
            }
        }

        #[test]
        fn other_requests_are_read_back(
            connection: u64, transaction: u32, info_hashes in vec(any::<[u8; 20]>(), 1..=74),
        ) {
            let scrape = UdpRequest::Scrape { connection, transaction, info_hashes };
            prop_assert_eq!(UdpRequest::read(&scrape.write()), Ok(scrape));
            let connect = UdpRequest::Connect { transaction };
            prop_assert_eq!(UdpRequest::read(&connect.write()), Ok(connect));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
            let _ = UdpRequest::read(&bytes);
        }
    }

    #[test]
    fn the_bytes_of_a_connect_request_are_those_of_the_bep() {
        let packet = UdpRequest::Connect {
            transaction: 0x0102_0304,
        }
        .write();
        let expected = [
            0, 0, 4, 0x17, 0x27, 0x10, 0x19, 0x80, 0, 0, 0, 0, 1, 2, 3, 4,
        ];
        assert_eq!(packet, expected);
        let mut other = packet.clone();
        other[7] = 0;
        assert_eq!(UdpRequest::read(&other), Err(UdpRequestError::Protocol));
        other[11] = 9;
        assert_eq!(UdpRequest::read(&other), Err(UdpRequestError::Action(9)));
    }

    #[test]
    fn options_in_any_order_are_read() {
        let request = crate::testing::request(1, 6881);
        let announce = UdpAnnounce {
            request,
            gives_ip: false,
            url_data: String::new(),
        };
        let packet = UdpRequest::Announce {
            connection: 1,
            transaction: 2,
            announce,
        }
        .write();
        let url_data = |options: &[u8]| {
            let packet = [&packet, options].concat();
            match UdpRequest::read(&packet) {
                Ok(UdpRequest::Announce { announce, .. }) => announce.url_data,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            url_data(b"\x01\x02\x02/a\x07\x03xyz\x02\x01b\x00\x02\x01c"),
            "/ab"
        );
        assert_eq!(url_data(b"\x02\x02/a\x02\x09b"), "/a");
        assert_eq!(url_data(b"\x02\x01\xff"), "");
    }
}
