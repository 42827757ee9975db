//! The task that accepts connections.

use std::sync::OnceLock;

use tokio::task::AbortHandle;

/// The task that accepts connections of one endpoint. It ends when nothing of the endpoint is left:
/// neither itself nor a connection.
#[derive(Default)]
pub(crate) struct AcceptTask(OnceLock<AbortHandle>);

impl AcceptTask {
    /// Starts the task. Called once.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.get_or_init(|| tokio::spawn(task).abort_handle());
    }
}

impl Drop for AcceptTask {
    fn drop(&mut self) {
        if let Some(task) = self.0.get() {
            task.abort();
        }
    }
}
