//! A transfer that is offered to whichever host knows a short code.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hawser_keys::{CODE_EXPORTER, Code, Exchange, PeerKey, Side};

use super::refusal::Refusal;
use crate::control::Control;
use crate::protocol::{ErrorCode, Message};

/// Wrong codes that end an offer. One who guesses finds the code by one in 3 × 10^11 then, and one
/// who mistypes it can try again.
pub(super) const WRONG_CODES: u8 = 3;

/// Whether a host that knows the code may connect.
pub(super) struct Offer(Option<Offered>);

struct Offered {
    code: Code,
    state: Mutex<OfferState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfferState {
    /// Nobody has shown the code. So many were wrong.
    Open { wrong: u8 },
    /// The host with this key knows the code: it alone may begin its transfer, as often as it takes.
    Taken(PeerKey),
    /// Its transfer is complete.
    Complete(PeerKey),
    /// As many codes were wrong as are allowed.
    Ended { reported: bool },
}

/// What became of a code that a host has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    Right,
    Wrong {
        /// How many more may be wrong.
        left: u8,
    },
}

impl OfferState {
    /// Checks that the host with `key` may show a code.
    fn check(self, key: PeerKey) -> Result<(), Refusal> {
        let no = |text: &str| Err(Refusal(ErrorCode::KEY, text.to_owned()));
        match self {
            Self::Open { .. } => Ok(()),
            Self::Taken(agreed) if agreed == key => Ok(()),
            Self::Taken(_) => {
                no("another host uses the code: start the server again for a new one")
            }
            Self::Complete(_) => {
                no("the transfer of this code is complete: start the server again for a new one")
            }
            Self::Ended { .. } => {
                no("too many codes were wrong: start the server again for a new one")
            }
        }
    }

    /// Takes in that the host with `key` has shown the `right` code, or another one.
    fn judge(&mut self, key: PeerKey, right: bool) -> Result<Judged, Refusal> {
        // Another exchange may have ended meanwhile.
        self.check(key)?;
        match (*self, right) {
            (Self::Open { wrong }, false) => {
                let wrong = wrong + 1;
                let left = WRONG_CODES - wrong;
                *self = match left {
                    0 => Self::Ended { reported: false },
                    _ => Self::Open { wrong },
                };
                Ok(Judged::Wrong { left })
            }
            // It has shown the right one before: nothing is left to guess.
            (_, false) => Ok(Judged::Wrong { left: WRONG_CODES }),
            (_, true) => {
                *self = Self::Taken(key);
                Ok(Judged::Right)
            }
        }
    }
}

impl Offer {
    /// An offer to the host that knows `code`; `None` to none.
    pub(super) fn new(code: Option<Code>) -> Self {
        Self(code.map(|code| Offered {
            code,
            state: Mutex::new(OfferState::Open { wrong: 0 }),
        }))
    }

