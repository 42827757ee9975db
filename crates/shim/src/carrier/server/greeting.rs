//! The first message of a connection.

use hawser_quic::Connection;
use hawser_seal::Cipher;

use crate::carrier::control::Control;
use crate::carrier::node::{Node, Side};
use crate::carrier::report;
use crate::carrier::underlay::Underlay;
use crate::plane::lane::LaneKeys;
use crate::protocol::{Message, Open, RefusalCode};

/// A connection whose first message opens a lane.
pub(super) struct Greeted {
    pub control: Control,
    pub underlay: Underlay,
    pub open: Open,
    pub keys: LaneKeys,
}

impl Greeted {
    /// The same, with datagrams that are sealed so.
    pub(super) fn sealed(mut self, cipher: Cipher) -> Self {
        self.keys.cipher = cipher;
        self
    }
}

/// What became of the first message of a connection.
pub(super) enum Greeting {
    /// It opens a session, or another lane of one.
    Opens(Box<Greeted>),
    /// The same, of a host whose key is not allowed.
    NotAllowed(Box<Greeted>),
    /// It was refused for another reason.
    Refused,
}

/// Handles the first message of a connection.
pub(super) async fn greet(node: Node, connection: Connection, underlay: Underlay) -> Greeting {
    let (peer, key) = (connection.peer(), connection.peer_key());
    let keys = node.lane_keys(&connection, Side::Server);
    let refused = match (Control::accept(connection).await, keys) {
        (Ok((control, Ok(Message::Open(open)))), Ok(keys)) => {
            let greeted = Box::new(Greeted {
                control,
                underlay,
                open,
                keys,
            });
            return match node.allows(&key) {
                true => Greeting::Opens(greeted),
                false => Greeting::NotAllowed(greeted),
            };
        }
        (Ok((_, Ok(Message::Open(_)))), Err(error)) => error.to_string(),
        (Ok((control, first)), _) => {
            let text = match first {
                Ok(_) => "the first message is not Open".to_owned(),
                Err(error) => error.to_string(),
            };
            let refusal = Message::Refuse {
                code: RefusalCode::PROTOCOL,
                text: text.clone(),
            };
            control.refuse(&refusal).await;
            text
        }
        (Err(error), _) => error.to_string(),
    };
    let peer = report::peer(peer);
    tracing::warn!(peer, "a connection was refused: {refused}");
    Greeting::Refused
}
