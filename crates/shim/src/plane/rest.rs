//! What the thread of the SCION socket does beside receiving, so that little traffic wakes one thread only:
//! it reads the TUN device while little comes, and copies the connections that the holder lends.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::borrowed::{Borrowed, loan_of};
use super::outbound::Outbound;
use super::shared::Shared;

/// Events that are taken at once.
const EVENTS: usize = 32;
/// How often events are taken before the thread receives again: what a packet brings may be answered at once.
const TURNS: usize = 4;

/// What an event of the descriptors is about; loans follow ([`LOANS`](super::borrowed::LOANS)).
const STOP: u64 = 0;
const DEVICE: u64 = 1;
const TURN: u64 = 2;
const CHANNEL: u64 = 3;

/// The descriptors that the thread watches beside its socket.
pub(super) struct Rest {
    epoll: OwnedFd,
    outbound: Outbound,
    /// Whether it is this thread's turn to read the device.
    has_device: bool,
    borrowed: Option<Borrowed>,
}

impl Rest {
    /// With the device of `shared`, and the channel over which connections are lent.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn new(shared: &Shared, lent: Option<OwnedFd>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let watch = |fd: BorrowedFd<'_>, about| {
            epoll::add(&epoll, fd, EventData::new_u64(about), EventFlags::IN)
        };
        watch(shared.stop.as_fd(), STOP)?;
        if let Some(queue) = &shared.queue {
            watch(queue.as_fd(), DEVICE)?;
            watch(shared.turn.rest(), TURN)?;
        }
        if let Some(lent) = &lent {
            watch(lent.as_fd(), CHANNEL)?;
        }
        Ok(Self {
            epoll,
            outbound: Outbound::default(),
            has_device: shared.queue.is_some(),
            borrowed: lent.map(Borrowed::new),
        })
    }

    /// Readable once there is something to do.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Does what there is to do, without waiting. While much is received (`is_busy`), another thread reads
    /// the device. Returns whether there was anything.
    ///
    /// # Errors
    /// When the device fails.
    pub(super) fn work(&mut self, shared: &Shared, is_busy: bool) -> io::Result<bool> {
        for turn in 0..TURNS {
            if is_busy || self.outbound.naps() {
                self.pass_device(shared)?;
            }
            if !self.take_events(shared)? {
                return Ok(turn > 0);
            }
        }
        Ok(true)
    }

    /// Takes what has happened. Returns whether that was anything.
    fn take_events(&mut self, shared: &Shared) -> io::Result<bool> {
        let mut buffer = [const { MaybeUninit::uninit() }; EVENTS];
        let at_once = Timespec::default();
        let events = match epoll::wait(&self.epoll, &mut buffer[..], Some(&at_once)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let mut has_worked = false;
        for event in events {
            // It stays readable: the caller looks at it.
            has_worked |= event.data.u64() != STOP;
            self.take_event(shared, event.data.u64(), event.flags)?;
        }
        Ok(has_worked)
    }

    fn take_event(&mut self, shared: &Shared, about: u64, flags: EventFlags) -> io::Result<()> {
        match about {
            STOP => {}
            DEVICE if self.has_device => {
                if let Some(queue) = &shared.queue {
                    self.outbound.round(shared, queue)?;
                }
            }
            // Passed on since.
            DEVICE => {}
            TURN => {
                if shared.turn.take_rest() {
                    self.watch_device(shared)?;
                }
            }
            CHANNEL => {
                let borrowed = self.borrowed.take();
                self.borrowed = borrowed.and_then(|borrowed| borrowed.receive(&self.epoll));
            }
            loan => {
                let (id, side) = loan_of(loan);
                let borrowed = self.borrowed.take();
                self.borrowed =
                    borrowed.and_then(|borrowed| borrowed.copy(&self.epoll, id, side, flags));
            }
        }
        Ok(())
    }

    /// Reads the device from now on.
    fn watch_device(&mut self, shared: &Shared) -> io::Result<()> {
        if let Some(queue) = &shared.queue {
            epoll::add(
                &self.epoll,
                queue,
                EventData::new_u64(DEVICE),
                EventFlags::IN,
            )?;
            self.outbound = Outbound::default();
            self.has_device = true;
        }
        Ok(())
    }

    /// Reads the device no longer.
    fn pass_device(&mut self, shared: &Shared) -> io::Result<()> {
        if let Some(queue) = shared.queue.as_ref().filter(|_| self.has_device) {
            epoll::delete(&self.epoll, queue)?;
            self.has_device = false;
            shared.turn.pass_to_outbound();
        }
        Ok(())
    }
}
