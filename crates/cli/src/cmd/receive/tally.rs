//! Which transfers of a receiver count, when it ends, and with which outcome.

use std::time::{Duration, Instant};

use hawser_bulk::{MAX_RESENDS, SessionNumber, TransferError};
use hawser_endhost::ScionAddr;
use hawser_keys::PeerKey;

use crate::cmd::bulk::files::{NO_FILE, missing};
use crate::failure::Failure;

/// Counts the transfers of a receiver.
///
/// A transfer counts once it is complete, or has failed for good. One whose sender was lost, or that
/// began again in another process, may be continued by the same host: it counts as failed only when
/// that does not happen in time. With a code the same holds for what failed at the sender, because
/// nobody else can use the code, and for files that changed while they were read: the sender sends them
/// again.
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
    running: Vec<Running>,
    lost: Vec<Lost>,
    ended: Option<String>,
}

/// A session that runs.
#[derive(Debug)]
struct Running {
    session: SessionNumber,
    transfer: Transfer,
    earlier: Earlier,
}

/// A transfer that may be continued.
#[derive(Debug)]
struct Lost {
    transfer: Transfer,
    until: Instant,
    earlier: Earlier,
    /// What it counts as if that does not happen.
    otherwise: Counted,
    reason: String,
}

/// What earlier sessions of a transfer did.
#[derive(Debug, Clone, Copy, Default)]
struct Earlier {
    /// How often files were sent again.
    resends: u32,
    /// Files that failed for good.
    failed: u64,
    /// Whether files were transferred.
    some: bool,
}

/// How a transfer counts that is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Failed,
    /// Complete but for some files.
    Partial,
}

