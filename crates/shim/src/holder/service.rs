//! The holder as a process of its own: a Unix socket by which carriers find it.

use std::io::{self, ErrorKind, Read};
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::time::Duration;

use hawser_kernel::rpc::{self, RpcError, Service};
use hawser_keys::PeerKey;
use hawser_tun::Queue;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::error::HolderError;
use super::fail::FailMode;
use super::parts::{Holder, Queues, lender};
use crate::address::Block;
use crate::attachment::Attachment;
use crate::handover::{HandoverReceiver, HandoverSender};
use crate::link::Link;
use crate::report::HolderReport;

/// The holder, as its users call it.
const SERVICE: Service = Service {
    name: "shim's holder",
    timeout: Duration::from_secs(10),
};

/// A request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    /// Work with this carrier, over the same connection from now on.
    Attach {
        /// Its key.
        key: String,
        /// What else it wants.
        #[serde(default)]
        options: AttachOptions,
    },
    /// What is there to see?
    Report,
    /// End.
    Down,
}

/// What a carrier wants of the holder.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct AttachOptions {
    /// The TCP port of this host at which captured connections arrive; `None` for the one that the
    /// holder has.
    pub redirect_port: Option<u16>,
    /// What becomes of captured destinations once the holder has ended without being taken down.
    pub fail: FailMode,
}

/// The answer to [`Request::Attach`], which comes with a queue of the TUN device for captured packets,
/// the end to which programs' sockets are handed over, and, if there is one, a queue of the TUN
/// device inside the namespace, with the end over which connections are lent.
#[derive(Debug, Serialize, Deserialize)]
struct Attached {
    own: Ipv6Addr,
    tag: u64,
    /// Why there is no queue of the namespace's device.
    no_mptcp: Option<String>,
}

/// Why a carrier cannot work with the holder.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The holder does not answer.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The holder refuses.
    #[error("{0}")]
    Refused(String),
    /// Its answer is not complete.
    #[error("the shim's holder sent an incomplete answer: is it of another version of hawser?")]
    Incomplete,
    /// The connection broke.
    #[error("the connection to the shim's holder broke: {0}")]
    Broken(#[from] io::Error),
}

/// Why the holder was not ended.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DownError {
    /// It does not answer.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// It has ended its work, but not its process.
    #[error("the process of the shim's holder does not end: end it by `kill`")]
    StillRuns,
}

/// Why the holder cannot be found.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The socket cannot be opened.
    #[error("cannot listen at {path}: {source}")]
    Listen {
        /// The socket's file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Serves carriers and requests for reports at `socket` until it is requested to end. Calls `ready`
/// once it can be reached. Returns the connection of the requester, for which [`down`] returns when it
/// is closed: it should stay open until the process has ended.
///
/// # Errors
/// [`ServiceError`] when it cannot listen.
pub async fn run_service(
    holder: &Holder,
    socket: &Path,
    ready: impl FnOnce(),
) -> Result<StdStream, ServiceError> {
    let failed = |source| ServiceError::Listen {
        path: socket.display().to_string(),
        source,
    };
    let (listener, _file) = rpc::listen(socket).map_err(failed)?;
    let listener = UnixListener::from_std(listener).map_err(failed)?;
    ready();
    let (down, mut is_down) = mpsc::channel(1);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (holder, down) = (holder.clone(), down.clone());
                    tokio::spawn(async move {
                        if let Err(error) = serve(&holder, stream, &down).await {
                            tracing::warn!(%error, "a request failed");
                        }
                    });
                }
                Err(error) => crate::relay::wait_after(&error).await,
            },
            Some(requester) = is_down.recv() => return Ok(requester),
        }
    }
}

async fn serve(
    holder: &Holder,
    stream: UnixStream,
    down: &mpsc::Sender<StdStream>,
) -> io::Result<()> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SERVICE.timeout))?;
    let received = tokio::task::spawn_blocking(move || {
        let (request, _): (Request, _) = rpc::receive(&stream)?;
        Ok::<_, io::Error>((request, stream))
    });
    let (request, stream) = received.await.map_err(io::Error::other)??;
    match request {
        Request::Attach { key, options } => {
            holder.0.carriers.vacated().await;
            let holder = holder.clone();
            // Tables of the kernel are changed.
            let runtime = Handle::current();
            let attached = tokio::task::spawn_blocking(move || {
                let _runtime = runtime.enter();
                attach_carrier(&holder, &key, &options, stream)
            });
            attached.await.map_err(io::Error::other)?
        }
        Request::Report => rpc::send(&stream, &holder.report(), &[]),
        Request::Down => {
            // What the caller looks for afterwards is gone.
            holder.release().await;
            rpc::send(&stream, &(), &[])?;
            let _ = down.send(stream).await;
            Ok(())
        }
    }
}

