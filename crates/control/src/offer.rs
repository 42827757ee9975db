//! Segments in the form in which they are handed out.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use scion_protobuf::proto::control_plane::v1::PathSegment;

use crate::graph::{Along, Graph};
use crate::routes::Route;
use crate::segment::{Segment, Stamp};
use crate::signed::Plain;
use crate::trust::{Pki, PkiError};

/// Segments kept for the next time they are asked for; about 2 KiB each.
const MAX_KEPT: usize = 2048;

/// A segment that is handed out.
#[derive(Debug)]
pub(crate) struct Offer {
    /// What its ASes announce.
    plain: Plain,
    /// What hosts, and the daemon here, read from it.
    pub segment: hawser_segment::Segment,
    /// What hosts are sent, from the first time they ask for it on: signing costs much more than
    /// all the rest, and the daemon does without.
    signed: OnceLock<PathSegment>,
}

impl Offer {
    /// What hosts are sent: signed, where the network has a PKI.
    pub fn message(&self, pki: Option<&mut Pki>) -> Result<PathSegment, PkiError> {
        let Some(pki) = pki else {
            return Ok(self.plain.unsigned());
        };
        if let Some(signed) = self.signed.get() {
            return Ok(signed.clone());
        }
        let signed = pki.sign(&self.plain)?;
        Ok(self.signed.get_or_init(|| signed).clone())
    }
}

/// Segments by the ways they were made for, so that one that is asked for often is made once.
#[derive(Debug, Default)]
pub(crate) struct Offers(HashMap<(Along, Route), Arc<Offer>>);

impl Offers {
    /// The segment over a route. Those along children carry peering entries.
    pub fn of(
        &mut self,
        graph: &Graph,
        keys: &[[u8; 16]],
        route: Route,
        stamp: Stamp,
        along: Along,
    ) -> Option<Arc<Offer>> {
        let name = (along, route);
        if let Some(offer) = self.0.get(&name) {
            return Some(offer.clone());
        }
        let peering = along == Along::Children;
        let made = Segment::new(graph, keys, name.1.clone(), stamp, peering);
        let plain = Plain::new(graph, &made);
        let segment = match hawser_segment::Segment::from_message(&plain.unsigned()) {
            Ok(segment) => segment,
            Err(reason) => {
                // An interface 0 in network.json, which topologies refuse.
                tracing::error!("a segment is left out: {reason}");
                return None;
            }
        };
        if self.0.len() >= MAX_KEPT {
            self.0.clear();
        }
        let offer = Arc::new(Offer {
            plain,
            segment,
            signed: OnceLock::new(),
        });
        self.0.insert(name, offer.clone());
        Some(offer)
    }

    /// Drops all: they are to be made anew.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}