/// The files of a session that ended without an error, but not all of them.
#[derive(Debug, Clone, Copy)]
pub struct Incomplete {
    /// All files of the session.
    pub files: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those of the failed that the sender does not send again.
    pub lasting: u64,
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
        let continued = self
            .lost
            .extract_if(.., |lost| lost.transfer.is_continued_by(&transfer));
        let earlier = continued.map(|lost| lost.earlier).last();
        self.running.push(Running {
            session,
            transfer,
            earlier: earlier.unwrap_or_default(),
        });
    }

    /// The other host of a session that runs.
    pub fn peer(&self, session: SessionNumber) -> Option<ScionAddr> {
        let mut running = self.running.iter();
        let found = running.find(|one| one.session == session)?;
        Some(found.transfer.peer)
    }

    /// A session has ended at `now`. Returns whether its transfer is waited for.
    pub fn ended(
        &mut self,
        session: SessionNumber,
        error: Option<&TransferError>,
        now: Instant,
    ) -> bool {
        let Some(running) = self.take(session) else {
            return false;
        };
        let Some(error) = error else {
            match running.earlier.failed {
                0 => self.done += 1,
                failed => self.count(Counted::Partial, missing(failed)),
            }
            return false;
        };
        if !self.may_continue(error) {
            self.failed.push(error.to_string());
            return false;
        }
        self.wait(running, Counted::Failed, error.to_string(), now);
        true
    }

    /// A session has ended at `now` without an error, but files of its transfer failed. Returns whether
    /// they are waited for.
    pub fn ended_without(
        &mut self,
        session: SessionNumber,
        incomplete: Incomplete,
        now: Instant,
    ) -> bool {
        let Some(mut running) = self.take(session) else {
            return false;
        };
        let Incomplete {
            files,
            failed,
            lasting,
        } = incomplete;
        let earlier = &mut running.earlier;
        earlier.some |= failed < files;
        let (counted, reason) = match earlier.some {
            true => (Counted::Partial, missing(earlier.failed + failed)),
            false => (Counted::Failed, NO_FILE.to_owned()),
        };
        if failed == lasting || earlier.resends >= MAX_RESENDS {
            self.count(counted, reason);
            return false;
        }
        earlier.resends += 1;
        earlier.failed += lasting;
        self.wait(running, counted, reason, now);
        true
    }

    /// Ends a session.
    fn take(&mut self, session: SessionNumber) -> Option<Running> {
        let mut running = self.running.iter();
        let at = running.position(|one| one.session == session)?;
        Some(self.running.swap_remove(at))
    }

    /// Lets a transfer whose session has ended be continued.
    fn wait(&mut self, ended: Running, otherwise: Counted, reason: String, now: Instant) {
        let Running {
            transfer, earlier, ..
        } = ended;
        // It may have been continued before its end was noticed here.
        let mut running = self.running.iter_mut();
        match running.find(|one| transfer.is_continued_by(&one.transfer)) {
            Some(continued) => continued.earlier = earlier,
            None => self.lost.push(Lost {
                transfer,
                until: now + self.patience,
                earlier,
                otherwise,
                reason,
            }),
        }
    }

    fn count(&mut self, counted: Counted, reason: String) {
        match counted {
            Counted::Failed => self.failed.push(reason),
            Counted::Partial => self.partial.push(reason),
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
        self.lost.iter().map(|lost| lost.until).min()
    }

    /// Lets transfers count as failed that nobody has continued until `now`.
    pub fn tick(&mut self, now: Instant) {
        let over: Vec<_> = self.lost.extract_if(.., |lost| lost.until <= now).collect();
        for lost in over {
            self.count(lost.otherwise, lost.reason);
        }
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
        for lost in std::mem::take(&mut self.lost) {
            self.count(lost.otherwise, lost.reason);
        }
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
    /// One of two files failed, for good.
    const LASTING: Incomplete = Incomplete {
        files: 2,
        failed: 1,
        lasting: 1,
    };
    /// One of two files changed while it was read.
    const CHANGED: Incomplete = Incomplete {
        lasting: 0,
        ..LASTING
    };
    const ONE_MISSING: &str = "1 file was not transferred";

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
        assert!(!tally.ended_without(1, LASTING, Instant::now()));
        assert!(!tally.is_over());
        tally.ended(2, None, Instant::now());
        assert!(tally.is_over());
        let failure = tally.outcome().unwrap_err();
        assert_eq!(failure.to_string(), "1 file was not transferred");
    }

    #[test]
    fn files_that_changed_are_waited_for_as_often_as_they_are_sent_again() {
        let now = Instant::now();
        let mut tally = Tally::new(Some(1), true, PATIENCE);
        for session in 0..MAX_RESENDS.into() {
            tally.began(session, transfer(1, "a"));
            assert!(tally.ended_without(session, CHANGED, now) && !tally.is_over());
            assert_eq!(tally.next(), Some(now + PATIENCE));
        }
        tally.began(10, transfer(1, "a"));
        assert!(!tally.ended_without(10, CHANGED, now) && tally.is_over());
        let failure = tally.outcome().unwrap_err();
        assert_eq!(failure.to_string(), ONE_MISSING);
    }

    #[test]
    fn files_that_changed_and_are_not_sent_again_are_missing() {
        let now = Instant::now();
        let mut tally = Tally::new(Some(1), true, PATIENCE);
        tally.began(1, transfer(1, "a"));
        assert!(tally.ended_without(1, CHANGED, now));
        tally.tick(now + PATIENCE);
        assert!(tally.is_over());
        let failure = tally.outcome().unwrap_err();
        assert_eq!(failure.to_string(), ONE_MISSING);
    }

    #[test]
    fn a_transfer_counts_with_what_failed_and_arrived_before_files_were_sent_again() {
        let now = Instant::now();
        // All that is sent again arrives, but another file failed for good.
        let mut tally = Tally::new(Some(1), true, PATIENCE);
        tally.began(1, transfer(1, "a"));
        let mixed = Incomplete {
            files: 3,
            failed: 2,
            lasting: 1,
        };
        assert!(tally.ended_without(1, mixed, now));
        tally.began(2, transfer(1, "a"));
        tally.ended(2, None, now);
        assert!(tally.is_over());
        assert_eq!(outcome(tally).as_deref(), Some(ONE_MISSING));
        // Nothing of what is sent again arrives, but other files did before.
        let mut tally = Tally::new(Some(1), true, PATIENCE);
        tally.began(1, transfer(1, "a"));
        assert!(tally.ended_without(1, CHANGED, now));
        tally.began(2, transfer(1, "a"));
        let none = Incomplete {
            files: 1,
            ..LASTING
        };
        assert!(!tally.ended_without(2, none, now));
        assert_eq!(outcome(tally).as_deref(), Some(ONE_MISSING));
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
