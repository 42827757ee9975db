//! A transfer that is offered to whichever host knows a short code.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hawser_keys::{CODE_EXPORTER, Code, Exchange, PeerKey, Side};

use super::refusal::Refusal;
use crate::control::Control;
use crate::protocol::{ErrorCode, Message};

/// Whether a host that knows the code may connect.
pub(super) struct Offer(Mutex<State>);

enum State {
    Open(Code),
    /// The key of the host that knew it.
    Taken(PeerKey),
    /// No host may try any more, or none ever could.
    Ended,
}

impl Offer {
    /// An offer to the host that knows `code`; `None` to none.
    pub(super) fn new(code: Option<Code>) -> Self {
        Self(Mutex::new(code.map_or(State::Ended, State::Open)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the host with `key` knew the code.
    pub(super) fn is_taken_by(&self, key: &PeerKey) -> bool {
        matches!(&*self.lock(), State::Taken(agreed) if agreed == key)
    }

    /// Lets a client show that it knows the code. The first wrong try ends the offer.
    pub(super) async fn agree(&self, control: &mut Control, element: &[u8]) -> Result<(), Refusal> {
        let broken =
            |error: &dyn std::fmt::Display| Refusal(ErrorCode::PROTOCOL, error.to_string());
        let none = || Refusal(ErrorCode::KEY, "no code is offered here".to_owned());
        let code = match &*self.lock() {
            State::Open(code) => code.clone(),
            State::Taken(_) | State::Ended => return Err(none()),
        };
        let key = control.connection().peer_key();
        let exporter = control.connection().export_secret(CODE_EXPORTER, b"");
        let exporter = exporter.map_err(|error| broken(&error))?;
        let (exchange, ours) = Exchange::start(&code, Side::Server)
            .map_err(|error| Refusal(ErrorCode::STORAGE, error.to_string()))?;
        control
            .write(&Message::Code(ours))
            .await
            .map_err(|error| broken(&error))?;
        let mac = match control.read().await.map_err(|error| broken(&error))? {
            Message::CodeConfirm(mac) => mac,
            _ => return Err(broken(&"the code is not confirmed")),
        };
        let confirmation = exchange.finish(element, &exporter);
        let right = confirmation.and_then(|one| one.verify(&mac).map(|()| one.mac()));
        let ours = {
            let mut offer = self.lock();
            // Another connection may have been first.
            let State::Open(_) = &*offer else {
                return Err(none());
            };
            *offer = match right {
                Ok(_) => State::Taken(key),
                Err(_) => State::Ended,
            };
            right.map_err(|_| {
                let text = "the code is wrong: this offer has ended, start the server again";
                Refusal(ErrorCode::KEY, text.to_owned())
            })?
        };
        let confirm = Message::CodeConfirm(ours);
        control
            .write(&confirm)
            .await
            .map_err(|error| broken(&error))
    }
}
