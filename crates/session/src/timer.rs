//! A timer that follows a due time.

use std::future::pending;
use std::pin::Pin;
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// Waits for a due time that may change at any time. Setting the same due time again costs nothing.
#[derive(Debug, Default)]
pub struct Timer {
    due: Option<Instant>,
    /// Waits for `due`, or for one that was set before; `None` until the first one is set.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Sets when it is due; `None` for never. Must be called inside a tokio runtime.
    pub fn set(&mut self, due: Option<Instant>) {
        if std::mem::replace(&mut self.due, due) == due {
            return;
        }
        match (due, &mut self.sleep) {
            (None, _) => {}
            (Some(due), Some(sleep)) => sleep.as_mut().reset(due.into()),
            (Some(due), None) => self.sleep = Some(Box::pin(sleep_until(due.into()))),
        }
    }

    /// Returns once it is due, again and again until another due time is set. Cancel safe.
    pub async fn expired(&mut self) {
        match (self.due, &mut self.sleep) {
            // A sleep that is over must not be awaited again.
            (Some(_), Some(sleep)) if sleep.is_elapsed() => {}
            (Some(_), Some(sleep)) => sleep.as_mut().await,
            _ => pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    #[tokio::test(start_paused = true)]
    async fn it_follows_the_due_time_and_stays_due_until_another_is_set() {
        let (begin, mut timer) = (now(), Timer::default());
        assert!(timeout(60 * SECOND, timer.expired()).await.is_err());
        let begin = begin + 60 * SECOND;
        timer.set(Some(begin + 9 * SECOND));
        assert!(timeout(SECOND, timer.expired()).await.is_err());
        timer.set(Some(begin + 3 * SECOND));
        for _ in 0..3 {
            timer.expired().await;
            assert!((begin + 3 * SECOND..begin + 4 * SECOND).contains(&now()));
        }
        timer.set(Some(begin + 5 * SECOND));
        timer.expired().await;
        assert!(now() >= begin + 5 * SECOND);
        timer.set(None);
        assert!(timeout(60 * SECOND, timer.expired()).await.is_err());
        // In the past.
        timer.set(Some(begin));
        timer.expired().await;
    }
}
