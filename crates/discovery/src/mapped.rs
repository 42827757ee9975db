//! The port that a gateway maps, which peers beyond it are told.

use std::future::pending;

use tokio::sync::watch;

/// The TCP port on the other side of this network's gateway that leads to this program, while the gateway
/// maps one. Without a gateway there is never one.
#[derive(Debug, Clone, Default)]
pub struct MappedPort(Option<watch::Receiver<Option<u16>>>);

impl MappedPort {
    /// The port at present.
    pub fn now(&self) -> Option<u16> {
        *self.0.as_ref()?.borrow()
    }

    /// The port at present; [`changed`](Self::changed) waits for the next one.
    pub(crate) fn update(&mut self) -> Option<u16> {
        *self.0.as_mut()?.borrow_and_update()
    }

    /// Waits until the port has changed. Cancel safe.
    pub(crate) async fn changed(&mut self) {
        if let Some(port) = &mut self.0
            && port.changed().await.is_ok()
        {
            return;
        }
        // There is none, or nothing changes it any more.
        pending().await
    }
}

impl From<watch::Receiver<Option<u16>>> for MappedPort {
    fn from(port: watch::Receiver<Option<u16>>) -> Self {
        Self(Some(port))
    }
}
