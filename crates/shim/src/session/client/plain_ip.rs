//! The lane over plain IP beside those over SCION: where to, and when it is dialed. No I/O, no clock.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hawser_backoff::Backoff;

/// Waits after the first failure, and after many in a row.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// The lane over plain IP of a session that this host opens.
#[derive(Debug)]
pub(super) struct PlainIpDialer {
    /// Where the other host may listen, if it has not said.
    guess: SocketAddr,
    announced: Option<SocketAddr>,
    state: DialState,
    backoff: Backoff,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DialState {
    /// Not connected, nor dialed before this time, if there is one.
    Idle(Option<Instant>),
    Busy,
}

impl PlainIpDialer {
    /// A lane to a host that may listen at `guess`.
    pub(super) fn new(guess: SocketAddr) -> Self {
        Self {
            guess,
            announced: None,
            state: DialState::Idle(None),
            backoff: Backoff::new(MIN_BACKOFF, MAX_BACKOFF),
        }
    }

    /// Where to dial now, if anywhere; then the lane is busy until it is lost. The other host's
    /// address is guessed only if `guesses`.
    pub(super) fn dial(&mut self, guesses: bool, now: Instant) -> Option<SocketAddr> {
        let is_due = match self.state {
            DialState::Idle(after) => after.is_none_or(|after| after <= now),
            DialState::Busy => false,
        };
        let to = self.announced.or(guesses.then_some(self.guess));
        let to = to.filter(|_| is_due)?;
        self.state = DialState::Busy;
        Some(to)
    }

    /// The other host listens at this address.
    pub(super) fn announce(&mut self, address: SocketAddr) {
        if self.announced.replace(address) != Some(address) && self.state != DialState::Busy {
            self.state = DialState::Idle(None);
        }
    }

    /// The lane is connected, to this address.
    pub(super) fn connected(&mut self, address: SocketAddr) {
        self.announced.get_or_insert(address);
        self.backoff.reset();
    }

    /// The lane has ended, or cannot be connected.
    pub(super) fn lost(&mut self, now: Instant) {
        self.state = DialState::Idle(Some(now + self.backoff.fail()));
    }

    /// Whether a first attempt is still to come or under way.
    pub(super) fn is_hopeful(&self) -> bool {
        self.backoff.failures() == 0 || self.state == DialState::Busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announced_address_is_dialed_and_again_later_and_later() {
        let [guess, announced] =
            ["192.0.2.1:1", "192.0.2.2:2"].map(|text| text.parse::<SocketAddr>().unwrap());
        let began = Instant::now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut plain_ip = PlainIpDialer::new(guess);
        assert_eq!(plain_ip.dial(false, at(0)), None);
        assert_eq!(plain_ip.dial(true, at(0)), Some(guess));
        assert!(plain_ip.is_hopeful());
        assert_eq!(plain_ip.dial(true, at(1)), None);
        plain_ip.lost(at(2));
        assert!(!plain_ip.is_hopeful());
        assert_eq!(plain_ip.dial(true, at(1000)), None);
        // Another address is not to blame.
        plain_ip.announce(announced);
        assert_eq!(plain_ip.dial(false, at(1000)), Some(announced));
        plain_ip.lost(at(1000));
        plain_ip.announce(announced);
        assert_eq!(plain_ip.dial(false, at(2999)), None);
        assert_eq!(plain_ip.dial(false, at(3000)), Some(announced));
        plain_ip.connected(announced);
        plain_ip.lost(at(4000));
        assert_eq!(plain_ip.dial(false, at(4999)), None);
        assert_eq!(plain_ip.dial(false, at(5000)), Some(announced));
        (0..40).for_each(|_| plain_ip.lost(at(5000)));
        assert_eq!(plain_ip.dial(false, at(65_000)), Some(announced));
    }
}
