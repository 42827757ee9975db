//! Whole connections in namespaces of their own.

use std::net::{TcpListener, TcpStream};
use std::thread;

use rustix::event::PollFlags;

use crate::testing::{Pair, any_port, receive, send, wait, with_addresses};
use crate::{
    Event, Events, Info, InfoError, PathManager, PathManagerError, SocketOptions, TcpState, Token,
    connect, listen, token,
};

/// Bytes of a transfer: many times what the buffers hold.
const TRANSFER: usize = 24 << 20;

#[test]
fn a_subflow_from_another_address_is_established_on_both_ends() {
    with_addresses(|| {
        let mut pair = Pair::connect(&SocketOptions::default());
        let [client, server] = pair.add_subflow(2);
        assert_eq!((client.local, client.remote), (server.remote, server.local));
        assert_eq!(client.local.ip(), any_port(2).ip());
        assert_eq!(client.remote, pair.to);
        assert_eq!((client.ids.local, server.ids.remote), (2, 2));
        for (socket, token) in [
            (&pair.client, pair.client_token),
            (&pair.server, pair.server_token),
        ] {
            let info = Info::read(socket).unwrap();
            assert_eq!(info.token, token);
            assert_eq!(info.subflows.len(), 2, "{info:?}");
            for subflow in &info.subflows {
                assert_eq!(subflow.state, TcpState::Established);
            }
        }
    });
}

#[test]
fn what_each_subflow_carries_adds_up() {
    with_addresses(|| {
        let mut pair = Pair::connect(&SocketOptions::default());
        pair.add_subflow(2);
        let sent = transfer(&pair.client, &pair.server, || {});
        assert_eq!(sent.bytes_sent, TRANSFER as u64 + 1);
        assert_eq!(sent.subflows.len(), 2);
        for subflow in &sent.subflows {
            assert!(subflow.bytes_acknowledged > 0, "{sent:?}");
            assert!(!subflow.rtt.is_zero());
            assert!(subflow.segment > 0 && subflow.congestion_window > 0);
        }
        let received = Info::read(&pair.server).unwrap();
        assert_eq!(received.bytes_received, TRANSFER as u64 + 1);
    });
}

#[test]
fn nothing_is_lost_when_a_subflow_is_destroyed() {
    // The end that destroys: the one that sends, the one that receives; the first subflow, or the
    // second.
    for (by_sender, first) in [(true, false), (false, false), (true, true), (false, true)] {
        with_addresses(|| {
            let mut pair = Pair::connect(&SocketOptions::default());
            let [further, _] = pair.add_subflow(2);
            let local = match first {
                true => pair.client.local_addr().unwrap(),
                false => further.local,
            };
            let (token, from, to) = match by_sender {
                true => (pair.client_token, local, pair.to),
                false => (pair.server_token, pair.to, local),
            };
            transfer(&pair.client, &pair.server, || {
                let mut manager = PathManager::open().unwrap();
                manager.destroy_subflow(token, from, to).unwrap();
            });
            pair.at_both_ends(|event| match event {
                Event::SubflowClosed { subflow, .. } => Some((subflow.token, ())),
                _ => None,
            });
            let info = Info::read(&pair.server).unwrap();
            assert_eq!(info.subflows.len(), 1, "{info:?}");
            pair.exchange();
        });
    }
}

/// Sends [`TRANSFER`] bytes, runs `meanwhile` when a part of them has arrived, checks what arrives,
/// and returns the information of the sender.
fn transfer(from: &TcpStream, to: &TcpStream, meanwhile: impl FnOnce()) -> Info {
    let bytes: Vec<u8> = (0..TRANSFER / 4)
        .flat_map(|i| (i as u32).to_be_bytes())
        .collect();
    thread::scope(|scope| {
        scope.spawn(|| send(from, &bytes));
        let mut received = receive(to, TRANSFER / 4);
        meanwhile();
        received.extend(receive(to, TRANSFER - TRANSFER / 4));
        assert!(received == bytes, "other bytes than were sent");
    });
    Info::read(from).unwrap()
}

#[test]
fn a_connection_lives_without_subflows_until_it_gets_a_new_one() {
    with_addresses(|| {
        let mut pair = Pair::connect(&SocketOptions::default());
        let (token, from) = (pair.client_token, pair.client.local_addr().unwrap());
        pair.manager.destroy_subflow(token, from, pair.to).unwrap();
        pair.at_both_ends(|event| match event {
            Event::SubflowClosed { subflow, .. } => Some((subflow.token, ())),
            _ => None,
        });
        send(&pair.client, b"late");
        let info = Info::read(&pair.client).unwrap();
        assert!(info.subflows.is_empty(), "{info:?}");
        pair.add_subflow(2);
        assert_eq!(receive(&pair.server, 4), b"late");
    });
}

#[test]
fn announced_and_removed_addresses_are_reported_at_the_other_end() {
    with_addresses(|| {
        let mut pair = Pair::connect(&SocketOptions::default());
        let (server, client) = (pair.server_token, pair.client_token);
        pair.manager.announce(server, 5, any_port(5)).unwrap();
        let found = pair.next(|event| match event {
            Event::Announced { token, id, address } => Some((token, id, address)),
            _ => None,
        });
        // Without a port of its own, that of the connection.
        let address = (any_port(5).ip(), pair.to.port()).into();
        assert_eq!(found, (client, 5, address));
        pair.manager.remove(server, 5).unwrap();
        let found = pair.next(|event| match event {
            Event::Removed { token, id } => Some((token, id)),
            _ => None,
        });
        assert_eq!(found, (client, 5));
    });
}

