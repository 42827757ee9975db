//! Which transfers of a receiver count, when it ends, and with which outcome.

use std::time::{Duration, Instant};

use hawser_bulk::{SessionNumber, TransferError};
use hawser_endhost::ScionAddr;
use hawser_keys::PeerKey;

use crate::failure::Failure;

/// Counts the transfers of a receiver.
///
/// A transfer counts once it is complete, or has failed for good. One whose sender was lost, or that
/// began again in another process, may be continued by the same host: it counts as failed only when
/// that does not happen in time. With a code the same holds for what failed at the sender, because
/// nobody else can use the code.
#[derive(Debug)]
pub struct Tally {
    /// Ends after so many; `None` for never.
    wanted: Option<u64>,
    by_code: bool,
    patience: Duration,
    done: u64,
    failed: Vec<String>,
    /// Why transfers are complete but for some files.
    partial: Vec<String>,
    running: Vec<(SessionNumber, Transfer)>,
    /// What may be continued until a time.
    lost: Vec<(Transfer, Instant, String)>,
    ended: Option<String>,
}

/// What tells a transfer from others, also when it is continued in another session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    pub peer: ScionAddr,
    pub key: PeerKey,
    /// Whether the other host sends, or fetches.
    pub sends: bool,
    pub name: String,
}

impl Transfer {
    /// The port of the peer, and its address, may be others.
    fn is_continued_by(&self, other: &Self) -> bool {
        (self.key, self.sends, &self.name) == (other.key, other.sends, &other.name)
    }
}

impl Tally {
    /// Ends after `wanted` transfers, `None` for never; a sender that was lost may continue within
    /// `patience`.
    pub fn new(wanted: Option<u64>, by_code: bool, patience: Duration) -> Self {
        Self {
            wanted,
            by_code,
            patience,
            done: 0,
            failed: Vec::new(),
            partial: Vec::new(),
            running: Vec::new(),
            lost: Vec::new(),
            ended: None,
        }
    }

    /// After how many transfers the receiver ends; `None` for never.
    pub fn wanted(&self) -> Option<u64> {
        self.wanted
    }

    /// A session has begun.
    pub fn began(&mut self, session: SessionNumber, transfer: Transfer) {
        self.lost
            .retain(|(lost, ..)| !lost.is_continued_by(&transfer));
        self.running.push((session, transfer));
    }

    /// The other host of a session that runs.
    pub fn peer(&self, session: SessionNumber) -> Option<ScionAddr> {
        let mut running = self.running.iter();
        let (_, transfer) = running.find(|(number, _)| *number == session)?;
        Some(transfer.peer)
    }

    /// A session has ended at `now`. Returns whether its transfer is waited for.
    pub fn ended(
        &mut self,
        session: SessionNumber,
        error: Option<&TransferError>,
        now: Instant,
    ) -> bool {
        let mut running = self.running.iter();
        let Some(at) = running.position(|(number, _)| *number == session) else {
            return false;
        };
        let (_, transfer) = self.running.swap_remove(at);
        let Some(error) = error else {
            self.done += 1;
            return false;
        };
        if !self.may_continue(error) {
            self.failed.push(error.to_string());
            return false;
        }
        // It may have been continued before its end was noticed here.
        let mut running = self.running.iter();
        if !running.any(|(_, other)| transfer.is_continued_by(other)) {
            let until = now + self.patience;
            self.lost.push((transfer, until, error.to_string()));
        }
        true
    }

    /// A session has ended without an error, but files of its transfer failed: `all` of them, or some.
    pub fn ended_without(&mut self, session: SessionNumber, all: bool, reason: String) {
        self.running.retain(|(number, _)| *number != session);
        match all {
            true => self.failed.push(reason),
            false => self.partial.push(reason),
        }
    }

    fn may_continue(&self, error: &TransferError) -> bool {
        match error {
            TransferError::Unreachable { .. } | TransferError::Replaced => true,
            TransferError::Peer { .. } => self.by_code,
            _ => false,
        }
    }

    /// Nobody can begin a transfer any more, because of `reason`.
    pub fn offer_ended(&mut self, reason: &str) {
        self.ended = Some(reason.to_owned());
    }

