//! What both sides of a connection agreed on about choosing paths, and whether blocks are served.

use hawser_manager::SubflowId;
use hawser_path::{Interface, Verdict};

use crate::reason::{ChoiceReason, Decision};
use crate::swarm::conn::Conn;
use crate::wire::{Message, Multipath};

/// How a connection is served.
#[derive(Debug, Default)]
pub(in crate::swarm) struct Serving {
    /// This side lets the uploader choose the paths to the peer.
    pub ours: bool,
    /// Bytes sent over it when pieces were last revealed by super-seeding.
    pub revealed: u64,
    /// The peer understands extended messages.
    pub extended: bool,
    /// Its extended handshake has arrived.
    pub introduced: bool,
    /// The id under which it takes `scion_multipath`, if it does.
    pub multipath: Option<u8>,
    /// This side was offered as a downloader over it.
    pub offered: bool,
    /// The path may be used: it is assigned to the peer, or is not assigned by this side.
    allowed: bool,
    /// The peer holds a slot.
    has_slot: bool,
    /// The peer wants blocks (BEP 3).
    interested: bool,
    /// The last such message sent to the peer was Unchoke: its requests are answered.
    unchoked: bool,
    /// The reason last announced to the peer.
    announced_reason: Option<String>,
    /// What the peer announced about the path.
    pub announced: Option<Announcement>,
    /// Its subflow, if it serves a downloader over paths chosen here.
    pub subflow: Option<SubflowId>,
}

/// What an uploader announces about a path. It is not verified.
#[derive(Debug)]
pub(in crate::swarm) struct Announcement {
    /// In the order in which blocks cross them.
    pub interfaces: Vec<Interface>,
    pub reason: String,
}

impl Serving {
    pub fn new(ours: bool, extended: bool) -> Self {
        Self {
            ours,
            extended,
            ..Self::default()
        }
    }

    /// Whether the peer wants blocks.
    pub fn is_wanted(&self) -> bool {
        self.interested
    }

    /// Whether requests of the peer are answered.
    pub fn is_unchoked(&self) -> bool {
        self.unchoked
    }

    /// The decision of the uploader about the path, if it was announced.
    pub fn decision(&self, unchoked: bool) -> Option<Decision> {
        let announced = self.announced.as_ref()?;
        Some(Decision {
            verdict: match unchoked {
                true => Verdict::Taken,
                false => Verdict::Waiting,
            },
            reason: ChoiceReason::ByUploader {
                why: announced.reason.clone(),
            },
        })
    }

    /// The interfaces on the path, if the uploader announced them.
    pub fn interfaces(&self) -> Vec<Interface> {
        let announced = self.announced.as_ref();
        announced.map_or(Vec::new(), |it| it.interfaces.clone())
    }

    /// ASes on the path, both ends included, if the uploader announced them.
    pub fn hops(&self) -> Option<usize> {
        Some(self.announced.as_ref()?.interfaces.len() / 2 + 1)
    }
}

impl Conn {
    /// Lets the peer request blocks over it, from when it is interested and holds a slot.
    pub(in crate::swarm) fn unchoke(&mut self) {
        self.serving.allowed = true;
        self.update_choke();
    }

    /// Forbids the peer to request blocks over it; its outstanding requests are dropped.
    pub(in crate::swarm) fn choke(&mut self) {
        self.serving.allowed = false;
        self.update_choke();
    }

    /// Sets whether the peer holds a slot. Without one, nothing is sent to it over any path.
    pub(super) fn set_slot(&mut self, has_slot: bool) {
        self.serving.has_slot = has_slot;
        self.update_choke();
    }

    /// Tells the peer that it is choked or unchoked, if that is new.
    fn update_choke(&mut self) {
        let Serving {
            allowed,
            has_slot,
            interested,
            unchoked,
            ..
        } = &mut self.serving;
        let is_open = *allowed && *has_slot;
        if *unchoked && !is_open {
            *unchoked = false;
            self.traffic.uploads.choke();
            self.send([Message::Choke]);
        } else if is_open && *interested && !*unchoked {
            // Without interest no state calls for the message: WebTorrent forgets it.
            *unchoked = true;
            self.traffic.uploads.unchoke();
            self.send([Message::Unchoke]);
        }
    }

    /// Takes note of whether the peer wants blocks. One that was unchoked stays so: it may become
    /// interested again at any time.
    pub(in crate::swarm) fn set_peer_interested(&mut self, interested: bool) {
        self.serving.interested = interested;
        self.update_choke();
    }

    /// Announces to the peer why the path is used or waits, if the reason is new and the peer
    /// understands the message.
    pub(super) fn announce(&mut self, interfaces: &[Interface], reason: &hawser_path::Reason) {
        let reason = reason.to_string();
        if self.serving.multipath.is_none()
            || self.serving.announced_reason.as_ref() == Some(&reason)
        {
            return;
        }
        self.serving.announced_reason = Some(reason.clone());
        let interfaces = interfaces.to_vec();
        self.send_multipath(&Multipath::Report { interfaces, reason });
    }

    /// Sends a `scion_multipath` message, if the peer understands it.
    pub(super) fn send_multipath(&self, message: &Multipath) {
        if let Some(id) = self.serving.multipath {
            self.send([Message::Extended {
                id,
                payload: message.encode().into(),
            }]);
        }
    }
}