/// Gives a carrier what it needs, and works with it.
fn attach_carrier(
    holder: &Holder,
    key: &str,
    options: &AttachOptions,
    stream: StdStream,
) -> io::Result<()> {
    let refuse = |text: String| rpc::send(&stream, &Err::<Attached, String>(text), &[]);
    let key: PeerKey = match key.parse() {
        Ok(key) => key,
        Err(_) => return refuse("the carrier names no key".to_owned()),
    };
    let prepared = (|| -> Result<_, HolderError> {
        holder.check(key)?;
        let captures = holder.0.carriers.captures();
        let holds = captures.port();
        if let Some(wanted) = options.redirect_port.filter(|port| *port != holds) {
            return Err(HolderError::OtherPort { holds, wanted });
        }
        captures.set_fail(options.fail)?;
        holder.queues()
    })();
    let Queues {
        mptcp,
        captured,
        handover: (sender, receiver),
        lending,
    } = match prepared {
        Ok(queues) => queues,
        Err(error) => return refuse(error.to_string()),
    };
    let (lender, lent) = match lender(lending) {
        Ok(ends) => ends,
        Err(error) => return refuse(format!("cannot lend connections: {error}")),
    };
    let attached = Attached {
        own: holder.own().address(0),
        tag: holder.0.tag,
        no_mptcp: mptcp.as_ref().err().cloned(),
    };
    let mut fds = vec![captured.as_fd(), receiver.as_fd()];
    fds.extend(mptcp.as_ref().ok().map(AsFd::as_fd));
    // A carrier of an earlier version closes it.
    fds.extend(lent.as_ref().map(AsFd::as_fd));
    rpc::send(&stream, &Ok::<_, String>(attached), &fds)?;
    // The carrier's thread must have the only one.
    drop(lent);
    stream.set_nonblocking(true)?;
    let link = Link::new(UnixStream::from_std(stream)?);
    let sender = HandoverSender::new(sender)?;
    let attached = holder.0.carriers.attach(link, sender, lender);
    attached.map_err(io::Error::other)
}

/// Finds the holder at `socket`, and becomes its carrier with `key`. Must be called inside a tokio
/// runtime.
///
/// # Errors
/// [`AttachError`]; [`RpcError::Connect`] when there is no holder.
pub fn attach(
    socket: &Path,
    key: PeerKey,
    options: &AttachOptions,
) -> Result<Attachment, AttachError> {
    let request = Request::Attach {
        key: key.to_string(),
        options: *options,
    };
    let (answer, fds, stream) = SERVICE.converse(socket, &request)?;
    let answer: Result<Attached, String> = answer;
    let Attached { own, tag, no_mptcp } = answer.map_err(AttachError::Refused)?;
    let mut fds = fds.into_iter();
    let mut next = || fds.next().ok_or(AttachError::Incomplete);
    let (captured, handed): (OwnedFd, OwnedFd) = (next()?, next()?);
    let queue = match no_mptcp {
        None => Ok(Queue::from(next()?)),
        Some(reason) => Err(reason),
    };
    // A holder of an earlier version lends nothing.
    let lent = fds.next().filter(|_| queue.is_ok());
    let (own, _) = Block::split(own).ok_or(AttachError::Incomplete)?;
    stream.set_read_timeout(None)?;
    stream.set_nonblocking(true)?;
    Ok(Attachment {
        queue,
        captured: Queue::from(captured),
        handed: HandoverReceiver::new(handed)?,
        lent,
        own,
        tag,
        link: Link::new(UnixStream::from_std(stream)?),
    })
}

/// Asks the holder at `socket` what there is to see.
///
/// # Errors
/// When it does not answer.
pub fn report(socket: &Path) -> Result<HolderReport, RpcError> {
    SERVICE.call(socket, &Request::Report)
}

/// Ends the holder at `socket`, with all connections, and waits until its process has ended.
///
/// # Errors
/// When it does not answer, or does not end.
pub fn down(socket: &Path) -> Result<(), DownError> {
    let ((), _, mut stream) = SERVICE.converse(socket, &Request::Down)?;
    // The holder sends nothing more; the system closes the connection with the process.
    match stream.read_exact(&mut [0]) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Err(DownError::StillRuns)
        }
        _ => Ok(()),
    }
}
