//! What a connection and each of its subflows have carried: `MPTCP_FULL_INFO` of `linux/mptcp.h`,
//! and `struct tcp_info` of `linux/tcp.h`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;
use std::{io, ptr};

use hawser_kernel::socket::checked;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use thiserror::Error;

use crate::path_manager::Token;

const SOL_MPTCP: i32 = 284;
const MPTCP_INFO: i32 = 1;
const MPTCP_FULL_INFO: i32 = 4;

/// Bytes of `struct mptcp_info`, of `struct mptcp_subflow_info` (a number and two
/// `sockaddr_storage`), and of `struct tcp_info` up to its last field that is used.
const CONNECTION: usize = 96;
const SUBFLOW: usize = 264;
const TCP: usize = 216;

/// Subflows that are read with one system call; more take a second one.
const USUAL: usize = 16;

/// A connection, with all its subflows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// The token at this end.
    pub token: Token,
    /// Further subflows that were counted by the path manager: without the first one.
    pub further_subflows: u8,
    /// Retransmission timeouts of the connection, at which data goes over another subflow.
    pub retransmits: u32,
    /// Payload bytes sent, each once.
    pub bytes_sent: u64,
    /// Payload bytes sent again over another subflow.
    pub bytes_retransmitted: u64,
    /// Payload bytes that the other end has acknowledged.
    pub bytes_acknowledged: u64,
    /// Payload bytes received, each once and in order.
    pub bytes_received: u64,
    /// The subflows that are not closed.
    pub subflows: Vec<Subflow>,
}

/// A subflow: one TCP connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subflow {
    /// A number that no other subflow of the connection has had.
    pub number: u32,
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// The state of the TCP connection.
    pub state: TcpState,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window in segments of [`Self::segment`] bytes.
    pub congestion_window: u32,
    /// Largest payload of a segment that is sent, in bytes.
    pub segment: u32,
    /// Segments sent again since the start.
    pub retransmits: u32,
    /// Segments received, those without payload included, and the first one of the other end.
    pub segments_received: u32,
    /// Payload bytes sent, those sent again included.
    pub bytes_sent: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Payload bytes acknowledged.
    pub bytes_acknowledged: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
}

/// The state of a TCP connection (RFC 9293, section 3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcpState {
    /// SYN sent or received.
    Opening,
    /// Data flows.
    Established,
    /// A FIN was sent or received. The first subflow of a connection stays in this state after it
    /// was destroyed over a dead path, until TCP gives it up.
    Closing,
    /// Closed.
    Closed,
    /// Listening.
    Listening,
}

/// Why a socket gives no information.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InfoError {
    /// A plain TCP connection, for good: the other end, or a device between, does not support MPTCP.
    /// That is known when the connection is established, or with the first data at the latest.
    #[error("the connection is plain TCP, not MPTCP")]
    PlainTcp,
    /// The kernel is older than the interface.
    #[error("the kernel does not report the subflows of a connection: use Linux 6.6 or later")]
    Unsupported,
    /// The kernel's answer is not as `linux/mptcp.h` describes it.
    #[error("the kernel reports an address family of {0} for a subflow")]
    Invalid(u16),
    /// The socket is none, or the kernel failed.
    #[error("cannot read what an MPTCP connection carries: {0}")]
    Socket(#[source] io::Error),
}

/// The head of `struct mptcp_full_info`.
#[repr(C)]
struct FullInfo {
    tcp_kernel: u32,
    tcp_user: u32,
    subflow_kernel: u32,
    subflow_user: u32,
    subflows: u32,
    room: u32,
    subflow_info: u64,
    tcp_info: u64,
    connection: [u8; CONNECTION],
}

impl Subflow {
    /// Whether the other end has accepted the subflow. The end that creates one has it as established a
    /// round trip earlier, with the other end's first segment: only the answer to its own second one tells
    /// (RFC 8684, section 3.2: no data is sent before it). The first segment repeated counts as well: it is
    /// repeated only when the second one takes a second to arrive.
    pub fn is_accepted(&self) -> bool {
        self.state == TcpState::Established && self.segments_received > 1
    }
}

impl Info {
    /// Reads the information of a connection.
    ///
    /// # Errors
    /// [`InfoError`]; [`InfoError::PlainTcp`] for a socket that has fallen back as well.
    pub fn read(socket: impl AsFd) -> Result<Self, InfoError> {
        let socket = socket.as_fd();
        let mut room = USUAL;
        loop {
            let (head, subflows, tcp) = full_info(socket, room).map_err(|error| {
                // Linux before 6.6 has MPTCP_INFO only; plain TCP has neither.
                match token(socket) {
                    Ok(_) if is_no_option(&error) => InfoError::Unsupported,
                    Err(InfoError::PlainTcp) => InfoError::PlainTcp,
                    _ => InfoError::Socket(error),
                }
            })?;
            let count = head.subflows as usize;
            if count > room {
                room = count;
                continue;
            }
            let subflows = subflows.chunks_exact(SUBFLOW).zip(tcp.chunks_exact(TCP));
            let subflows = subflows.take(count).map(|(info, tcp)| subflow(info, tcp));
            let mut subflows = subflows.collect::<Result<Vec<_>, _>>()?;
            // The kernel keeps the first subflow for its own use, after it was closed as well.
            subflows.retain(|subflow| subflow.state != TcpState::Closed);
            return Ok(connection(&head.connection, subflows));
        }
    }
}

