//! Namespaces with several addresses, and connections between them, for tests.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{
    Event, Events, PathManager, Settings, SocketOptions, SubflowEvent, Token, connect, listen,
    token,
};

/// The index of `lo`.
const LOOPBACK: u32 = 1;
/// Longest wait for anything, after which a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A new namespace without addresses; `None`, with a message, where that is not allowed.
pub(crate) fn namespace() -> Option<NetNs> {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(NetNs::create().unwrap())
}

/// Runs a test in a new namespace in which [`ip`]`(0)` to [`ip`]`(8)` are addresses of `lo`, with
/// the settings of this crate.
pub(crate) fn with_addresses(test: impl FnOnce() + Send) {
    let Some(namespace) = namespace() else {
        return;
    };
    let run = || {
        let mut up = LinkMessage::default();
        up.header.index = LOOPBACK;
        up.header.flags = LinkFlags::Up;
        up.header.change_mask = LinkFlags::Up;
        let mut netlink = Netlink::open().unwrap();
        netlink
            .request(RouteNetlinkMessage::SetLink(up), 0)
            .unwrap();
        add_local_route();
        for number in 0..=8 {
            add_address(number);
        }
        Settings::default().apply().unwrap();
        test();
    };
    namespace.run(run).unwrap();
}

/// Makes all addresses of these tests local ones. The kernel does the same for each address of a
/// device, but only some time after it was added.
fn add_local_route() {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet6;
    message.header.destination_prefix_length = 64;
    message.header.table = libc::RT_TABLE_LOCAL;
    message.header.kind = RouteType::Local;
    message.header.protocol = RouteProtocol::Static;
    message.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet6(Ipv6Addr::new(
            0xfd00, 0, 0, 0, 0, 0, 0, 0,
        ))),
        RouteAttribute::Oif(LOOPBACK),
    ];
    let request = RouteNetlinkMessage::NewRoute(message);
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    Netlink::open().unwrap().request(request, flags).unwrap();
}

/// Adds an address to `lo`.
fn add_address(number: u16) {
    let mut message = AddressMessage::default();
    let ip = ip(number).into();
    message.header.family = AddressFamily::Inet6;
    message.header.prefix_len = 128;
    message.header.scope = AddressScope::Universe;
    message.header.index = LOOPBACK;
    message.header.flags = AddressHeaderFlags::Nodad;
    message.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
    let request = RouteNetlinkMessage::NewAddress(message);
    let flags = NLM_F_CREATE | NLM_F_EXCL;
    Netlink::open().unwrap().request(request, flags).unwrap();
}

/// Address `number` of `lo`.
pub(crate) fn ip(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number + 1)
}

/// An address whose port the kernel chooses.
pub(crate) fn any_port(number: u16) -> SocketAddr {
    (ip(number), 0).into()
}

/// A connection from address 1 to address 0.
pub(crate) struct Pair {
    pub(crate) client: TcpStream,
    pub(crate) server: TcpStream,
    pub(crate) client_token: Token,
    pub(crate) server_token: Token,
    pub(crate) manager: PathManager,
    pub(crate) events: Events,
    /// The address and port of the server.
    pub(crate) to: SocketAddr,
    _listener: TcpListener,
}

impl Pair {
    /// Connects, and waits until both ends can have further subflows.
    pub(crate) fn connect(options: &SocketOptions) -> Self {
        let events = Events::subscribe().unwrap();
        let listener = TcpListener::from(listen(any_port(0), 8, options).unwrap());
        let address = listener.local_addr().unwrap();
        let client = TcpStream::from(connect(any_port(1), address, options).unwrap());
        wait(&client, PollFlags::OUT);
        let error = client.take_error().unwrap();
        assert!(error.is_none(), "{error:?}");
        wait(&listener, PollFlags::IN);
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut pair = Self {
            client_token: token(&client).unwrap(),
            server_token: token(&server).unwrap(),
            client,
            server,
            manager: PathManager::open().unwrap(),
            events,
            to: address,
            _listener: listener,
        };
        // The server's end is established with the first data of the client.
        pair.exchange();
        pair.at_both_ends(|event| match event {
            Event::Established(connection) => Some((connection.token, connection)),
            _ => None,
        });
        pair
    }

    /// Sends a byte and returns it.
    pub(crate) fn exchange(&self) {
        for (from, to) in [(&self.client, &self.server), (&self.server, &self.client)] {
            send(from, &[7]);
            assert_eq!(receive(to, 1), [7]);
        }
    }

    /// Adds a subflow from address `number` under that id, and waits until both ends have it.
    pub(crate) fn add_subflow(&mut self, number: u8) -> [SubflowEvent; 2] {
        let (token, from, to) = (self.client_token, any_port(number.into()), self.to);
        self.manager
            .create_subflow(token, number, from, to, false)
            .unwrap();
        self.at_both_ends(|event| match event {
            Event::SubflowEstablished(subflow) => Some((subflow.token, subflow)),
            _ => None,
        })
    }

    /// The next event that `read` returns something for; others are dropped.
    pub(crate) fn next<T>(&mut self, read: impl Fn(Event) -> Option<T>) -> T {
        loop {
            match self.events.try_next_event().unwrap() {
                Some(event) => {
                    if let Some(found) = read(event) {
                        return found;
                    }
                }
                None => wait(&self.events, PollFlags::IN),
            }
        }
    }

    /// The next event of a kind at both ends, which `ends` reads.
    pub(crate) fn at_both_ends<T>(&mut self, read: impl Fn(Event) -> Option<(Token, T)>) -> [T; 2] {
        let (mut client, mut server) = (None, None);
        while client.is_none() || server.is_none() {
            let Some(event) = self.events.try_next_event().unwrap() else {
                wait(&self.events, PollFlags::IN);
                continue;
            };
            match read(event) {
                Some((token, value)) if token == self.client_token => client = Some(value),
                Some((token, value)) if token == self.server_token => server = Some(value),
                _ => {}
            }
        }
        [client, server].map(|value| value.expect("both are there"))
    }
}

/// Waits until a descriptor is ready; the test fails when that takes too long.
pub(crate) fn wait(socket: impl AsFd, flags: PollFlags) {
    let timeout = Timespec::try_from(PATIENCE).unwrap();
    let mut polled = [PollFd::new(&socket, flags)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&timeout))).unwrap();
    assert_eq!(ready, 1, "nothing happens");
}

/// Writes all bytes to a non-blocking socket.
pub(crate) fn send(mut to: &TcpStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(to, PollFlags::OUT),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads `count` bytes from a non-blocking socket.
pub(crate) fn receive(mut from: &TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut read = 0;
    while read < count {
        match from.read(&mut bytes[read..]) {
            Ok(0) => panic!("the connection ended after {read} of {count} bytes"),
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(from, PollFlags::IN),
            Err(error) => panic!("{error}"),
        }
    }
    bytes
}
