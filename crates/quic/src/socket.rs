//! Adapts the lanes of a socket to QUIC's socket trait.

use std::io::{self, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hawser_endhost::lanes::{Flow, FlowId, LaneReceiver, LaneSender, Lanes};
use noq::udp::{EcnCodepoint, RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};

/// QUIC distinguishes peers by IP address and port. Here every flow, a pair of peer and path, has
/// the address `fd00:5c10::N`, which exists only inside this process: `N` is the flow's number.
const PREFIX: u128 = 0xfd00_5c10 << 96;
/// The port has no meaning.
const PORT: u16 = 4242;
/// The kernel cuts one buffer into at most this many packets.
const MAX_SEGMENTS: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// The address of a flow.
#[inline]
pub(crate) fn address_of(flow: FlowId) -> SocketAddr {
    let ip = Ipv6Addr::from(PREFIX | u128::from(flow.0));
    (ip, PORT).into()
}

/// The flow with this address; `None` if the address is not that of a flow.
#[inline]
pub(crate) fn flow_at(addr: SocketAddr) -> Option<FlowId> {
    let SocketAddr::V6(addr) = addr else {
        return None;
    };
    let bits = u128::from(*addr.ip());
    let id = bits as u64;
    (bits == PREFIX | u128::from(id)).then_some(FlowId(id))
}

/// The receiving side, owned by QUIC's endpoint task.
#[derive(Debug)]
pub(crate) struct QuicSocket {
    lanes: Lanes,
    receiver: LaneReceiver,
    groups: Vec<Group>,
}

/// A sending side; each connection has one.
#[derive(Debug)]
struct QuicSender {
    lanes: Lanes,
    sender: LaneSender,
    /// The flow used last, and its address: a connection uses only one.
    flow: Option<(SocketAddr, Arc<Flow>)>,
}

impl QuicSocket {
    pub(crate) fn new(lanes: Lanes, receiver: LaneReceiver) -> Self {
        Self {
            lanes,
            receiver,
            groups: Vec::new(),
        }
    }
}

/// Datagrams of one flow and size, being collected in one of QUIC's buffers.
#[derive(Debug)]
struct Group {
    flow: FlowId,
    ecn: u8,
    stride: usize,
    len: usize,
    /// No datagram fits any more: only the last may have another size.
    complete: bool,
}

impl Group {
    #[inline]
    fn takes(&self, ecn: u8, len: usize, room: usize) -> bool {
        self.ecn == ecn && !self.complete && len <= self.stride && self.len + len <= room
    }
}

impl AsyncUdpSocket for QuicSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(QuicSender {
            lanes: self.lanes.clone(),
            sender: self.lanes.sender(),
            flow: None,
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            let groups = self.collect(bufs, meta);
            if groups > 0 {
                return Poll::Ready(Ok(groups));
            }
            ready!(self.receiver.poll_receive(cx))?;
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        // No flow has the number 0.
        Ok(address_of(FlowId(0)))
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

impl QuicSocket {
    /// Sorts what was received into QUIC's buffers, one group of datagrams each. Returns how many
    /// buffers are used; 0 when nothing is left.
    fn collect(&mut self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let Self {
            receiver, groups, ..
        } = self;
        groups.clear();
        let mut batch = receiver.batch();
        while let Some(datagram) = batch.next() {
            let (flow, ecn, len) = (datagram.flow, datagram.ecn, datagram.payload.len());
            let of_flow = groups.iter().rposition(|group| group.flow == flow);
            let open = of_flow.filter(|at| groups[*at].takes(ecn, len, bufs[*at].len()));
            let at = match open {
                Some(at) => at,
                None if len == 0 => continue,
                None if groups.len() == bufs.len().min(meta.len()) => {
                    batch.put_back();
                    break;
                }
                None if len > bufs[groups.len()].len() => continue,
                None => {
                    groups.push(Group {
                        flow,
                        ecn,
                        stride: len,
                        len: 0,
                        complete: false,
                    });
                    groups.len() - 1
                }
            };
            let group = &mut groups[at];
            bufs[at][group.len..group.len + len].copy_from_slice(datagram.payload);
            group.len += len;
            group.complete |= len < group.stride;
        }
        for (group, meta) in groups.iter().zip(meta) {
            *meta = RecvMeta::default();
            meta.addr = address_of(group.flow);
            meta.len = group.len;
            meta.stride = group.stride;
            meta.ecn = EcnCodepoint::from_bits(group.ecn);
        }
        groups.len()
    }
}

impl UdpSender for QuicSender {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let contents = transmit.contents;
        let segment = transmit.segment_size.unwrap_or(contents.len());
        let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
        if let Some(flow) = find(&this.lanes, &mut this.flow, transmit.destination) {
            // Datagrams that the system does not take are lost, as packets may be. Connections over
            // the flow end with the reason.
            let _ = ready!(this.sender.poll_send(cx, flow, contents, segment, ecn));
        }
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        // The sender splits what exceeds one system call.
        MAX_SEGMENTS
    }
}

/// The flow with the address `addr`; `None` when it was removed because no lane uses it.
#[inline]
fn find<'a>(
    lanes: &Lanes,
    last: &'a mut Option<(SocketAddr, Arc<Flow>)>,
    addr: SocketAddr,
) -> Option<&'a Arc<Flow>> {
    if last.as_ref().is_none_or(|(known, _)| *known != addr) {
        *last = Some((addr, lanes.flow(flow_at(addr)?)?));
    }
    last.as_ref().map(|(_, flow)| flow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_map_to_flows() {
        for id in [1, 7, u64::MAX] {
            assert_eq!(flow_at(address_of(FlowId(id))), Some(FlowId(id)));
        }
        assert_ne!(address_of(FlowId(1)), address_of(FlowId(2)));
        assert_eq!(flow_at("[::1]:4242".parse().unwrap()), None);
        assert_eq!(flow_at("10.0.0.1:4242".parse().unwrap()), None);
    }
}
