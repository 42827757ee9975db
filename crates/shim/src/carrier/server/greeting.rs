//! The first message of a connection.

use std::time::Duration;

use hawser_endhost::patience::wait;
use hawser_quic::Connection;
use hawser_seal::Cipher;

use crate::carrier::control::{Control, ControlError};
use crate::carrier::node::{Node, Side};
use crate::carrier::report;
use crate::carrier::underlay::Underlay;
use crate::plane::lane::LaneKeys;
use crate::protocol::{Message, Open, RefusalCode};

/// Longest wait for the first message of a connection, without the time in which this process did not
/// run.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

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
    let first = async {
        let mut control = Control::accept(connection).await?;
        let message = control.read().await?;
        Ok::<_, ControlError>((control, message))
    };
    let refused = match (wait(FIRST_MESSAGE_TIMEOUT, first).await, keys) {
        (Some(Ok((control, Message::Open(open)))), Ok(keys)) => {
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
        (Some(Ok((_, Message::Open(_)))), Err(error)) => error.to_string(),
        (Some(Ok((control, _))), _) => {
            let text = "the first message is not Open".to_owned();
            let refusal = Message::Refuse {
                code: RefusalCode::PROTOCOL,
                text: text.clone(),
            };
            refuse(control, refusal).await;
            text
        }
        (Some(Err(error)), _) => error.to_string(),
        (None, _) => "it sends no first message".to_owned(),
    };
    let peer = report::peer(peer);
    tracing::warn!(peer, "a connection was refused: {refused}");
    Greeting::Refused
}

/// Refuses a connection, and keeps it until the peer has received why.
pub(super) async fn refuse(mut control: Control, refusal: Message) {
    let refused = async {
        if control.write(&refusal).await.is_ok() {
            control.finish().await;
        }
    };
    // A peer that takes nothing does not learn it.
    let _ = wait(FIRST_MESSAGE_TIMEOUT, refused).await;
}