    /// When a transfer that was lost counts as failed.
    pub fn next(&self) -> Option<Instant> {
        self.lost.iter().map(|(_, until, _)| *until).min()
    }

    /// Lets transfers count as failed that nobody has continued until `now`.
    pub fn tick(&mut self, now: Instant) {
        let over = self.lost.extract_if(.., |(_, until, _)| *until <= now);
        self.failed.extend(over.map(|(.., reason)| reason));
    }

    /// Whether the receiver is to end.
    pub fn is_over(&self) -> bool {
        let counted = self.done + (self.failed.len() + self.partial.len()) as u64;
        self.ended.is_some() || self.wanted.is_some_and(|wanted| counted >= wanted)
    }

    /// The outcome of the command.
    ///
    /// # Errors
    /// When transfers that count have failed, in all files or in some, or fewer came than are wanted.
    pub fn outcome(mut self) -> Result<(), Failure> {
        if let Some(reason) = self.ended {
            return Err(Failure::job(reason));
        }
        let Some(wanted) = self.wanted else {
            return Ok(());
        };
        // It was interrupted: nobody can continue them.
        self.failed
            .extend(self.lost.into_iter().map(|(.., reason)| reason));
        let Some(reason) = self.failed.first() else {
            let complete = self.done + self.partial.len() as u64;
            return match (complete >= wanted, self.partial.pop()) {
                (true, None) => Ok(()),
                (true, Some(reason)) => Err(Failure::partial(reason)),
                (false, _) => Err(Failure::job(format!(
                    "interrupted: {} of {wanted} transfers are complete",
                    self.done
                ))),
            };
        };
        Err(Failure::job(match (wanted, self.failed.len()) {
            (1, _) => format!("the transfer failed: {reason}"),
            (_, 1) => format!("1 of {wanted} transfers failed: {reason}"),
            (_, failed) => {
                format!("{failed} of {wanted} transfers failed, the first one: {reason}")
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use hawser_bulk::protocol::ErrorCode;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(300);

    fn transfer(key: u8, name: &str) -> Transfer {
        Transfer {
            peer: "1-ff00:0:110,10.0.1.1:31000".parse().unwrap(),
            key: PeerKey([key; 32]),
            sends: true,
            name: name.into(),
        }
    }

    fn lost() -> TransferError {
        TransferError::Unreachable {
            peer: transfer(1, "").peer,
            after: Duration::from_secs(30),
            reason: "timed out".into(),
        }
    }

    fn at_the_sender() -> TransferError {
        TransferError::Peer {
            code: ErrorCode::STORAGE,
            text: "cannot read x".into(),
        }
    }

    /// What the command says and returns.
    fn outcome(tally: Tally) -> Option<String> {
        tally.outcome().err().map(|failure| failure.to_string())
    }

    #[test]
    fn transfers_without_some_files_count_and_are_the_outcome() {
        let mut tally = Tally::new(Some(2), false, PATIENCE);
        tally.began(1, transfer(1, "a"));
        tally.began(2, transfer(1, "b"));
        tally.ended_without(1, false, "1 file was not transferred".into());
        assert!(!tally.is_over());
        tally.ended(2, None, Instant::now());
        assert!(tally.is_over());
        let failure = tally.outcome().unwrap_err();
        assert_eq!(failure.to_string(), "1 file was not transferred");
    }

    #[test]
    fn failed_transfers_count_and_are_the_outcome() {
        let now = Instant::now();
        let mut tally = Tally::new(Some(2), false, PATIENCE);
        tally.began(1, transfer(1, "a"));
        tally.began(2, transfer(2, "b"));
        assert!(!tally.ended(1, None, now) && !tally.is_over());
        assert!(!tally.ended(2, Some(&TransferError::Mismatch), now));
        assert!(tally.is_over());
        let text = outcome(tally).unwrap();
        let expected = format!("1 of 2 transfers failed: {}", TransferError::Mismatch);
        assert_eq!(text, expected);

        let mut tally = Tally::new(Some(1), false, PATIENCE);
        tally.began(1, transfer(1, "a"));
        tally.ended(1, Some(&at_the_sender()), now);
        assert!(tally.is_over());
        let text = outcome(tally).unwrap();
        assert_eq!(text, "the transfer failed: the other side: cannot read x");
    }

    #[test]
    fn complete_transfers_are_a_success() {
        let mut tally = Tally::new(Some(1), true, PATIENCE);
        tally.began(1, transfer(1, "a"));
        tally.ended(1, None, Instant::now());
        assert!(tally.is_over());
        assert_eq!(outcome(tally), None);
    }

    #[test]
    fn a_sender_that_was_lost_may_continue_for_some_time() {
        let now = Instant::now();
        let mut tally = Tally::new(Some(1), false, PATIENCE);
        tally.began(1, transfer(1, "a"));
        assert!(tally.ended(1, Some(&lost()), now));
        assert_eq!(tally.next(), Some(now + PATIENCE));
        tally.tick(now + PATIENCE - Duration::from_millis(1));
        assert!(!tally.is_over());
        // Another transfer, and another host, do not continue it.
        tally.began(2, transfer(1, "b"));
        tally.began(3, transfer(2, "a"));
        assert!(tally.next().is_some());
        tally.began(4, transfer(1, "a"));
        assert_eq!(tally.next(), None);
        tally.ended(4, None, now);
        assert!(tally.is_over());
        assert_eq!(outcome(tally), None);
    }

    #[test]
    fn a_sender_that_does_not_come_back_has_failed() {
        let now = Instant::now();
        let mut tally = Tally::new(Some(1), true, PATIENCE);
        tally.began(1, transfer(1, "a"));
        tally.ended(1, Some(&lost()), now);
        tally.tick(now + PATIENCE);
        assert!(tally.is_over() && tally.next().is_none());
        let text = outcome(tally).unwrap();
        assert!(text.contains("the transfer failed"), "{text}");
        assert!(text.contains("could not be reached"), "{text}");
    }

    #[test]
    fn a_session_that_was_replaced_is_continued_by_the_other() {
        let now = Instant::now();
        let mut tally = Tally::new(Some(1), false, PATIENCE);
        tally.began(1, transfer(1, "a"));
        tally.began(2, transfer(1, "a"));
        assert!(tally.ended(1, Some(&TransferError::Replaced), now));
        assert_eq!(tally.next(), None);
        tally.ended(2, None, now);
        assert!(tally.is_over());
        assert_eq!(outcome(tally), None);
    }

    #[test]
    fn with_a_code_what_failed_at_the_sender_may_be_tried_again() {
        let now = Instant::now();
        let mut tally = Tally::new(Some(1), true, PATIENCE);
        tally.began(1, transfer(1, "a"));
        assert!(tally.ended(1, Some(&at_the_sender()), now));
        assert!(!tally.is_over() && tally.next().is_some());
        tally.began(2, transfer(1, "a"));
        // What fails here fails again.
        assert!(!tally.ended(2, Some(&TransferError::Mismatch), now));
        assert!(tally.is_over());
    }

    #[test]
    fn what_did_not_come_is_named_when_it_is_interrupted() {
        let mut tally = Tally::new(Some(2), false, PATIENCE);
        tally.began(1, transfer(1, "a"));
        tally.ended(1, None, Instant::now());
        let text = outcome(tally).unwrap();
        assert_eq!(text, "interrupted: 1 of 2 transfers are complete");
        // A receiver that has no end fails by nothing.
        let mut tally = Tally::new(None, false, PATIENCE);
        tally.began(1, transfer(1, "a"));
        tally.ended(1, Some(&TransferError::Mismatch), Instant::now());
        assert!(!tally.is_over());
        assert_eq!(outcome(tally), None);
    }

    #[test]
    fn an_offer_that_has_ended_is_a_failure() {
        let mut tally = Tally::new(Some(1), true, PATIENCE);
        tally.offer_ended("too many codes were wrong");
        assert!(tally.is_over());
        assert_eq!(outcome(tally).as_deref(), Some("too many codes were wrong"));
    }
}
