//! Packets for tests, written field by field (SCION header specification), and SCMP messages read.

use std::net::{IpAddr, SocketAddr};

use hawser_packet::header::Header;
use hawser_packet::number::next_header;
use hawser_packet::{Body, Checksum, Host, Packet, Scmp, ScmpError};
use hawser_topology::IsdAsn;

use super::{DST_PORT, SRC_PORT, addr};

/// A host or a service of an AS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestAddr {
    pub isd_as: IsdAsn,
    pub host: Host,
}

impl TestAddr {
    pub fn new(isd_as: IsdAsn, host: impl Into<IpAddr>) -> Self {
        let host = Host::Ip(host.into());
        Self { isd_as, host }
    }

    /// The service with this number.
    pub fn service(isd_as: IsdAsn, number: u16) -> Self {
        let host = Host::Service(number);
        Self { isd_as, host }
    }

    /// Type and bytes of the host.
    fn bytes(self) -> (u8, Vec<u8>) {
        match self.host {
            Host::Ip(IpAddr::V4(ip)) => (0b0000, ip.octets().to_vec()),
            Host::Ip(IpAddr::V6(ip)) => (0b0011, ip.octets().to_vec()),
            Host::Service(number) => (0b0100, [number.to_be_bytes(), [0; 2]].concat()),
        }
    }
}

/// A packet with the path header `path`, empty within an AS, and the message `upper` of protocol
/// `next_header`, whose checksum at `checksum_at` this computes.
fn packet(
    (src, dst): (TestAddr, TestAddr),
    path: &[u8],
    next_header: u8,
    upper: &[u8],
    checksum_at: usize,
) -> Vec<u8> {
    let ((src_kind, src_host), (dst_kind, dst_host)) = (src.bytes(), dst.bytes());
    let addresses = [
        &dst.isd_as.to_be_bytes()[..],
        &src.isd_as.to_be_bytes(),
        &dst_host,
        &src_host,
    ];
    let addresses = addresses.concat();
    let header_len = 12 + addresses.len() + path.len();
    let payload_len = upper.len() as u16;
    let mut packet = vec![0, 0, 0, 1, next_header, (header_len / 4) as u8];
    packet.extend(payload_len.to_be_bytes());
    packet.extend([u8::from(!path.is_empty()), dst_kind << 4 | src_kind, 0, 0]);
    packet.extend_from_slice(&addresses);
    packet.extend_from_slice(path);
    packet.extend_from_slice(upper);
    let sum = Checksum::default()
        .add_bytes(&addresses)
        .add_upper(payload_len, next_header)
        .add_bytes(upper);
    let checksum_at = header_len + checksum_at;
    packet[checksum_at..checksum_at + 2].copy_from_slice(&sum.finish());
    packet
}

pub fn udp(src: u16, dst: u16, path: impl Into<Vec<u8>>, payload: usize) -> Vec<u8> {
    udp_between(addr(src), addr(dst), DST_PORT, path, payload)
}

pub fn udp_between(
    src: TestAddr,
    dst: TestAddr,
    port: u16,
    path: impl Into<Vec<u8>>,
    payload: usize,
) -> Vec<u8> {
    let mut message = [SRC_PORT, port, (8 + payload) as u16, 0]
        .map(u16::to_be_bytes)
        .concat();
    message.resize(8 + payload, 0x5a);
    packet((src, dst), &path.into(), next_header::UDP, &message, 6)
}

/// A packet with the SCMP `message`, whose checksum this computes.
pub fn scmp_between(
    src: TestAddr,
    dst: TestAddr,
    path: impl Into<Vec<u8>>,
    message: &[u8],
) -> Vec<u8> {
    packet((src, dst), &path.into(), next_header::SCMP, message, 2)
}

pub fn scmp(src: u16, dst: TestAddr, path: impl Into<Vec<u8>>, message: &[u8]) -> Vec<u8> {
    scmp_between(addr(src), dst, path, message)
}

/// An SCMP error, without checksum, about the packet `quoted`, which may be truncated or any bytes.
pub fn error_about(error: ScmpError, quoted: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    error.write(&mut message);
    message.extend_from_slice(quoted);
    message
}

/// An echo request or its reply.
pub fn echo(reply: bool, id: u16, sequence: u16, data: &[u8]) -> Scmp<'_> {
    let body = Body::Echo(data);
    Scmp::Query {
        reply,
        id,
        sequence,
        body,
    }
}

/// A traceroute request.
pub fn traceroute(id: u16, sequence: u16) -> Scmp<'static> {
    trace(false, id, sequence, IsdAsn::WILDCARD, 0)
}

/// The reply of a router to a traceroute request.
pub fn traceroute_reply(id: u16, sequence: u16, isd_as: IsdAsn, interface: u16) -> Scmp<'static> {
    trace(true, id, sequence, isd_as, interface)
}

fn trace(reply: bool, id: u16, sequence: u16, isd_as: IsdAsn, interface: u16) -> Scmp<'static> {
    let body = Body::Traceroute { isd_as, interface };
    Scmp::Query {
        reply,
        id,
        sequence,
        body,
    }
}

/// A packet with an SCMP message.
pub struct ScmpPacket {
    pub bytes: Vec<u8>,
    pub src: TestAddr,
    pub dst: TestAddr,
}

impl ScmpPacket {
    /// Reads a packet of which every byte of the headers must be as written here, and whose checksum
    /// must be correct.
    pub fn parse(bytes: &[u8]) -> Self {
        let header = Header::parse(bytes).unwrap();
        let addr = |isd_as, host: Result<Host, _>| TestAddr {
            isd_as,
            host: host.unwrap(),
        };
        let packet = Self {
            bytes: bytes.to_vec(),
            src: addr(header.src_as, header.src_host(bytes)),
            dst: addr(header.dst_as, header.dst_host(bytes)),
        };
        let path = &bytes[header.path..header.len];
        let mut message = packet.message().to_vec();
        message[2..4].fill(0);
        let mut written = scmp_between(packet.src, packet.dst, path, &message);
        // Traffic class and flow label are the writer's choice.
        written[..4].copy_from_slice(&bytes[..4]);
        assert_eq!(bytes[0] >> 4, 0, "the version");
        assert_eq!(written, bytes);
        packet
    }

    fn message(&self) -> &[u8] {
        &self.bytes[usize::from(self.bytes[5]) * 4..]
    }

    /// The message.
    pub fn scmp(&self) -> Scmp<'_> {
        Scmp::parse(&Packet::parse(&self.bytes).unwrap()).unwrap()
    }

    /// The error, and the packet that it quotes.
    pub fn error(&self) -> (ScmpError, &[u8]) {
        let Scmp::Error { error, .. } = self.scmp() else {
            panic!("{:?} is no error", self.scmp())
        };
        let quote = hawser_packet::scmp::quote_at(self.message()[0]).unwrap();
        (error, &self.message()[quote..])
    }
}

/// The path header with which a host answers the packet that it received.
pub fn reversed_path(received: &[u8]) -> Vec<u8> {
    Packet::parse(received).unwrap().reversed_path().unwrap()
}

/// Underlay address of a host of AS `number`.
pub fn at(number: u16, port: u16) -> SocketAddr {
    SocketAddr::new(super::host(number).into(), port)
}
