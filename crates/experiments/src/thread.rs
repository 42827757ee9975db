//! Work that blocks.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::interval;

use crate::error::{During, ExperimentError};
use crate::shape::{Observe, Progress};

/// Interval at which the progress of a job is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Runs `job` on a thread of its own, so that what waits for it can be interrupted. The thread then ends
/// with this process.
pub async fn on_thread<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, ExperimentError> + Send + 'static,
) -> Result<T, ExperimentError> {
    let (send, receive) = oneshot::channel();
    let thread = std::thread::Builder::new().name("experiment".to_owned());
    let step = "running a thread";
    let work = move || {
        // Nobody waits for it after an interruption.
        let _ = send.send(job());
    };
    thread.spawn(work).during(step)?;
    receive.await.during(step)?
}

/// The same for a job that says how much of all is done, which `observe` sees as `what`.
pub async fn watched<T: Send + 'static>(
    what: &'static str,
    observe: Observe<'_>,
    job: impl FnOnce(&mut dyn FnMut(u64, u64)) -> Result<T, ExperimentError> + Send + 'static,
) -> Result<T, ExperimentError> {
    let seen = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let said = Arc::clone(&seen);
    let mut work = pin!(on_thread(move || job(&mut |done, total| {
        said[0].store(done, Ordering::Relaxed);
        said[1].store(total, Ordering::Relaxed);
    })));
    let mut ticks = interval(LOOK);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => {
                let [done, total] = [0, 1].map(|index| seen[index].load(Ordering::Relaxed));
                if total > 0 {
                    observe(Progress::Work { what, done, total });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn the_progress_of_a_job_is_seen_until_it_ends() {
        let (send, receive) = mpsc::channel();
        let mut seen = None;
        let mut observe = |progress: Progress<'_>| {
            if let Progress::Work { what, done, total } = progress {
                seen = Some((what, done, total));
                let _ = send.send(());
            }
        };
        let job = move |said: &mut dyn FnMut(u64, u64)| {
            said(1, 4);
            receive.recv().map_err(ExperimentError::step)?;
            Ok(7)
        };
        assert_eq!(watched("hashing", &mut observe, job).await.unwrap(), 7);
        assert_eq!(seen, Some(("hashing", 1, 4)));
        let failed = on_thread(|| Err::<(), _>(ExperimentError::step("no room"))).await;
        assert_eq!(failed.unwrap_err().to_string(), "no room");
    }
}
