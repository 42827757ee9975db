//! What is copied of a loan, and when it is returned.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::CreateFlags;

use super::*;

/// A connection that is lent: the program's end, the other holder's, and the holder's descriptors of it.
struct World {
    program: TcpStream,
    other: TcpStream,
    local: TcpStream,
    peer: TcpStream,
    pipes: [Pipe; 2],
    holder: OwnedFd,
    epoll: OwnedFd,
    borrowed: Option<Borrowed>,
}

const ID: LoanId = LoanId(5);

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (near, _) = listener.accept().unwrap();
    near.set_nonblocking(true).unwrap();
    (near, far)
}

impl World {
    fn new() -> Self {
        let (holder, carrier) = channel::pair().unwrap();
        let ((local, program), (peer, other)) = (connection(), connection());
        let pipes = [(); 2].map(|()| Pipe::new().unwrap());
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        let mut world = Self {
            program,
            other,
            local,
            peer,
            pipes,
            holder,
            borrowed: Borrowed::new(carrier).receive(&epoll),
            epoll,
        };
        world.send(Message::Lend(ID));
        world
    }

    /// Sends a message, which the carrier takes.
    fn send(&mut self, message: Message) {
        let [out, into] = &self.pipes;
        let files = [
            self.local.as_fd(),
            self.peer.as_fd(),
            out.read.as_fd(),
            out.write.as_fd(),
            into.read.as_fd(),
            into.write.as_fd(),
        ];
        let files = match message {
            Message::Lend(_) => &files[..],
            _ => &[],
        };
        channel::send(&self.holder, message, files).unwrap();
        let borrowed = self.borrowed.take().unwrap();
        self.borrowed = borrowed.receive(&self.epoll);
    }

    /// Waits for events, and has the carrier take them.
    fn turn(&mut self) {
        let mut events = Vec::with_capacity(4);
        epoll::wait(&self.epoll, spare_capacity(&mut events), None).unwrap();
        for event in &events {
            let side = match event.data.u64() {
                about if about == event_of(ID, Side::Local).u64() => Side::Local,
                about if about == event_of(ID, Side::Peer).u64() => Side::Peer,
                about => panic!("event {about}"),
            };
            let borrowed = self.borrowed.take().unwrap();
            self.borrowed = borrowed.copy(&self.epoll, ID, side, event.flags);
        }
    }

    fn received(&self) -> Option<Message> {
        match channel::receive(&self.holder) {
            Ok(message) => message.map(|(message, _)| message),
            Err(error) => panic!("no message: {error}"),
        }
    }

    fn has_nothing(&self) -> bool {
        let error = channel::receive(&self.holder).err();
        error.is_some_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    fn is_watched(&self) -> bool {
        // What is not watched cannot be watched no longer.
        epoll::delete(&self.epoll, &self.local).is_ok()
    }
}

#[test]
fn little_is_copied_either_way_until_the_loan_is_recalled() {
    let mut world = World::new();
    let mut bytes = [0; 7];
    for _ in 0..50 {
        world.program.write_all(b"request").unwrap();
        world.turn();
        world.other.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"request");
        world.other.write_all(b"answers").unwrap();
        world.turn();
        world.program.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"answers");
    }
    assert!(world.has_nothing());
    world.send(Message::Recall(ID));
    assert_eq!(world.received(), Some(Message::Return(ID, 0)));
    // A recall that crosses the return changes nothing.
    world.send(Message::Recall(ID));
    assert!(world.has_nothing() && !world.is_watched());
}

#[test]
fn much_is_returned_to_the_holder_and_none_of_it_lost() {
    let mut world = World::new();
    let sent: Vec<u8> = (0..64u32 << 10).map(|at| at as u8).collect();
    world.program.write_all(&sent).unwrap();
    while world.has_nothing_and_turns() {}
    assert!(!world.is_watched());
    // What follows is the holder's.
    let mut received = vec![0; sent.len()];
    let [out, _] = &world.pipes;
    let mut rest = vec![0; sent.len()];
    let piped = rustix::io::read(&out.read, &mut rest).unwrap_or(0);
    world.peer.set_nonblocking(false).unwrap();
    world.local.set_nonblocking(false).unwrap();
    world.peer.write_all(&rest[..piped]).unwrap();
    world.program.shutdown(Shutdown::Write).unwrap();
    rest.clear();
    world.local.read_to_end(&mut rest).unwrap();
    world.peer.write_all(&rest).unwrap();
    world.other.read_exact(&mut received).unwrap();
    assert_eq!(received, sent);
}

impl World {
    /// Takes events until the loan is returned.
    fn has_nothing_and_turns(&mut self) -> bool {
        match channel::receive(&self.holder) {
            Ok(message) => {
                let message = message.map(|(message, _)| message);
                assert_eq!(message, Some(Message::Return(ID, 0)));
                false
            }
            Err(_) => {
                self.turn();
                true
            }
        }
    }
}

#[test]
fn what_there_is_no_room_for_stays_in_the_pipe() {
    let mut world = World::new();
    // The other holder reads nothing.
    while world.peer.write(&[7; 1 << 16]).is_ok() {}
    world.program.write_all(b"request").unwrap();
    world.turn();
    assert_eq!(world.received(), Some(Message::Return(ID, 0)));
    let mut bytes = [0; 16];
    let [out, _] = &world.pipes;
    assert_eq!(rustix::io::read(&out.read, &mut bytes), Ok(7));
    assert_eq!(&bytes[..7], b"request");
}

#[test]
fn ends_and_errors_are_left_to_the_holder() {
    let mut world = World::new();
    world.program.write_all(b"last").unwrap();
    world.program.shutdown(Shutdown::Write).unwrap();
    while world.has_nothing_and_turns() {}
    let mut bytes = [0; 8];
    let last = world.local.read(&mut bytes).unwrap();
    let piped = last == 0;
    // It was copied if it arrived before the end did.
    assert!(piped || &bytes[..last] == b"last");

    let mut world = World::new();
    let reset = rustix::net::sockopt::set_socket_linger;
    reset(&world.other, Some(std::time::Duration::ZERO)).unwrap();
    drop(std::mem::replace(&mut world.other, connection().1));
    while world.has_nothing_and_turns() {}
    let error = world.peer.read(&mut bytes).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn what_is_reported_and_not_there_is_the_holders_to_wait_for() {
    let mut world = World::new();
    let borrowed = world.borrowed.take().unwrap();
    world.borrowed = borrowed.copy(&world.epoll, ID, Side::Peer, EventFlags::IN);
    assert_eq!(world.received(), Some(Message::Return(ID, 0)));
    assert!(world.borrowed.is_some() && !world.is_watched());
}

#[test]
fn the_end_of_the_channel_comes_after_all_copies() {
    let mut world = World::new();
    rustix::net::shutdown(&world.holder, rustix::net::Shutdown::Write).unwrap();
    let borrowed = world.borrowed.take().unwrap();
    assert!(borrowed.receive(&world.epoll).is_none());
    assert_eq!(world.received(), None);
    assert!(!world.is_watched());
}

#[test]
fn a_holder_that_breaks_the_rules_gets_everything_back() {
    let mut world = World::new();
    world.send(Message::Lend(ID));
    assert!(world.borrowed.is_none());
    assert_eq!(world.received(), None);
    assert!(!world.is_watched());
}
