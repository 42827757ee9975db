//! What the carrier and the holder of one host say to each other: JSON values, one per line, over a
//! Unix socket.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use crate::address::Slot;
pub use crate::protocol::Role;
use crate::served::Served;

/// From the carrier to the holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToHolder {
    /// The slots of a session that its subflows may use, from now on.
    Slots {
        /// The peer's serving address, which names the session together with the role.
        peer: Ipv6Addr,
        /// This host's side.
        role: Role,
        /// The slots.
        live: Vec<Slot>,
        /// The other host, for messages.
        #[serde(default)]
        name: String,
    },
    /// Connections of programs to these prefixes go over SCION, from now on.
    Capture {
        /// The prefixes.
        prefixes: Vec<IpNet>,
        /// Prefixes whose other packets go over SCION as well.
        routed: Vec<IpNet>,
    },
    /// Whether the connections of other hosts, which this one forwards, are captured as well, from
    /// now on.
    Forward(bool),
    /// What other hosts may connect to, from now on.
    Serve(Served),
    /// The MTU, in bytes, with which the kernel's segments fill the datagrams of the path that takes
    /// the largest.
    Mtu(u32),
    /// The answer to [`ToCarrier::Connect`].
    Connected {
        /// Its number.
        id: u64,
        /// Where to connect to.
        found: Found,
    },
    /// A connection has ended that the carrier had.
    StreamEnded {
        /// Whether it was set up before.
        was_set_up: bool,
        /// Why, unless that was in order.
        failure: Option<String>,
    },
    /// A session has ended; its connections cannot continue.
    Ended {
        /// The peer's serving address.
        peer: Ipv6Addr,
        /// This host's side.
        role: Role,
        /// Why.
        reason: String,
        /// Whether connections end though there is still something to be delivered here.
        #[serde(default)]
        at_once: bool,
    },
}

/// Where a program's connection goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// To the host with this serving address.
    Peer(Ipv6Addr),
    /// To the carrier, which takes the program's socket.
    Stream,
    /// Not over SCION, but straight to its destination: other ports of the address are mapped.
    Direct,
    /// Nowhere, for this reason.
    Failed(String),
}

/// From the holder to the carrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToCarrier {
    /// A program connects: is there a session with the host behind this address?
    Connect {
        /// A number of the holder's, which the answer repeats.
        id: u64,
        /// What the program connects to.
        destination: SocketAddr,
    },
    /// [`ToHolder::Capture`] was done, or why it was not.
    Captured(Result<(), String>),
    /// The shim is taken down: end.
    Down,
    /// The other hosts to which programs of this one have connections by MPTCP; every half minute.
    InUse(Vec<Ipv6Addr>),
}

/// One end of the connection: sends `S`, receives `R`.
///
/// Both queues are bounded by what they are about: one message for each connection that begins or ends,
/// of which there is a limit at once, and for each change of a lane; else a few at intervals.
#[derive(Debug)]
pub struct Link<S, R> {
    sender: mpsc::UnboundedSender<S>,
    receiver: mpsc::UnboundedReceiver<R>,
}

impl<S, R> Link<S, R>
where
    S: Serialize + Send + 'static,
    R: DeserializeOwned + Send + 'static,
{
    /// Works `stream` until it ends. Must be called inside a tokio runtime.
    pub fn new(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        let (sender, queue) = mpsc::unbounded_channel();
        let (received, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            if let Err(error) = write_all(write, queue).await {
                tracing::debug!(%error, "the other process of the shim has ended");
            }
        });
        tokio::spawn(async move {
            if let Err(error) = read_all(read, &received).await {
                tracing::warn!(%error, "the other process of the shim sent an invalid line");
            }
        });
        Self { sender, receiver }
    }

    /// A sender to the other end. What is sent after the end of the connection is lost.
    pub fn sender(&self) -> mpsc::UnboundedSender<S> {
        self.sender.clone()
    }

    /// The next message; `None` when the other end has ended.
    pub async fn receive(&mut self) -> Option<R> {
        self.receiver.recv().await
    }
}

async fn write_all<S: Serialize>(
    mut write: OwnedWriteHalf,
    mut queue: mpsc::UnboundedReceiver<S>,
) -> io::Result<()> {
    while let Some(message) = queue.recv().await {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        write.write_all(&line).await?;
    }
    Ok(())
}

async fn read_all<R: DeserializeOwned>(
    read: OwnedReadHalf,
    received: &mpsc::UnboundedSender<R>,
) -> io::Result<()> {
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await? {
        if received.send(serde_json::from_str(&line)?).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_arrive_until_the_other_end_is_gone() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut holder: Link<ToCarrier, ToHolder> = Link::new(here);
        let carrier: Link<ToHolder, ToCarrier> = Link::new(there);
        let peer = "fd00::".parse().unwrap();
        let sent = [
            ToHolder::Slots {
                peer,
                role: Role::Client,
                live: vec![1, 3],
                name: "1-ff00:0:4,10.0.0.1".into(),
            },
            ToHolder::Connected {
                id: 7,
                found: Found::Failed("no path".into()),
            },
        ];
        for message in &sent {
            carrier.sender().send(message.clone()).unwrap();
        }
        for message in sent {
            assert_eq!(holder.receive().await, Some(message));
        }
        drop(carrier);
        assert_eq!(holder.receive().await, None);
    }
}
