//! A connection between a program and the other holder, copied by this process and by carriers that copy in
//! single steps, return loans and are killed, all at random moments.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::holder::carrier::tests::{alone, set_lender};
use crate::holder::lender::Lender;
use crate::holder::relays::New;
use crate::lending::channel::{self, Lent};
use crate::lending::{Borrowings, LoanId, MAX_LOANS, Message};
use crate::protocol::Role;

/// Connections that are copied, one after the other.
const CONNECTIONS: u64 = 12;
/// Bytes of each direction.
const LENGTH: usize = 200_000;
/// The largest part that is written at once: more than a loan may carry.
const MAX_PART: usize = 2 * LITTLE;

/// A carrier that does one thing at a time.
struct Carrier {
    end: OwnedFd,
    loans: Borrowings<Lent>,
    /// Those that are lent now.
    ids: Vec<LoanId>,
}

/// What happened, of what is to be tested.
#[derive(Default)]
struct Count {
    loans: usize,
    /// Carriers that ended with bytes of a loan in a pipe.
    ended_amid: usize,
}

impl Carrier {
    /// Takes the place of the carrier that `carriers` has.
    fn attach(carriers: &Carriers) -> Self {
        let (ours, end) = channel::pair().unwrap();
        set_lender(carriers, Lender::new(ours, MAX_LOANS).unwrap());
        Self {
            end,
            loans: Borrowings::new(MAX_LOANS),
            ids: Vec::new(),
        }
    }

    /// Does one thing; `false` when the carrier is to end.
    fn step(&mut self, random: &mut fastrand::Rng, count: &mut Count) -> bool {
        match random.u32(0..200) {
            0 => return false,
            1..40 => self.receive(count),
            40 => self.return_one(random),
            _ => self.copy(random),
        }
        true
    }