#[test]
fn a_backup_subflow_is_one_at_both_ends() {
    with_addresses(|| {
        let mut pair = Pair::connect(&SocketOptions::default());
        let [client, server] = pair.add_subflow(2);
        assert!(!client.backup && !server.backup);
        let token = pair.client_token;
        for backup in [true, false] {
            pair.manager
                .set_backup(token, client.local, client.remote, backup)
                .unwrap();
            let changed = pair.next(|event| match event {
                Event::SubflowPriority(subflow) => Some(subflow),
                _ => None,
            });
            assert_eq!(changed.token, pair.server_token);
            assert_eq!((changed.remote, changed.backup), (client.local, backup));
        }
    });
}

#[test]
fn dropped_events_are_reported_as_an_overflow() {
    with_addresses(|| {
        let mut events = Events::subscribe().unwrap();
        hawser_kernel::socket::set_receive_buffer(&events, 1).unwrap();
        let options = SocketOptions::default();
        for _ in 0..100 {
            listen(any_port(0), 1, &options).unwrap();
        }
        let mut read = Vec::new();
        while let Some(event) = events.try_next_event().unwrap() {
            read.push(event);
        }
        let overflows = read.iter().filter(|event| **event == Event::Overflow);
        assert_eq!(overflows.count(), 1, "{read:?}");
        assert!(read.len() < 200, "{read:?}");
        // Later ones arrive again.
        let listener = TcpListener::from(listen(any_port(0), 1, &options).unwrap());
        let address = listener.local_addr().unwrap();
        let next = events.try_next_event().unwrap();
        assert_eq!(next, Some(Event::ListenerCreated { address }));
    });
}

#[test]
fn the_refusal_of_a_command_is_clear() {
    with_addresses(|| {
        let mut pair = Pair::connect(&SocketOptions::default());
        let (token, to) = (pair.client_token, pair.to);
        let none = Token(!token.0);
        let manager = &mut pair.manager;
        let error = manager
            .create_subflow(none, 2, any_port(2), to, false)
            .unwrap_err();
        assert!(
            matches!(error, PathManagerError::NoConnection { .. }),
            "{error}"
        );
        let from = (any_port(3).ip(), 1).into();
        let error = manager.destroy_subflow(token, from, to).unwrap_err();
        assert!(
            matches!(error, PathManagerError::NoSubflow { .. }),
            "{error}"
        );
        manager.announce(token, 4, any_port(4)).unwrap();
        let error = manager.announce(token, 4, any_port(5)).unwrap_err();
        assert!(matches!(error, PathManagerError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("announce an address"), "{error}");
    });
}

#[test]
fn plain_tcp_is_told_apart_at_both_ends() {
    with_addresses(|| {
        let options = SocketOptions::default();
        // A client without MPTCP.
        let listener = TcpListener::from(listen(any_port(0), 8, &options).unwrap());
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        wait(&listener, PollFlags::IN);
        let (accepted, _) = listener.accept().unwrap();
        assert!(matches!(Info::read(&accepted), Err(InfoError::PlainTcp)));
        assert!(matches!(token(&client), Err(InfoError::PlainTcp)));
        // A server without MPTCP.
        let listener = TcpListener::bind(any_port(0)).unwrap();
        let to = listener.local_addr().unwrap();
        let client = TcpStream::from(connect(any_port(1), to, &options).unwrap());
        wait(&client, PollFlags::OUT);
        assert!(client.take_error().unwrap().is_none());
        assert!(matches!(Info::read(&client), Err(InfoError::PlainTcp)));
    });
}

#[test]
fn options_reach_later_subflows_and_accepted_sockets() {
    with_addresses(|| {
        let options = SocketOptions::default()
            .with_no_delay()
            .with_congestion("reno")
            .with_mark(3)
            .with_send_buffer(1 << 20)
            .with_receive_buffer(1 << 20)
            .with_keepalive(crate::Keepalive {
                idle: std::time::Duration::from_secs(30),
                interval: std::time::Duration::from_secs(5),
                count: 3,
            });
        let mut pair = Pair::connect(&options);
        pair.add_subflow(2);
        for socket in [&pair.client, &pair.server] {
            use rustix::net::sockopt;
            assert!(sockopt::tcp_nodelay(socket).unwrap());
            assert_eq!(sockopt::tcp_congestion(socket).unwrap(), "reno");
            assert!(sockopt::socket_keepalive(socket).unwrap());
            assert_eq!(sockopt::tcp_keepcnt(socket).unwrap(), 3);
            assert_eq!(sockopt::socket_send_buffer_size(socket).unwrap(), 2 << 20);
        }
        let error = options.with_congestion("hawser").apply(&pair.client);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("TCP_CONGESTION to hawser"), "{text}");
    });
}

#[test]
fn sockets_work_under_tokio() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    with_addresses(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let options = SocketOptions::default();
            let listener = TcpListener::from(listen(any_port(0), 8, &options).unwrap());
            let to = listener.local_addr().unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let client = TcpStream::from(connect(any_port(1), to, &options).unwrap());
            let mut client = tokio::net::TcpStream::from_std(client).unwrap();
            client.writable().await.unwrap();
            assert!(client.take_error().unwrap().is_none());
            let (mut server, from) = listener.accept().await.unwrap();
            assert_eq!(from, client.local_addr().unwrap());
            client.write_all(b"to the server").await.unwrap();
            client.shutdown().await.unwrap();
            let mut text = String::new();
            server.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "to the server");
            assert!(token(&server).is_ok());
        });
    });
}
