//! A holder, put together from its parts.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hawser_keys::PeerKey;
use hawser_tun::Queue;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::capture::{Capture, CaptureOptions, Captured};
use super::captures::Captures;
use super::carrier::Carriers;
use super::error::HolderError;
use super::lender::Lender;
use super::mptcp::Mptcp;
use super::relays::Relays;
use super::report::ConnectionEvent;
use super::{incoming, outgoing};
use crate::address::Block;
use crate::attachment::Attachment;
use crate::choice::CarrierKind;
use crate::handover::{self, HandoverReceiver, HandoverSender};
use crate::lending::channel;
use crate::link::Link;
use crate::report::HolderReport;

/// Interval at which it is looked whether all is delivered.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The holder. Cloning shares it; its connections end with the last clone.
#[derive(Clone)]
pub struct Holder(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) own: Block,
    pub(super) mptcp: Mptcp,
    pub(super) key: PeerKey,
    pub(super) tag: u64,
    pub(super) carriers: Carriers,
}

impl Holder {
    /// Sets up the captures for the host with `key`, and the namespace for MPTCP. Without MPTCP in the
    /// kernel there is none, unless `carrier` is MPTCP. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`HolderError`]; nothing is left in the kernel then.
    pub fn create(
        key: PeerKey,
        options: &CaptureOptions,
        carrier: CarrierKind,
    ) -> Result<Self, HolderError> {
        let tag = fastrand::u64(..);
        let own = Block::of(&key, tag);
        let relays = Relays::default();
        let mptcp = Mptcp::set_up(own, carrier, &relays)?;
        let (capture, captured) = Capture::open(options)?;
        let is_enclosed = matches!(options.captured, Captured::Enclosed(_));
        let captures = Captures::new(Some(capture), options.port);
        let carriers = Carriers::new(captures, mptcp.clone(), is_enclosed, relays, outgoing::run);
        if let Some(network) = mptcp.network() {
            let served = network.listen()?;
            tokio::spawn(incoming::run(served, carriers.clone()));
        }
        outgoing::run(captured, &carriers);
        Ok(Self(Arc::new(Inner {
            own,
            mptcp,
            key,
            tag,
            carriers,
        })))
    }

    /// Lets a carrier of this process, with `key`, work with the holder.
    ///
    /// # Errors
    /// [`HolderError::OtherKey`], [`HolderError::Attached`], and as the system says.
    pub fn attach(&self, key: PeerKey) -> Result<Attachment, HolderError> {
        self.check(key)?;
        let pair = UnixStream::pair();
        let (ours, theirs) = pair.map_err(HolderError::system("connect to the holder"))?;
        let Queues {
            mptcp,
            captured,
            handover: (sender, receiver),
            lending,
        } = self.queues()?;
        let (lender, lent) = lender(lending).map_err(HolderError::system("lend connections"))?;
        let failed = HolderError::system("hand sockets over to the carrier");
        let sender = HandoverSender::new(sender).map_err(&failed)?;
        self.0.carriers.attach(Link::new(ours), sender, lender)?;
        Ok(Attachment {
            queue: mptcp,
            captured,
            handed: HandoverReceiver::new(receiver).map_err(&failed)?,
            lent,
            own: self.own(),
            tag: self.0.tag,
            link: Link::new(theirs),
        })
    }

    /// Whether a carrier with `key` may work with the holder now.
    pub(super) fn check(&self, key: PeerKey) -> Result<(), HolderError> {
        let holds = self.0.key;
        if key != holds {
            return Err(HolderError::OtherKey { holds, wanted: key });
        }
        match self.0.carriers.is_attached() {
            true => Err(HolderError::Attached),
            false => Ok(()),
        }
    }

    pub(super) fn own(&self) -> Block {
        self.0.own
    }

    /// The queues for a carrier.
    pub(super) fn queues(&self) -> Result<Queues, HolderError> {
        let mptcp = match &self.0.mptcp {
            Mptcp::Used(network, _) => Ok(network.queue()?),
            Mptcp::Unused(reason) => Err(reason.clone()),
        };
        let lending = mptcp.as_ref().ok().map(|_| channel::pair()).transpose();
        let handover = handover::pair();
        Ok(Queues {
            mptcp,
            captured: self.0.carriers.captures().queue()?,
            handover: handover.map_err(HolderError::system("hand sockets over to the carrier"))?,
            lending: lending.map_err(HolderError::system("lend connections"))?,
        })
    }

    /// Ends the carrier, all connections and all captures: the connections of programs that begin from
    /// now on are not captured.
    pub async fn release(&self) {
        self.0.carriers.release().await;
    }

    /// Waits until a carrier has had connections to what is mapped captured, for the first time.
    ///
    /// # Errors
    /// [`HolderError`] when they cannot be captured.
    pub async fn captured(&self) -> Result<(), Arc<HolderError>> {
        self.0.carriers.captures().first().await
    }

    /// Reports what happens to programs' connections from now on. A later call ends this.
    pub fn observe(&self) -> mpsc::UnboundedReceiver<ConnectionEvent> {
        self.0.carriers.relays().observe()
    }

    /// Waits until all that programs have sent is delivered, if they have ended. Those that have not
    /// hold it up.
    pub async fn delivered(&self) {
        loop {
            // Also at first: a connection may not have been accepted yet that has just begun.
            tokio::time::sleep(POLL_INTERVAL).await;
            if !self.0.carriers.relays().are_undelivered() {
                return;
            }
        }
    }

    /// The status report.
    pub fn report(&self) -> HolderReport {
        self.0.carriers.report()
    }
}

/// What a carrier gets.
pub(super) struct Queues {
    /// Of the namespace's device, or why there is none.
    pub(super) mptcp: Result<Queue, String>,
    /// Of the device for captured packets.
    pub(super) captured: Queue,
    /// Both ends for programs' sockets.
    pub(super) handover: (OwnedFd, OwnedFd),
    /// Both ends over which connections are lent, if there is MPTCP.
    pub(super) lending: Option<(OwnedFd, OwnedFd)>,
}

/// The holder's end of a pair over which connections are lent, at work, and the carrier's.
pub(super) fn lender(
    pair: Option<(OwnedFd, OwnedFd)>,
) -> io::Result<(Option<Lender>, Option<OwnedFd>)> {
    let Some((ours, theirs)) = pair else {
        return Ok((None, None));
    };
    let lender = Lender::new(ours, crate::budget::loans())?;
    Ok((Some(lender), Some(theirs)))
}
