//! Messages, written.

use hawser_bencode::Value;

use super::parts::{ErrorCode, Method, Node};
use crate::address::Address;
use crate::id::Id;

/// The name of this program in messages, and its version.
const VERSION: &[u8] = b"HW\x00\x01";

/// What an answer holds besides the id of the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found<A> {
    /// `None` where no nodes were asked for.
    pub nodes: Option<Vec<Node<A>>>,
    pub values: Vec<A>,
    pub token: Option<[u8; 8]>,
}

impl<A> Default for Found<A> {
    fn default() -> Self {
        Self {
            nodes: None,
            values: Vec::new(),
            token: None,
        }
    }
}

/// Writes a query of the node `id`.
pub(crate) fn write_query(transaction: u32, id: Id, method: &Method, read_only: bool) -> Vec<u8> {
    let transaction = transaction.to_be_bytes();
    let (mut implied, mut info_hash, mut port, mut target, mut token) =
        (None, None, None, None, None);
    let name = match method {
        Method::Ping => "ping",
        Method::FindNode(id) => {
            target = Some(Value::Bytes(&id.0));
            "find_node"
        }
        Method::GetPeers(id) => {
            info_hash = Some(Value::Bytes(&id.0));
            "get_peers"
        }
        Method::Announce {
            info_hash: id,
            port: given,
            token: bytes,
        } => {
            // Optional in BEP 5, but rqbit reads no announcement without it.
            implied = Some(Value::Int(i64::from(given.is_none())));
            info_hash = Some(Value::Bytes(&id.0));
            // Programs older than `implied_port` need some port.
            port = Some(Value::Int(i64::from(given.unwrap_or(1))));
            token = Some(Value::Bytes(bytes));
            "announce_peer"
        }
    };
    let arguments = Value::dict([
        ("id", Some(Value::Bytes(&id.0))),
        ("implied_port", implied),
        ("info_hash", info_hash),
        ("port", port),
        ("target", target),
        ("token", token),
    ]);
    let message = Value::dict([
        ("a", Some(arguments)),
        ("q", Some(Value::text(name))),
        ("ro", read_only.then_some(Value::Int(1))),
        ("t", Some(Value::Bytes(&transaction))),
        ("v", Some(Value::Bytes(VERSION))),
        ("y", Some(Value::text("q"))),
    ]);
    message.encode()
}

/// Writes an answer of the node `id` to a query from `to`.
pub(crate) fn write_answer<A: Address>(
    transaction: &[u8],
    id: Id,
    to: A,
    found: &Found<A>,
) -> Vec<u8> {
    let nodes = found.nodes.as_ref().map(|nodes| {
        let mut bytes = Vec::new();
        for (id, addr) in nodes {
            bytes.extend(id.0);
            addr.append_to(&mut bytes);
        }
        bytes
    });
    let nodes = nodes.as_deref().map(Value::Bytes);
    let values: Vec<_> = found.values.iter().map(|addr| addr.compact()).collect();
    let to = to.compact();
    let values = (!values.is_empty()).then(|| Value::texts(&values));
    let answer = Value::dict([
        ("id", Some(Value::Bytes(&id.0))),
        (A::NODES_KEY, nodes),
        (
            "token",
            found.token.as_ref().map(|token| Value::Bytes(token)),
        ),
        ("values", values),
    ]);
    let message = Value::dict([
        ("ip", Some(Value::Bytes(&to))),
        ("r", Some(answer)),
        ("t", Some(Value::Bytes(transaction))),
        ("v", Some(Value::Bytes(VERSION))),
        ("y", Some(Value::text("r"))),
    ]);
    message.encode()
}

/// Writes an error.
pub(crate) fn write_error(transaction: &[u8], code: ErrorCode, text: &str) -> Vec<u8> {
    let error = Value::List(vec![Value::Int(code as i64), Value::text(text)]);
    let message = Value::dict([
        ("e", Some(error)),
        ("t", Some(Value::Bytes(transaction))),
        ("v", Some(Value::Bytes(VERSION))),
        ("y", Some(Value::text("e"))),
    ]);
    message.encode()
}
