//! The captures of a holder, as its carriers change them.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hawser_tun::Queue;
use ipnet::IpNet;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::capture::{self, Capture};
use super::error::HolderError;
use super::fail::FailMode;

/// The captures. All calls but [`first`](Self::first) may block for as long as the kernel takes to
/// change routes and rules.
pub(super) struct Captures {
    state: Mutex<CapturesState>,
    /// The port that all listeners have; 0 for any.
    port: u16,
    /// The outcome of the first capture, once it is known.
    first: watch::Sender<Option<Result<(), Arc<HolderError>>>>,
}

struct CapturesState {
    /// `None` once the holder ends.
    capture: Option<Capture>,
    /// The port of the listener for other hosts' connections, once there is one.
    forwarded: Option<u16>,
}

impl Captures {
    /// Those of `capture`, whose listeners have this `port`, or any if it is 0.
    pub(super) fn new(capture: Option<Capture>, port: u16) -> Self {
        let forwarded = None;
        Self {
            state: Mutex::new(CapturesState { capture, forwarded }),
            port,
            first: watch::Sender::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, CapturesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The port that all listeners have; 0 for any.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// A copy of the queue of the device for captured packets.
    pub(super) fn queue(&self) -> Result<Queue, HolderError> {
        match &self.state().capture {
            Some(capture) => capture.queue(),
            None => Err(HolderError::Ending),
        }
    }

    /// Sets what is captured. `None` once the holder ends.
    pub(super) fn set(
        &self,
        prefixes: Vec<IpNet>,
        routed: Vec<IpNet>,
        kept: &[IpAddr],
    ) -> Option<Result<(), Arc<HolderError>>> {
        let mut state = self.state();
        let set = state.capture.as_mut()?.set(prefixes, routed, kept);
        drop(state);
        if let Err(error) = &set {
            tracing::error!("{error}");
        }
        let set = set.map_err(Arc::new);
        self.first.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert_with(|| set.clone());
            is_first
        });
        Some(set)
    }

    /// Captures connections of other hosts, or no longer. Returns the listener for them the first time.
    pub(super) fn forward(&self, forwards: bool) -> Result<Option<TcpListener>, HolderError> {
        let mut state = self.state();
        let mut listener = None;
        if forwards && state.forwarded.is_none() {
            let new = capture::listen_for_others(self.port)?;
            let port = new.local_addr().map(|address| address.port());
            let port = port.map_err(HolderError::system("listen for other hosts' connections"))?;
            state.forwarded = Some(port);
            listener = Some(new);
        }
        let port = state.forwarded.filter(|_| forwards);
        if let Some(capture) = &mut state.capture {
            capture.forward(port)?;
        }
        Ok(listener)
    }

    /// Sets what becomes of what is captured once this process has ended.
    pub(super) fn set_fail(&self, mode: FailMode) -> Result<(), HolderError> {
        match &mut self.state().capture {
            Some(capture) => capture.set_fail(mode),
            None => Ok(()),
        }
    }

    /// Ends all captures in order.
    pub(super) fn release(&self) {
        if let Some(capture) = self.state().capture.take() {
            capture.release();
        }
    }

    /// Waits until what is mapped is captured for the first time.
    pub(super) async fn first(&self) -> Result<(), Arc<HolderError>> {
        let mut first = self.first.subscribe();
        match first.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            _ => Err(Arc::new(HolderError::Ending)),
        }
    }
}
