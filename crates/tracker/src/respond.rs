//! What a tracker sends back for the bytes of a request.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use hawser_address::PeerAddr;

use crate::message::Retry;
use crate::message::http::{failure, parse_announce, parse_scrape, write_answer, write_scrape};
use crate::message::udp::{Form, UdpAnswer, UdpRequest};
use crate::swarms::{Client, Reach, Refusal, Swarms};

/// Longest path of a request over HTTP, in bytes; it may have a word that lets a client in.
pub const MAX_REQUEST_PATH: usize = 512;

/// A reply over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// The status: 200, also for refusals, which clients read; or 404.
    pub status: u16,
    /// The body: bencode, or text if there is no such page.
    pub body: Vec<u8>,
}

/// Answers a request over HTTP that comes from `from`. `target` is path and query, as they are in the
/// request. Announces are made at every path that ends in `/announce`, scrapes at `/scrape`.
pub fn http_reply(swarms: &mut Swarms, from: SocketAddr, target: &str, now: Instant) -> HttpReply {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let last = path.rsplit('/').next().unwrap_or_default();
    let body = match last {
        _ if path.len() > MAX_REQUEST_PATH => None,
        "announce" => Some(announce(swarms, from, query, now)),
        "scrape" => Some(scrape(swarms, from, query, now)),
        _ => None,
    };
    match body {
        Some(body) => HttpReply { status: 200, body },
        None => HttpReply {
            status: 404,
            body: b"This is a BitTorrent tracker: announce at /announce.\n".to_vec(),
        },
    }
}

fn announce(swarms: &mut Swarms, from: SocketAddr, query: &str, now: Instant) -> Vec<u8> {
    let parsed = match parse_announce(query) {
        Ok(parsed) => parsed,
        Err(error) => {
            swarms.on_invalid();
            return failure(&error.to_string(), Retry::Unsaid);
        }
    };
    let client = Client {
        addr: PeerAddr::Ip(from),
        // A host with one family often has the other, too (BEP 7).
        reach: Reach {
            ipv4: true,
            ipv6: true,
            scion: parsed.request.scion.is_some(),
        },
    };
    match swarms.announce(client, &parsed.request, now) {
        Ok(answer) => write_answer(&answer, parsed.compact),
        Err(refusal) => refuse(refusal),
    }
}

fn scrape(swarms: &mut Swarms, from: SocketAddr, query: &str, now: Instant) -> Vec<u8> {
    let info_hashes = match parse_scrape(query) {
        Ok(info_hashes) => info_hashes,
        Err(error) => {
            swarms.on_invalid();
            return failure(&error.to_string(), Retry::Unsaid);
        }
    };
    match swarms.scrape(PeerAddr::Ip(from), &info_hashes, now) {
        Ok(scraped) => {
            let files: BTreeMap<_, _> = info_hashes.into_iter().zip(scraped).collect();
            write_scrape(&files)
        }
        Err(refusal) => refuse(refusal),
    }
}

fn refuse(refusal: Refusal) -> Vec<u8> {
    failure(&refusal.to_string(), Retry::Unsaid)
}

/// Answers a packet over UDP, or over SCION/UDP, that comes from `from`. `None` if it is not one of a
/// client. An answer to a client that has shown no valid connection id is no longer than its packet, so
/// that nobody else can be flooded with it.
pub fn udp_reply(
    swarms: &mut Swarms,
    from: PeerAddr,
    packet: &[u8],
    now: Instant,
) -> Option<Vec<u8>> {
    let form = Form::of(from);
    let request = match UdpRequest::read(packet) {
        Ok(request) => request,
        Err(_) => {
            swarms.on_invalid();
            return None;
        }
    };
    let (connection, transaction) = match request {
        UdpRequest::Connect { transaction } => {
            let id = swarms.connect(from, now);
            return Some(UdpAnswer::Connect(id).write(transaction, form));
        }
        UdpRequest::Announce {
            connection,
            transaction,
            ..
        }
        | UdpRequest::Scrape {
            connection,
            transaction,
            ..
        } => (connection, transaction),
    };
    let answer = match request {
        _ if !swarms.is_connected(connection, from, now) => {
            UdpAnswer::Error("unknown connection id".into())
        }
        UdpRequest::Announce { announce, .. } => {
            let reach = Reach {
                ipv4: form == Form::Ipv4 || (form == Form::Scion && announce.gives_ip),
                ipv6: form == Form::Ipv6 || (form == Form::Scion && announce.gives_ip),
                scion: form == Form::Scion,
            };
            let client = Client { addr: from, reach };
            match swarms.announce(client, &announce.request, now) {
                Ok(answer) => UdpAnswer::Announce(answer),
                Err(refusal) => UdpAnswer::Error(refusal.to_string()),
            }
        }
        UdpRequest::Scrape { info_hashes, .. } => match swarms.scrape(from, &info_hashes, now) {
            Ok(scraped) => UdpAnswer::Scrape(scraped),
            Err(refusal) => UdpAnswer::Error(refusal.to_string()),
        },
        // Answered above.
        UdpRequest::Connect { .. } => return None,
    };
    Some(answer.write(transaction, form))
}
