//! What the two sides of a connection agreed on about who chooses paths, and what follows from it.

use std::sync::Arc;
use std::time::Instant;

use hawser_path::{Interface, Verdict};

use crate::peer::Uploads;
use crate::reason::{Decision, Reason};
use crate::swarm::conn::Conn;
use crate::transport::Connection;
use crate::wire::{Message, Multipath};

/// How a connection stands.
#[derive(Debug)]
pub(in crate::swarm) struct Terms {
    pub since: Instant,
    /// The peer understands extended messages.
    pub extended: bool,
    /// Its extended handshake was heard.
    pub heard: bool,
    /// The id under which it takes `scion_multipath`, if it does.
    pub multipath: Option<u8>,
    /// We offered ourselves over this connection.
    pub offered: bool,
    /// We choke it: it is not over a path that was given to the peer, or that is not known yet.
    pub choked: bool,
    /// Why, as last told to the peer.
    pub said: Option<String>,
    /// What the peer told of the path.
    pub told: Option<Told>,
    /// What it asked for.
    pub uploads: Arc<Uploads>,
}

/// What an uploader tells of a path. Nothing of it is checked.
#[derive(Debug)]
pub(in crate::swarm) struct Told {
    /// As blocks cross them.
    pub interfaces: Vec<Interface>,
    pub reason: String,
}

impl Terms {
    pub fn new(extended: bool, uploads: Arc<Uploads>, now: Instant) -> Self {
        Self {
            since: now,
            extended,
            heard: false,
            multipath: None,
            offered: false,
            choked: true,
            said: None,
            told: None,
            uploads,
        }
    }

    /// What the uploader decided about the path, if it told.
    pub fn decision(&self, unchoked: bool) -> Option<Decision> {
        let told = self.told.as_ref()?;
        Some(Decision {
            verdict: match unchoked {
                true => Verdict::Taken,
                false => Verdict::Waiting,
            },
            reason: Reason::ByUploader {
                why: told.reason.clone(),
            },
        })
    }

    /// The interfaces on the path, if the uploader told.
    pub fn interfaces(&self) -> Vec<Interface> {
        let told = self.told.as_ref();
        told.map_or(Vec::new(), |told| told.interfaces.clone())
    }

    /// ASes on the path, both ends included, if the uploader told.
    pub fn hops(&self) -> Option<usize> {
        Some(self.told.as_ref()?.interfaces.len() / 2 + 1)
    }
}

impl<C: Connection> Conn<C> {
    /// The peer may ask for blocks.
    pub(super) fn unchoke(&mut self) {
        if std::mem::take(&mut self.terms.choked) {
            self.terms.uploads.unchoke();
            self.send([Message::Unchoke]);
        }
    }

    /// The peer may not ask for blocks; what it asked for is dropped.
    pub(in crate::swarm) fn choke(&mut self) {
        if !std::mem::replace(&mut self.terms.choked, true) {
            self.terms.uploads.choke();
            self.send([Message::Choke]);
        }
    }

    /// Tells the peer why the path is used or waits, if that is news and it listens.
    pub(super) fn tell(&mut self, interfaces: &[Interface], decision: &hawser_path::Decision) {
        let Some(id) = self.terms.multipath else {
            return;
        };
        let reason = decision.reason.to_string();
        if self.terms.said.as_ref() == Some(&reason) {
            return;
        }
        let told = Multipath::Told {
            interfaces: interfaces.to_vec(),
            reason: reason.clone(),
        };
        self.terms.said = Some(reason);
        self.send([Message::Extended {
            id,
            payload: told.encode().into(),
        }]);
    }
}
