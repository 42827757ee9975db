//! A transfer that is offered to whichever host knows a short code.

mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

use hawser_keys::{CODE_EXPORTER, Code, Exchange, PeerKey, Side};

use self::state::{Element, Judged, OfferState, wrong};
use super::refusal::Refusal;
use crate::control::Control;
use crate::protocol::{ErrorCode, Message};

/// Whether a host that knows the code may connect.
pub(super) struct Offer(Option<Offered>);

struct Offered {
    code: Code,
    state: Mutex<OfferState>,
}

impl Offer {
    /// An offer to the host that knows `code`; `None` to none.
    pub(super) fn new(code: Option<Code>) -> Self {
        Self(code.map(|code| Offered {
            code,
            state: Mutex::default(),
        }))
    }

    fn state(&self) -> Option<MutexGuard<'_, OfferState>> {
        let offered = self.0.as_ref()?;
        Some(offered.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the host with `key` knew the code, and may begin a transfer.
    pub(super) fn is_taken_by(&self, key: &PeerKey) -> bool {
        self.state().is_some_and(|state| state.is_taken_by(key))
    }

    /// Whether the host with `key` knew the code: its sessions may go on.
    pub(super) fn is_known(&self, key: &PeerKey) -> bool {
        self.state().is_some_and(|state| state.is_known(key))
    }

    /// Whether as many codes were wrong as are allowed: true once.
    pub(super) fn take_end(&self) -> bool {
        self.state().is_some_and(|mut state| state.take_end())
    }

    /// Takes in that a transfer of the host with `key` is complete.
    pub(super) fn complete(&self, key: PeerKey) {
        if let Some(mut state) = self.state() {
            state.complete(key);
        }
    }

    /// Lets a client show that it knows the code, beginning with `element`. It may show another one
    /// before it confirms the code: a client that does not know whether an earlier element was counted
    /// shows that one first.
    pub(super) async fn agree(
        &self,
        control: &mut Control,
        element: &Element,
    ) -> Result<(), Refusal> {
        let broken =
            |error: &dyn std::fmt::Display| Refusal(ErrorCode::PROTOCOL, error.to_string());
        let none = || Refusal(ErrorCode::KEY, "no code is offered here".to_owned());
        let key = control.connection().peer_key();
        let code = &self.0.as_ref().ok_or_else(none)?.code;
        let exporter = control.connection().export_secret(CODE_EXPORTER, b"");
        let exporter = exporter.map_err(|error| broken(&error))?;
        let (mut element, mut is_second) = (*element, false);
        let (exchange, mac) = loop {
            self.state().ok_or_else(none)?.check(key, &element)?;
            let (exchange, ours) = Exchange::start(code, Side::Server)
                .map_err(|error| Refusal(ErrorCode::STORAGE, error.to_string()))?;
            control
                .write(&Message::Code(ours))
                .await
                .map_err(|error| broken(&error))?;
            match control.read().await.map_err(|error| broken(&error))? {
                Message::CodeConfirm(mac) => break (exchange, mac),
                Message::Code(next) if !is_second => (element, is_second) = (next, true),
                _ => return Err(broken(&"the code is not confirmed")),
            }
        };
        let confirmation = exchange.finish(&element, &exporter);
        let confirmed = confirmation.and_then(|one| one.verify(&mac).map(|()| one.mac()));
        let judged = self
            .state()
            .ok_or_else(none)?
            .judge(key, &element, confirmed.is_ok())?;
        match (judged, confirmed) {
            (Judged::Right, Ok(ours)) => {
                let confirm = Message::CodeConfirm(ours);
                let sent = control.write(&confirm).await;
                sent.map_err(|error| broken(&error))
            }
            (Judged::Wrong { left }, _) => Err(wrong(left)),
            (Judged::Right, Err(_)) => Err(wrong(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_code_nobody_knows_it() {
        let (offer, key) = (Offer::new(None), PeerKey([1; 32]));
        offer.complete(key);
        assert!(!offer.is_taken_by(&key) && !offer.is_known(&key) && !offer.take_end());
    }
}
