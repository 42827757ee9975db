//! Tasks that end with what they work for.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::task::AbortHandle;

/// Tasks that end when nothing of the endpoint is left: neither itself nor a connection.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<Vec<AbortHandle>>);

impl Tasks {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let handle = tokio::spawn(task).abort_handle();
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(handle);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let tasks = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().for_each(AbortHandle::abort);
    }
}
