//! Work that blocks.

use tokio::sync::oneshot;

use crate::error::{During, ExperimentError};

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
