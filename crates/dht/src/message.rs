//! Messages (KRPC, BEP 5), as they are read. `write` writes them.

mod parts;
mod write;

use hawser_bencode::{Dict, Value, parse_tolerant};

pub(crate) use self::parts::{ErrorCode, Method, Node};
pub(crate) use self::write::{Found, write_answer, write_error, write_query};
use crate::address::Address;
use crate::id::Id;

/// Longest datagram read.
pub(crate) const MAX_DATAGRAM: usize = 4096;
/// Longest transaction id of a query that is answered: an answer repeats it.
const MAX_TRANSACTION: usize = 32;
/// Longest token remembered: an announcement repeats it.
const MAX_TOKEN: usize = 128;
/// Most nodes read from one answer. BEP 5 has 8; some programs send more.
pub(crate) const MAX_NODES: usize = 16;
/// Most peers read from one answer: one node cannot fill a search.
pub(crate) const MAX_VALUES: usize = 100;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message<A> {
    pub transaction: Vec<u8>,
    /// Whether the sender does not answer queries (BEP 43).
    pub read_only: bool,
    /// The address of the receiver, as the sender sees it (BEP 42).
    pub ip: Option<A>,
    pub body: Body<A>,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body<A> {
    Query { id: Id, method: Method },
    Answer(Answer<A>),
    Error,
}

/// An answer, whatever was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer<A> {
    pub id: Id,
    pub nodes: Vec<Node<A>>,
    pub values: Vec<A>,
    pub token: Option<Vec<u8>>,
}

/// Why a datagram is not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is nothing to answer.
    Malformed,
    /// It is a query, but one that cannot be understood.
    Query {
        transaction: Vec<u8>,
        code: ErrorCode,
    },
}

impl<A: Address> Message<A> {
    /// Reads a datagram.
    pub fn read(bytes: &[u8]) -> Result<Self, Fault> {
        if bytes.len() > MAX_DATAGRAM {
            return Err(Fault::Malformed);
        }
        let value = parse_tolerant(bytes).map_err(|_| Fault::Malformed)?;
        let dict = value.as_dict().ok_or(Fault::Malformed)?;
        let transaction = dict.bytes("t").filter(|id| id.len() <= MAX_TRANSACTION);
        let transaction = transaction.ok_or(Fault::Malformed)?.to_vec();
        let body = match dict.bytes("y") {
            Some(b"q") => match read_query(dict) {
                Ok((id, method)) => Body::Query { id, method },
                Err(code) => return Err(Fault::Query { transaction, code }),
            },
            Some(b"r") => Body::Answer(read_answer(dict).ok_or(Fault::Malformed)?),
            Some(b"e") => Body::Error,
            _ => return Err(Fault::Malformed),
        };
        Ok(Self {
            transaction,
            read_only: dict.int("ro") == Some(1),
            ip: dict.bytes("ip").and_then(A::from_compact),
            body,
        })
    }
}

fn read_query(dict: &Dict<'_>) -> Result<(Id, Method), ErrorCode> {
    let name = dict.bytes("q").ok_or(ErrorCode::Protocol)?;
    let arguments = dict.dict("a").ok_or(ErrorCode::Protocol)?;
    let id_under = |key| arguments.bytes(key).and_then(Id::from_bytes);
    let id = id_under("id").ok_or(ErrorCode::Protocol)?;
    let info_hash = || id_under("info_hash").ok_or(ErrorCode::Protocol);
    let method = match name {
        b"ping" => Method::Ping,
        b"find_node" => Method::FindNode(id_under("target").ok_or(ErrorCode::Protocol)?),
        b"get_peers" => Method::GetPeers(info_hash()?),
        b"announce_peer" => {
            let info_hash = info_hash()?;
            let implied = arguments
                .int("implied_port")
                .is_some_and(|implied| implied != 0);
            let port = || {
                arguments
                    .int("port")
                    .and_then(|port| u16::try_from(port).ok())
            };
            let port = match implied {
                true => None,
                false => Some(
                    port()
                        .filter(|port| *port != 0)
                        .ok_or(ErrorCode::Protocol)?,
                ),
            };
            let token = arguments
                .bytes("token")
                .ok_or(ErrorCode::Protocol)?
                .to_vec();
            Method::Announce {
                info_hash,
                port,
                token,
            }
        }
        // As libtorrent does, so that extensions can look for nodes through programs that do not
        // know them.
        _ => match id_under("target").or_else(|| id_under("info_hash")) {
            Some(target) => Method::FindNode(target),
            None => return Err(ErrorCode::MethodUnknown),
        },
    };
    Ok((id, method))
}

fn read_answer<A: Address>(dict: &Dict<'_>) -> Option<Answer<A>> {
    let values = dict.dict("r")?;
    let peers = values.list("values").unwrap_or_default().iter();
    let peers = peers
        .filter_map(Value::as_bytes)
        .filter_map(A::from_compact);
    let token = values
        .bytes("token")
        .filter(|token| token.len() <= MAX_TOKEN);
    Some(Answer {
        id: values.bytes("id").and_then(Id::from_bytes)?,
        nodes: read_nodes(values.bytes(A::NODES_KEY).unwrap_or_default()),
        values: peers.take(MAX_VALUES).collect(),
        token: token.map(<[u8]>::to_vec),
    })
}

/// Reads as many entries as are whole.
fn read_nodes<A: Address>(mut bytes: &[u8]) -> Vec<Node<A>> {
    let next = || {
        let (id, rest) = bytes.split_first_chunk::<{ Id::LEN }>()?;
        let (addr, rest) = A::split_from(rest)?;
        bytes = rest;
        Some((Id(*id), addr))
    };
    std::iter::from_fn(next).take(MAX_NODES).collect()
}

#[cfg(test)]
mod tests;
