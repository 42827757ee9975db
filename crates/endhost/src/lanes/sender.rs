//! Sending over lanes.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::{fmt, io};

use super::flow::Flow;
use super::lane::Lane;
use super::shared::{Fault, Shared};
use super::tokens::LastToken;

/// Sends over lanes. Each sending task needs one; it works best with one lane.
pub struct LaneSender {
    shared: Arc<Shared>,
    token: LastToken,
    scratch: Vec<u8>,
}

impl LaneSender {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            token: LastToken::default(),
            scratch: Vec::new(),
        }
    }

    /// Sends `contents` over `lane` in payloads of `segment` bytes, the last possibly shorter, and
    /// waits for room. All payloads of one call must have the same token.
    ///
    /// # Errors
    /// `InvalidInput` when the lane does not take payloads of `segment` bytes. Every other error is
    /// the system's: the lane ends, and the rest is not sent.
    pub async fn send(&mut self, lane: &Lane, contents: &[u8], segment: usize) -> io::Result<()> {
        let most = lane.max_payload();
        if segment == 0 || segment > usize::from(most) {
            let message = format!("payloads of {segment} bytes: the path takes 1 to {most}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut rest = contents;
        while !rest.is_empty() {
            match self.try_send(lane.flow(), rest, segment, 0) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.shared.socket.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Most payloads of `segment` bytes that one call of [`LaneSender::try_send`] sends over `flow`.
    pub fn max_segments(&self, flow: &Flow, segment: usize) -> NonZeroUsize {
        (self.shared.socket).max_segments(&flow.headers(), segment)
    }

    /// Sends the beginning of `contents` over `flow` without waiting, as many payloads of `segment`
    /// bytes (the last maybe shorter) as one call takes. Returns how many bytes are sent.
    ///
    /// # Errors
    /// `WouldBlock` when the socket has no room: wait for
    /// [`Socket::writable`](crate::socket::Socket::writable). Everything else as the system says:
    /// lanes over the flow end, and nothing is sent.
    pub fn try_send(
        &mut self,
        flow: &Arc<Flow>,
        contents: &[u8],
        segment: usize,
        ecn: u8,
    ) -> io::Result<usize> {
        let shared = &self.shared;
        let token = (shared.format.token)(contents);
        self.token.set(&shared.tokens, token, flow);
        let headers = flow.headers();
        let sent = (shared.socket).try_send(&headers, contents, segment, ecn, &mut self.scratch);
        if let Err(error) = &sent
            && error.kind() != io::ErrorKind::WouldBlock
        {
            let (flow, message) = (flow.id, error.to_string());
            let _ = shared.faults.try_send(Fault::Send { flow, message });
        }
        sent
    }
}

impl Drop for LaneSender {
    fn drop(&mut self) {
        self.token.clear(&self.shared.tokens);
    }
}

impl fmt::Debug for LaneSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.socket.fmt(f)
    }
}
