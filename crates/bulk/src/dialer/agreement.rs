//! The client's side of the exchange about the code.

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use hawser_keys::{CODE_EXPORTER, Code, ELEMENT, Exchange, PeerKey, Side};

use super::failure::DialError;
use crate::control::Control;
use crate::error::TransferError;
use crate::protocol::Message;

/// What the connections of a transfer know of its code.
#[derive(Debug, Default)]
pub(crate) struct Agreement {
    /// The key of the server that knew the code.
    key: OnceLock<PeerKey>,
    /// The element of the last exchange that was confirmed and not answered: the server may have
    /// found the code wrong.
    unanswered: Mutex<Option<[u8; ELEMENT]>>,
}

impl Agreement {
    /// The key of the server that knew the code.
    pub(crate) fn key(&self) -> Option<PeerKey> {
        self.key.get().copied()
    }

    /// Shows that this host knows the code, and lets the server do so.
    ///
    /// A wrong code costs one of the server's tries, also if the connection ends before the answer:
    /// over the next one the element of that exchange is shown first, which the server refuses if it
    /// has counted it. Otherwise a new exchange follows, because its secret must not be used again
    /// (RFC 9382, 7).
    pub(super) async fn reach(&self, control: &mut Control, code: &Code) -> Result<(), DialError> {
        let wrong = |_| DialError::Fatal(TransferError::Code);
        let key = control.connection().peer_key();
        let exporter = control.connection().export_secret(CODE_EXPORTER, b"");
        let exporter = exporter.map_err(|error| DialError::Path(error.to_string()))?;
        let earlier = *self.unanswered();
        if let Some(element) = earlier {
            show(control, element).await?;
            *self.unanswered() = None;
        }
        let (exchange, element) = Exchange::start(code, Side::Client)
            .map_err(|error| DialError::Fatal(TransferError::Thread(io::Error::other(error))))?;
        let theirs = show(control, element).await?;
        let confirmation = exchange.finish(&theirs, &exporter).map_err(wrong)?;
        *self.unanswered() = Some(element);
        let mac = Message::CodeConfirm(confirmation.mac());
        control.write(&mac).await?;
        match control.read().await? {
            Message::CodeConfirm(mac) => confirmation.verify(&mac).map_err(wrong)?,
            answer => return Err(DialError::refusal(answer)),
        }
        *self.unanswered() = None;
        self.key.get_or_init(|| key);
        Ok(())
    }

    fn unanswered(&self) -> std::sync::MutexGuard<'_, Option<[u8; ELEMENT]>> {
        self.unanswered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows an element, and returns the server's.
async fn show(control: &mut Control, element: [u8; ELEMENT]) -> Result<[u8; ELEMENT], DialError> {
    control.write(&Message::Code(element)).await?;
    match control.read().await? {
        Message::Code(theirs) => Ok(theirs),
        answer => Err(DialError::refusal(answer)),
    }
}
