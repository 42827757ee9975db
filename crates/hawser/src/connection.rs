//! A connection to one peer over several paths, as guests use it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hawser_endhost::patience::wait;
use hawser_keys::PeerKey;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::addr::{Addr, addr};
use crate::datagrams::Datagrams;
use crate::error::CloseError;
use crate::events::PathEvents;
use crate::policy::Policy;
use crate::session::{Session, User};
use crate::stats::PathStats;

/// How long closing waits at most until the peer was informed over all paths.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection to one peer over several paths: a reliable, ordered stream of bytes in each direction, and
/// [`datagrams`](Self::datagrams).
///
/// It implements tokio's `AsyncRead` and `AsyncWrite`. Writing waits for room: up to 256 KiB wait to be
/// sent, and up to 16 MiB, as the paths carry and the peer reads, are under way. Flushing does nothing, as
/// everything is sent as soon as a path has room for it. Shutting down ends this side's direction.
///
/// Errors of reading and writing are of the kind `ConnectionReset` when the peer has closed or dropped the
/// connection, `TimedOut` when no path has worked for [`MAX_OUTAGE`](crate::MAX_OUTAGE),
/// `ConnectionAborted` when the peer was restarted or offends against the protocol, `NotConnected` when it
/// was closed here, and `BrokenPipe` for writing behind the end. What had arrived up to the peer's end
/// can be read nevertheless.
///
/// Cloning shares it. When the last clone, half and [`Datagrams`] are gone without
/// [`close`](Self::close), the connection ends at once, and what the peer has not received is lost.
///
/// ```no_run
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # async fn example(mut connection: hawser::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// connection.write_all(b"all of this").await?;
/// connection.shutdown().await?;
/// let mut answer = Vec::new();
/// connection.read_to_end(&mut answer).await?;
/// connection.close().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Connection(Arc<User>);

impl Connection {
    pub(crate) fn new(session: Session) -> Self {
        Self(Arc::new(User::new(session)))
    }

    fn session(&self) -> &Session {
        self.0.session()
    }

    /// The peer's address: the server's, or the one from which the client's first path came.
    ///
    /// ```no_run
    /// # fn example(connection: hawser::Connection) {
    /// println!("{}", connection.peer_addr());
    /// # }
    /// ```
    pub fn peer_addr(&self) -> Addr {
        addr(self.session().peer())
    }

    /// The key that the peer holds, the same over all paths.
    ///
    /// ```no_run
    /// # fn example(connection: hawser::Connection) {
    /// println!("{}", connection.peer_key());
    /// # }
    /// ```
    pub fn peer_key(&self) -> PeerKey {
        self.session().key()
    }

    /// The two directions, to be used by two tasks.
    ///
    /// ```no_run
    /// # async fn example(connection: hawser::Connection) -> std::io::Result<()> {
    /// let (mut read, mut write) = connection.split();
    /// tokio::io::copy(&mut read, &mut write).await?;
    /// # Ok(()) }
    /// ```
    pub fn split(self) -> (ReadHalf, WriteHalf) {
        (ReadHalf(self.clone()), WriteHalf(self))
    }

    /// Unreliable messages over the same paths.
    ///
    /// ```no_run
    /// # fn example(connection: hawser::Connection) -> Result<(), hawser::SendError> {
    /// connection.datagrams().send(b"ping")?;
    /// # Ok(()) }
    /// ```
    pub fn datagrams(&self) -> Datagrams {
        Datagrams::new(Arc::clone(&self.0))
    }

    /// What happens to the paths from now on. Those in use come first, as added.
    ///
    /// ```no_run
    /// # async fn example(connection: hawser::Connection) {
    /// let mut events = connection.events();
    /// let first = events.next().await;
    /// # }
    /// ```
    pub fn events(&self) -> PathEvents {
        let (first, later) = self.session().subscribe();
        PathEvents::new(self.session().clone(), first, later)
    }

    /// What each path in use carries.
    ///
    /// ```no_run
    /// # fn example(connection: hawser::Connection) {
    /// println!("{} paths", connection.stats().len());
    /// # }
    /// ```
    pub fn stats(&self) -> Vec<PathStats> {
        self.session().stats()
    }

    /// Uses only paths that `policy` allows from now on, all for `None`. Paths that are not allowed any
    /// more are closed at once, and others take their place; what was under way over them is sent again.
    /// If the policy allows none, the connection ends after [`MAX_OUTAGE`](crate::MAX_OUTAGE).
    ///
    /// The client chooses the paths: on the side that accepted the connection this has no effect.
    /// Returns whether it has.
    ///
    /// ```no_run
    /// # fn example(connection: hawser::Connection) -> Result<(), hawser::PolicyError> {
    /// connection.set_policy(Some(hawser::Policy::any().with_acl("- 1-ff00:0:112; +")?));
    /// # Ok(()) }
    /// ```
    pub fn set_policy(&self, policy: Option<Policy>) -> bool {
        // Only the task of a client listens.
        self.session().policy().send(policy).is_ok()
    }

    /// Ends this side's direction, waits until the peer has received everything that was written, and
    /// closes the connection. Other clones and halves cannot be used afterwards; what the peer has sent
    /// and was not read is lost.
    ///
    /// It waits as long as a path works and the peer, by reading, makes room. Cancelling it leaves the
    /// direction ended and the connection open.
    ///
    /// ```no_run
    /// # async fn example(connection: hawser::Connection) -> Result<(), hawser::CloseError> {
    /// connection.close().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`CloseError`] when the connection has ended before everything was received.
    pub async fn close(&self) -> Result<(), CloseError> {
        let session = self.session();
        session.finish();
        let closed = poll_fn(|cx| session.poll_close(cx)).await;
        let drained = poll_fn(|cx| session.poll_drained(cx));
        // The paths that are left end by themselves.
        let _ = wait(CLOSE_TIMEOUT, drained).await;
        closed
    }

    fn poll_read_to(&self, cx: &Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let read = self.session().poll_read(cx, buf.remaining());
        read.map_ok(|bytes| buf.put_slice(&bytes))
    }
}

/// The reading half of a [`Connection`]; implements `AsyncRead`.
///
/// ```no_run
/// # use tokio::io::AsyncReadExt;
/// # async fn example(mut half: hawser::ReadHalf) -> std::io::Result<()> {
/// let mut bytes = [0; 16];
/// half.read_exact(&mut bytes).await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ReadHalf(Connection);

/// The writing half of a [`Connection`]; implements `AsyncWrite`. Dropping it does not end the direction:
/// shut it down for that.
///
/// ```no_run
/// # use tokio::io::AsyncWriteExt;
/// # async fn example(mut half: hawser::WriteHalf) -> std::io::Result<()> {
/// half.write_all(b"the end").await?;
/// half.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct WriteHalf(Connection);

impl ReadHalf {
    /// The connection.
    ///
    /// ```no_run
    /// # fn example(half: hawser::ReadHalf) {
    /// println!("{}", half.connection().peer_addr());
    /// # }
    /// ```
    pub fn connection(&self) -> &Connection {
        &self.0
    }
}

impl WriteHalf {
    /// The connection.
    ///
    /// ```no_run
    /// # async fn example(half: hawser::WriteHalf) -> Result<(), hawser::CloseError> {
    /// half.connection().close().await?;
    /// # Ok(()) }
    /// ```
    pub fn connection(&self) -> &Connection {
        &self.0
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_read_to(cx, buf)
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read_to(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.session().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session().finish();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