    fn receive(&mut self, count: &mut Count) {
        match channel::receive(&self.end) {
            Ok(Some((Message::Lend(id), Some(lent)))) => {
                self.loans.on_lend(id, lent).unwrap();
                self.ids.push(id);
                count.loans += 1;
            }
            Ok(Some((Message::Recall(id), _))) => self.give_back(id),
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }

    fn return_one(&mut self, random: &mut fastrand::Rng) {
        if let Some(id) = random.choice(self.ids.clone()) {
            self.give_back(id);
        }
    }

    fn give_back(&mut self, id: LoanId) {
        if let Some(lent) = self.loans.give_back(id) {
            self.ids.retain(|one| *one != id);
            drop(lent);
            channel::send(&self.end, Message::Return(id, 0), &[]).unwrap();
        }
    }

    /// One step of a direction: from socket to pipe or from pipe to socket.
    fn copy(&mut self, random: &mut fastrand::Rng) {
        let Some(id) = random.choice(self.ids.clone()) else {
            return;
        };
        let Lent {
            local,
            peer,
            out,
            into,
        } = self.loans.get(id).unwrap();
        let (from, pipe, to) = match random.bool() {
            true => (local, out, peer),
            false => (peer, into, local),
        };
        let bytes = random.usize(1..=LITTLE);
        let moved = match random.bool() {
            true => splice(from, None, &pipe.write, None, bytes, SpliceFlags::NONBLOCK),
            false => splice(&pipe.read, None, to, None, bytes, SpliceFlags::NONBLOCK),
        };
        match moved {
            Ok(1..) | Err(Errno::AGAIN) => {}
            // The end of the direction.
            Ok(0) => self.give_back(id),
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether bytes were read and not written.
    fn is_amid(&mut self) -> bool {
        let mut ids = self.ids.iter();
        ids.any(|id| {
            let lent = self.loans.get(*id).unwrap();
            [&lent.out, &lent.into]
                .iter()
                .any(|pipe| rustix::io::ioctl_fionread(&pipe.read).is_ok_and(|bytes| bytes > 0))
        })
    }
}

/// Carriers, one after the other.
async fn carry(carriers: &Carriers, random: &mut fastrand::Rng, count: &mut Count) {
    loop {
        let mut carrier = Carrier::attach(carriers);
        while carrier.step(random, count) {
            tokio::task::yield_now().await;
        }
        count.ended_amid += usize::from(carrier.is_amid());
    }
}

/// The two ends of a connection: this process's, and the one of what it is connected to.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap());
    let (far, near) = tokio::join!(far, listener.accept());
    (near.unwrap().0, far.unwrap())
}

/// Sends all of `sent` in parts at random, and its end, and reads as much as there is.
async fn converse(stream: TcpStream, sent: &[u8], mut random: fastrand::Rng) -> Vec<u8> {
    let (mut reader, mut writer) = stream.into_split();
    let send = async {
        let mut rest = sent;
        while !rest.is_empty() {
            // Mostly little, as on a connection that is lent.
            let most = match random.u32(0..40) {
                0 => MAX_PART,
                _ => 1000,
            };
            let (part, after) = rest.split_at(random.usize(1..=most).min(rest.len()));
            writer.write_all(part).await.unwrap();
            rest = after;
            for _ in 0..random.u32(0..20) {
                tokio::task::yield_now().await;
            }
        }
        writer.shutdown().await.unwrap();
    };
    let mut received = Vec::new();
    let (_, read) = tokio::join!(send, reader.read_to_end(&mut received));
    read.unwrap();
    received
}

#[tokio::test]
async fn every_byte_arrives_once_and_in_order_whichever_process_copies() {
    let mut count = Count::default();
    for seed in 0..CONNECTIONS {
        let mut random = fastrand::Rng::with_seed(seed);
        let ((local, program), (peer, other)) = (connection().await, connection().await);
        let [asked, answered] = [(); 2].map(|()| {
            let mut bytes = vec![0; LENGTH];
            random.fill(&mut bytes);
            bytes
        });
        let carriers = alone();
        let address = peer.local_addr().unwrap();
        let peer = Arc::new(Watched::from_tokio(peer).unwrap());
        let relayed = (carriers
            .relays()
            .expect(("fd00::1".parse().unwrap(), Role::Client)))
        .begin(New {
            source: address,
            destination: address,
            peer: Arc::clone(&peer),
        });
        let local = Watched::from_tokio(local).unwrap();
        let mut exchange = Exchange::new(&local, &peer, &relayed, &carriers);
        let (at_program, at_other) = (random.fork(), random.fork());
        let all = async {
            tokio::join!(
                exchange.run(),
                converse(program, &asked, at_program),
                converse(other, &answered, at_other),
            )
        };
        tokio::select! {
            (done, at_program, at_other) = all => {
                done.unwrap();
                assert!(at_program == answered && at_other == asked, "seed {seed}: bytes differ");
            }
            () = carry(&carriers, &mut random, &mut count) => {}
        }
    }
    // Else nothing was tested.
    assert!(count.loans > 100, "{} loans", count.loans);
    assert!(
        count.ended_amid > 10,
        "{} killed amid a loan",
        count.ended_amid
    );
}

#[tokio::test]
async fn an_error_that_this_process_finds_first_is_not_taken_for_the_end() {
    let ((local, _program), (peer, other)) = (connection().await, connection().await);
    let carriers = alone();
    let address = peer.local_addr().unwrap();
    let peer = Arc::new(Watched::from_tokio(peer).unwrap());
    let expected = carriers
        .relays()
        .expect(("fd00::1".parse().unwrap(), Role::Client));
    let relayed = expected.begin(New {
        source: address,
        destination: address,
        peer: Arc::clone(&peer),
    });
    let local = Watched::from_tokio(local).unwrap();
    let mut exchange = Exchange::new(&local, &peer, &relayed, &carriers);
    let mut carrier = Carrier::attach(&carriers);
    exchange.lend();
    assert!(exchange.loan.is_some());
    carrier.receive(&mut Count::default());
    relay::reset(&other);
    drop(other);
    // The carrier returns the loan once it is recalled; only the holder looks at the connection.
    let returns = async {
        while !carrier.ids.is_empty() {
            carrier.receive(&mut Count::default());
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await
    };
    tokio::select! {
        done = exchange.run() => {
            let error = done.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        }
        () = returns => {}
    }
}
