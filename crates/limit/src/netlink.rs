//! One question to the kernel, and its answer.

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// A netlink socket in the network namespace of the thread that opened it.
pub(crate) struct Netlink {
    socket: Socket,
    /// Of the last request; answers carry it.
    sequence: u32,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The socket failed.
    Socket(io::Error),
    /// The kernel said no.
    Refused(io::Error),
    /// The kernel said what cannot be read.
    Unreadable(String),
}

impl Netlink {
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        // Port 0 is the kernel. Connected, the socket takes nothing from anybody else.
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Sends one request and waits until it is done. The answer to a request that changes something
    /// is empty; with `NLM_F_DUMP` it is all there is of a kind.
    pub fn request(
        &mut self,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = NetlinkMessage::from(request);
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(Failure::Socket)?;

        let mut answer = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full().map_err(Failure::Socket)?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| Failure::Unreadable(error.to_string()))?;
                // Messages begin at multiples of 4 bytes.
                let length = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(length.max(4)..).unwrap_or_default();
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::InnerMessage(message) => answer.push(message),
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok(answer),
                    NetlinkPayload::Done(done) if done.code == 0 => return Ok(answer),
                    NetlinkPayload::Error(error) => return Err(Failure::Refused(error.to_io())),
                    other => {
                        return Err(Failure::Unreadable(format!("an unexpected {other:?}")));
                    }
                }
            }
        }
    }
}
