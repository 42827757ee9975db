//! A rate limit for the router's own messages: a token bucket.

use std::time::Instant;

/// Tokens are added at a steady rate, up to `burst`; each message takes one.
pub(crate) struct TokenBucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    last: Instant,
}

impl TokenBucket {
    /// A full bucket of `burst` tokens that gets `rate` tokens a second.
    pub fn new(rate: u32, burst: u32, now: Instant) -> Self {
        Self {
            rate: rate.into(),
            burst: burst.into(),
            tokens: burst.into(),
            last: now,
        }
    }

    /// Takes a token; returns whether there was one at `now`.
    pub fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.last).as_secs_f64();
        // Threads may come with times that are slightly out of order.
        self.last = self.last.max(now);
        self.tokens = (self.tokens + passed * self.rate).min(self.burst);
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::TokenBucket;

    #[test]
    fn a_burst_passes_and_then_the_rate_applies() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(100, 10, start);
        assert_eq!((0..50).filter(|_| bucket.take(start)).count(), 10);
        let later = start + Duration::from_millis(55);
        assert_eq!((0..50).filter(|_| bucket.take(later)).count(), 5);
        let much_later = start + Duration::from_secs(60);
        assert_eq!((0..50).filter(|_| bucket.take(much_later)).count(), 10);
    }
}
