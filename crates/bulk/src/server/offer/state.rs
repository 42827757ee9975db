//! Which hosts have shown a code, and how many codes were wrong.

use hawser_keys::{ELEMENT, PeerKey};

use crate::protocol::ErrorCode;
use crate::server::refusal::Refusal;

/// Wrong codes that end an offer: a guess is right once in 3 × 10^11 offers, and a code that was mistyped
/// can be typed again.
const WRONG_CODES: u8 = 3;

/// The SPAKE2 element that a client shows of its code.
pub(super) type Element = [u8; ELEMENT];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum OfferState {
    /// Nobody has shown the code.
    Open {
        /// The elements of the codes that were wrong, fewer than [`WRONG_CODES`].
        wrong: Vec<Element>,
    },
    /// The host with this key knows the code: it alone may begin its transfer, as often as it takes.
    Taken(PeerKey),
    /// Its transfer is complete.
    Complete(PeerKey),
    /// As many codes were wrong as are allowed.
    Ended { reported: bool },
}

/// What became of a code that a host has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    Right,
    Wrong {
        /// How many more may be wrong.
        left: u8,
    },
}

impl Default for OfferState {
    fn default() -> Self {
        Self::Open { wrong: Vec::new() }
    }
}

/// The refusal of a wrong code after which `left` more may be wrong.
pub(super) fn wrong(left: u8) -> Refusal {
    let text = match left {
        0 => "the code is wrong, and so were others: start the server again for a new one".into(),
        1 => "the code is wrong: one more can be tried".into(),
        left => format!("the code is wrong: {left} more can be tried"),
    };
    Refusal(ErrorCode::KEY, text)
}

/// How many more codes may be wrong after these.
fn left(wrong: &[Element]) -> u8 {
    WRONG_CODES.saturating_sub(wrong.len().try_into().unwrap_or(u8::MAX))
}

impl OfferState {
    /// Checks that the host with `key` may show a code by `element`: not one that was wrong. So a client
    /// whose connection ended before the answer learns it, without another try.
    pub(super) fn check(&self, key: PeerKey, element: &Element) -> Result<(), Refusal> {
        match self {
            Self::Open { wrong } if wrong.contains(element) => Err(self::wrong(left(wrong))),
            state => state.check_key(key),
        }
    }

    /// Checks that the host with `key` may show a code.
    fn check_key(&self, key: PeerKey) -> Result<(), Refusal> {
        let no = |text: &str| Err(Refusal(ErrorCode::KEY, text.to_owned()));
        match self {
            Self::Open { .. } => Ok(()),
            Self::Taken(agreed) if *agreed == key => Ok(()),
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

    /// Takes in that the host with `key` has shown, by `element`, the `right` code or another one. An
    /// element counts once.
    pub(super) fn judge(
        &mut self,
        key: PeerKey,
        element: &Element,
        right: bool,
    ) -> Result<Judged, Refusal> {
        // Another exchange may have ended meanwhile.
        self.check(key, element)?;
        match (&mut *self, right) {
            (Self::Open { wrong }, false) => {
                wrong.push(*element);
                let left = left(wrong);
                if left == 0 {
                    *self = Self::Ended { reported: false };
                }
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

    /// Whether the host with `key` knew the code, and may begin a transfer.
    pub(super) fn is_taken_by(&self, key: &PeerKey) -> bool {
        matches!(self, Self::Taken(agreed) if agreed == key)
    }

    /// Whether the host with `key` knew the code: its sessions may go on.
    pub(super) fn is_known(&self, key: &PeerKey) -> bool {
        match self {
            Self::Taken(agreed) | Self::Complete(agreed) => agreed == key,
            Self::Open { .. } | Self::Ended { .. } => false,
        }
    }

    /// Whether as many codes were wrong as are allowed: true once.
    pub(super) fn take_end(&mut self) -> bool {
        let is_new = *self == Self::Ended { reported: false };
        if is_new {
            *self = Self::Ended { reported: true };
        }
        is_new
    }

    /// Takes in that a transfer of the host with `key` is complete.
    pub(super) fn complete(&mut self, key: PeerKey) {
        if *self == Self::Taken(key) {
            *self = Self::Complete(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerKey = PeerKey([1; 32]);
    const B: PeerKey = PeerKey([2; 32]);

    /// What shows the code with this number.
    fn element(number: u8) -> Element {
        [number; ELEMENT]
    }

    fn judge(state: &mut OfferState, key: PeerKey, number: u8, right: bool) -> Option<Judged> {
        state.judge(key, &element(number), right).ok()
    }

    #[test]
    fn a_wrong_code_leaves_the_offer_usable_until_too_many_were_wrong() {
        let mut state = OfferState::default();
        for left in (1..WRONG_CODES).rev() {
            let judged = judge(&mut state, A, left, false);
            assert_eq!(judged, Some(Judged::Wrong { left }));
            assert!(!state.take_end() && !state.is_taken_by(&A));
        }
        assert_eq!(judge(&mut state, B, 100, true), Some(Judged::Right));
        assert!(state.is_taken_by(&B));

        let mut state = OfferState::default();
        for left in (0..WRONG_CODES).rev() {
            let judged = judge(&mut state, A, left, false);
            assert_eq!(judged, Some(Judged::Wrong { left }));
        }
        assert!(state.take_end() && !state.take_end());
        // Of an exchange that was under way nothing is shown, right or wrong.
        assert_eq!(judge(&mut state, B, 100, true), None);
        assert_eq!(judge(&mut state, B, 101, false), None);
    }

    #[test]
    fn a_wrong_element_counts_once_and_is_refused_with_what_is_left() {
        let mut state = OfferState::default();
        let left = WRONG_CODES - 1;
        assert_eq!(judge(&mut state, A, 7, false), Some(Judged::Wrong { left }));
        for key in [A, B, A, B] {
            // Over another connection, also one whose exchange was under way.
            let Err(Refusal(code, text)) = state.check(key, &element(7)) else {
                panic!("it is taken");
            };
            assert_eq!((code, text.contains("2 more")), (ErrorCode::KEY, true));
            assert_eq!(judge(&mut state, key, 7, false), None);
            assert_eq!(judge(&mut state, key, 7, true), None);
        }
        let left = left - 1;
        assert_eq!(judge(&mut state, A, 8, false), Some(Judged::Wrong { left }));
        assert_eq!(judge(&mut state, A, 9, true), Some(Judged::Right));
    }

    #[test]
    fn the_host_that_knew_the_code_may_show_it_again_until_its_transfer_is_complete() {
        let mut state = OfferState::default();
        assert_eq!(judge(&mut state, A, 1, true), Some(Judged::Right));
        // It was killed, and started again.
        assert!(state.check(A, &element(2)).is_ok());
        assert_eq!(judge(&mut state, A, 2, true), Some(Judged::Right));
        assert!(state.is_taken_by(&A) && state.is_known(&A));
        // Nobody else may, and cannot end the offer.
        for number in 0..=WRONG_CODES {
            assert_eq!(judge(&mut state, B, number, false), None);
            assert_eq!(judge(&mut state, B, number, true), None);
        }
        state.complete(B);
        assert!(state.is_taken_by(&A));
        state.complete(A);
        assert!(!state.is_taken_by(&A) && state.is_known(&A));
        assert_eq!(judge(&mut state, A, 3, true), None);
        assert!(!state.take_end());
    }
}