/// The token of a connection, by which [`Event`](crate::Event) and
/// [`PathManager`](crate::PathManager) know it. A connection that is not established yet has one
/// since [`connect`](crate::connect).
///
/// # Errors
/// [`InfoError::PlainTcp`], [`InfoError::Socket`].
pub fn token(socket: impl AsFd) -> Result<Token, InfoError> {
    let info: [u8; CONNECTION] = hawser_kernel::socket::option(socket, SOL_MPTCP, MPTCP_INFO)
        .map_err(|error| match is_no_option(&error) {
            true => InfoError::PlainTcp,
            false => InfoError::Socket(error),
        })?;
    Ok(Token(u32_at(&info, 12)))
}

fn is_no_option(error: &io::Error) -> bool {
    let codes = [libc::EOPNOTSUPP, libc::ENOPROTOOPT];
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

/// The head, and the bytes of up to `room` subflows. Fields that an older kernel does not have stay
/// zero.
fn full_info(socket: BorrowedFd<'_>, room: usize) -> io::Result<(FullInfo, Vec<u8>, Vec<u8>)> {
    let (mut subflows, mut tcp) = (vec![0u8; room * SUBFLOW], vec![0u8; room * TCP]);
    let mut head = FullInfo {
        tcp_kernel: 0,
        tcp_user: TCP as u32,
        subflow_kernel: 0,
        subflow_user: SUBFLOW as u32,
        subflows: 0,
        room: room as u32,
        subflow_info: ptr::from_mut(&mut subflows[..]).cast::<u8>() as u64,
        tcp_info: ptr::from_mut(&mut tcp[..]).cast::<u8>() as u64,
        connection: [0; CONNECTION],
    };
    let mut length = size_of::<FullInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `head`, and at most `room` elements of
    // the sizes in `head` into `subflows` and `tcp`, all of which outlive the call.
    checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            SOL_MPTCP,
            MPTCP_FULL_INFO,
            (&raw mut head).cast(),
            &raw mut length,
        )
    })?;
    Ok((head, subflows, tcp))
}

/// Reads `struct mptcp_info`.
fn connection(bytes: &[u8; CONNECTION], subflows: Vec<Subflow>) -> Info {
    Info {
        further_subflows: bytes[0],
        token: Token(u32_at(bytes, 12)),
        retransmits: u32_at(bytes, 44),
        bytes_retransmitted: u64_at(bytes, 48),
        bytes_sent: u64_at(bytes, 56),
        bytes_received: u64_at(bytes, 64),
        bytes_acknowledged: u64_at(bytes, 72),
        subflows,
    }
}

/// Reads `struct mptcp_subflow_info` and `struct tcp_info`.
fn subflow(info: &[u8], tcp: &[u8]) -> Result<Subflow, InfoError> {
    let micros = |offset| Duration::from_micros(u32_at(tcp, offset).into());
    Ok(Subflow {
        number: u32_at(info, 0),
        local: address(&info[8..136])?,
        remote: address(&info[136..264])?,
        // `TCP_ESTABLISHED` and so on in `net/tcp_states.h`.
        state: match tcp[0] {
            1 => TcpState::Established,
            2 | 3 | 12 => TcpState::Opening,
            10 => TcpState::Listening,
            7 => TcpState::Closed,
            _ => TcpState::Closing,
        },
        segment: u32_at(tcp, 16),
        rtt: micros(68),
        congestion_window: u32_at(tcp, 80),
        retransmits: u32_at(tcp, 100),
        bytes_acknowledged: u64_at(tcp, 120),
        bytes_received: u64_at(tcp, 128),
        segments_received: u32_at(tcp, 140),
        bytes_sent: u64_at(tcp, 200),
        bytes_retransmitted: u64_at(tcp, 208),
    })
}

/// Reads a `struct sockaddr_in` or `sockaddr_in6`.
fn address(bytes: &[u8]) -> Result<SocketAddr, InfoError> {
    let family = u16::from_ne_bytes(array(bytes, 0));
    let port = u16::from_be_bytes(array(bytes, 2));
    match i32::from(family) {
        libc::AF_INET => Ok((Ipv4Addr::from(array::<4>(bytes, 4)), port).into()),
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(array::<16>(bytes, 8));
            Ok(SocketAddrV6::new(ip, port, 0, u32_at(bytes, 24)).into())
        }
        _ => Err(InfoError::Invalid(family)),
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(array(bytes, offset))
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_ne_bytes(array(bytes, offset))
}

/// Panics when `bytes` is too short: all callers pass structures of constant size.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}
