//! A forwarder that looks at nothing, to compare with: batches in (GRO), batches out (GSO).

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};

use noq_udp::{RecvMeta, Transmit, UdpSocketState};

/// Size of the socket buffers in bytes, as the router's.
const BUFFER: usize = 8 << 20;

/// Sends what arrives at the first address by the second to the third, until the process is killed.
pub fn forward([from, by, to]: [SocketAddr; 3]) {
    let socket = UdpSocket::bind(from).unwrap();
    let second = match by == from {
        true => socket.try_clone().unwrap(),
        false => UdpSocket::bind(by).unwrap(),
    };
    let state = UdpSocketState::new((&socket).into()).unwrap();
    let second_state = UdpSocketState::new((&second).into()).unwrap();
    state
        .set_recv_buffer_size((&socket).into(), BUFFER)
        .unwrap();
    second_state
        .set_send_buffer_size((&second).into(), BUFFER)
        .unwrap();
    socket.set_nonblocking(false).unwrap();
    let mut buffer = vec![0; 1 << 16];
    let mut meta = [RecvMeta::default()];
    loop {
        let slices = &mut [IoSliceMut::new(&mut buffer)];
        if state.recv((&socket).into(), slices, &mut meta).is_ok() {
            let transmit = Transmit {
                destination: to,
                ecn: None,
                contents: &buffer[..meta[0].len],
                segment_size: Some(meta[0].stride),
                src_ip: None,
            };
            // A full buffer drops packets, as at a router.
            let _ = second_state.try_send((&second).into(), &transmit);
        }
    }
}