    fn state(&self) -> Option<MutexGuard<'_, OfferState>> {
        let offered = self.0.as_ref()?;
        Some(offered.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the host with `key` knew the code, and may begin a transfer.
    pub(super) fn is_taken_by(&self, key: &PeerKey) -> bool {
        let state = self.state();
        state.is_some_and(|state| matches!(&*state, OfferState::Taken(agreed) if agreed == key))
    }

    /// Whether the host with `key` knew the code: its sessions may go on.
    pub(super) fn is_known(&self, key: &PeerKey) -> bool {
        self.state().is_some_and(|state| match &*state {
            OfferState::Taken(agreed) | OfferState::Complete(agreed) => agreed == key,
            OfferState::Open { .. } | OfferState::Ended { .. } => false,
        })
    }

    /// Whether as many codes were wrong as are allowed: true once.
    pub(super) fn take_end(&self) -> bool {
        let Some(mut state) = self.state() else {
            return false;
        };
        let is_new = *state == OfferState::Ended { reported: false };
        if is_new {
            *state = OfferState::Ended { reported: true };
        }
        is_new
    }

    /// Takes in that a transfer of the host with `key` is complete.
    pub(super) fn complete(&self, key: PeerKey) {
        if let Some(mut state) = self.state()
            && *state == OfferState::Taken(key)
        {
            *state = OfferState::Complete(key);
        }
    }

    /// Lets a client show that it knows the code.
    pub(super) async fn agree(&self, control: &mut Control, element: &[u8]) -> Result<(), Refusal> {
        let broken =
            |error: &dyn std::fmt::Display| Refusal(ErrorCode::PROTOCOL, error.to_string());
        let none = || Refusal(ErrorCode::KEY, "no code is offered here".to_owned());
        let key = control.connection().peer_key();
        let code = &self.0.as_ref().ok_or_else(none)?.code;
        self.state().ok_or_else(none)?.check(key)?;
        let exporter = control.connection().export_secret(CODE_EXPORTER, b"");
        let exporter = exporter.map_err(|error| broken(&error))?;
        let (exchange, ours) = Exchange::start(code, Side::Server)
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
        let confirmed = confirmation.and_then(|one| one.verify(&mac).map(|()| one.mac()));
        let judged = self
            .state()
            .ok_or_else(none)?
            .judge(key, confirmed.is_ok())?;
        let wrong = |left| {
            let text = match left {
                0 => "the code is wrong, and so were others: start the server again for a new one"
                    .to_owned(),
                1 => "the code is wrong: one more can be tried".to_owned(),
                left => format!("the code is wrong: {left} more can be tried"),
            };
            Refusal(ErrorCode::KEY, text)
        };
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

    const A: PeerKey = PeerKey([1; 32]);
    const B: PeerKey = PeerKey([2; 32]);

    fn offer() -> Offer {
        Offer::new(Some(Code::generate().unwrap()))
    }

    fn judge(offer: &Offer, key: PeerKey, right: bool) -> Option<Judged> {
        offer.state().unwrap().judge(key, right).ok()
    }

    #[test]
    fn a_wrong_code_leaves_the_offer_usable_until_too_many_were_wrong() {
        let offer = offer();
        for left in (1..WRONG_CODES).rev() {
            assert_eq!(judge(&offer, A, false), Some(Judged::Wrong { left }));
            assert!(!offer.take_end() && !offer.is_taken_by(&A));
        }
        assert_eq!(judge(&offer, B, true), Some(Judged::Right));
        assert!(offer.is_taken_by(&B));

        let offer = self::offer();
        for left in (0..WRONG_CODES).rev() {
            assert_eq!(judge(&offer, A, false), Some(Judged::Wrong { left }));
        }
        assert!(offer.take_end() && !offer.take_end());
        // Of an exchange that was under way nothing is shown, right or wrong.
        assert_eq!(judge(&offer, B, true), None);
        assert_eq!(judge(&offer, B, false), None);
    }

    #[test]
    fn the_host_that_knew_the_code_may_show_it_again_until_its_transfer_is_complete() {
        let offer = offer();
        assert_eq!(judge(&offer, A, true), Some(Judged::Right));
        // It was killed, and started again.
        assert!(offer.state().unwrap().check(A).is_ok());
        assert_eq!(judge(&offer, A, true), Some(Judged::Right));
        assert!(offer.is_taken_by(&A) && offer.is_known(&A));
        // Nobody else may, and cannot end the offer.
        for _ in 0..=WRONG_CODES {
            assert_eq!(judge(&offer, B, false), None);
            assert_eq!(judge(&offer, B, true), None);
        }
        offer.complete(B);
        assert!(offer.is_taken_by(&A));
        offer.complete(A);
        assert!(!offer.is_taken_by(&A) && offer.is_known(&A));
        assert_eq!(judge(&offer, A, true), None);
        assert!(!offer.take_end());
    }

    #[test]
    fn without_a_code_nobody_knows_it() {
        let offer = Offer::new(None);
        offer.complete(A);
        assert!(!offer.is_taken_by(&A) && !offer.is_known(&A) && !offer.take_end());
    }
}
