//! Sending over lanes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{fmt, io};

use super::flow::Flow;
use super::lane::Lane;
use super::shared::{Fault, Shared};
use super::tokens::LastToken;

/// Sends over lanes. Each sending task needs one; it works best with one lane.
pub struct LaneSender {
    shared: Arc<Shared>,
    token: LastToken,
    /// Bytes of the current contents that are already sent.
    sent: usize,
    scratch: Vec<u8>,
    writable: Option<Writable>,
}

type Writable = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

impl LaneSender {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            token: LastToken::default(),
            sent: 0,
            scratch: Vec::new(),
            writable: None,
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
        self.sent = 0;
        poll_fn(|cx| self.poll_send(cx, lane.flow(), contents, segment, 0)).await
    }

    /// Sends `contents` over `flow` in payloads of `segment` bytes, the last possibly shorter, with
    /// the congestion mark `ecn` (two bits). While it is pending it must be called again with the
    /// same `contents`.
    ///
    /// # Errors
    /// The system's error: lanes over the flow end, and the rest is not sent.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        flow: &Arc<Flow>,
        contents: &[u8],
        segment: usize,
        ecn: u8,
    ) -> Poll<io::Result<()>> {
        let Self { shared, token, .. } = self;
        if self.sent == 0 {
            token.set(&shared.tokens, (shared.format.token)(contents), flow);
        }
        let mut result = Ok(());
        while self.sent < contents.len() {
            let rest = &contents[self.sent..];
            let headers = flow.headers();
            let scratch = &mut self.scratch;
            match (self.shared.socket).try_send(&headers, rest, segment, ecn, scratch) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.poll_writable(cx))?;
                }
                Err(error) => {
                    let (flow, message) = (flow.id, error.to_string());
                    let _ = self.shared.faults.try_send(Fault::Send { flow, message });
                    result = Err(error);
                    break;
                }
            }
        }
        self.sent = 0;
        Poll::Ready(result)
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

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &self.shared;
        let writable = self.writable.get_or_insert_with(|| {
            let shared = Arc::clone(shared);
            Box::pin(async move { shared.socket.writable().await })
        });
        let result = ready!(writable.as_mut().poll(cx));
        self.writable = None;
        Poll::Ready(result)
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
