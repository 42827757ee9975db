//! What the two sides of a connection agreed on about who chooses paths.

use std::sync::Arc;
use std::time::Instant;

use hawser_path::{Decision, Interface, Reason, Verdict};

use crate::peer::Uploads;

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
    pub fn new(extended: bool, uploads: Arc<Uploads>, now: Instant) -> Terms {
        Terms {
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

    /// Links on the path, if the uploader told.
    pub fn hops(&self) -> Option<usize> {
        Some(self.told.as_ref()?.interfaces.len() / 2)
    }
}
