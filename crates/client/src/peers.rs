//! The peers of a torrent, each with the paths to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hawser_path::Interface;
use hawser_torrent::{PeerAddr, PeerState, Progress};

use crate::view::rate_of;

/// An address-level peer.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerView {
    /// Its address.
    pub address: PeerAddr,
    /// What it has, wants and does, as it is known over one of its connections; `None` while it has none.
    pub state: Option<PeerState>,
    /// Why it is not connected, as far as that is known.
    pub trouble: Option<String>,
    /// The paths to it that are known, and connections over others; one for an IP peer.
    pub paths: Vec<PathView>,
}

/// A path to a peer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathView {
    /// Its fingerprint, in hexadecimal digits; the same for every IP peer.
    pub fingerprint: String,
    /// What the connection over it does: left, dialing, idle, active, stalled or waiting.
    pub state: String,
    /// Why it is used or not.
    pub reason: Option<String>,
    /// Why the last connection over it ended.
    pub error: Option<String>,
    /// The ASes on it, as far as they are known.
    pub hops: Vec<Hop>,
    /// Rate of blocks received over it, in bit/s.
    pub down: u64,
    /// Rate of blocks sent over it, in bit/s.
    pub up: u64,
    /// Bytes of blocks received over it.
    pub downloaded: u64,
    /// Bytes of blocks sent over it.
    pub uploaded: u64,
    /// Smoothed round-trip time; `None` while not connected.
    pub rtt: Option<Duration>,
}

/// An AS on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Its ISD-AS number.
    pub isd_as: String,
    /// The interface at which the path enters it; `None` at its beginning.
    pub ingress: Option<u16>,
    /// The interface at which the path leaves it; `None` at its end.
    pub egress: Option<u16>,
}

/// The ASes that interfaces lead through. What peers report need not be a path: an interface that does not
/// fit the one before it is a hop of its own.
fn hops(interfaces: &[Interface]) -> Vec<Hop> {
    let mut hops: Vec<Hop> = Vec::new();
    let mut last = None;
    for interface in interfaces {
        let is_same = last == Some(interface.isd_as);
        match hops.last_mut().filter(|_| is_same) {
            Some(hop) if hop.ingress.is_some() && hop.egress.is_none() => {
                hop.egress = Some(interface.id);
            }
            _ => hops.push(Hop {
                isd_as: interface.isd_as.to_string(),
                ingress: last.is_some().then_some(interface.id),
                egress: last.is_none().then_some(interface.id),
            }),
        }
        last = Some(interface.isd_as);
    }
    hops
}

/// The peers of a download, in the order of their addresses.
pub(crate) fn peers(progress: &Progress) -> Vec<PeerView> {
    let mut peers = Peers::default();
    for path in &progress.paths {
        peers.add(
            path.peer,
            PathView {
                fingerprint: path.fingerprint.to_string(),
                state: path.state.to_string(),
                reason: path.decision.as_ref().map(|it| it.reason.to_string()),
                error: path.last_error.clone(),
                hops: hops(&path.interfaces),
                down: rate_of(progress, path.rate),
                downloaded: path.bytes,
                rtt: path.rtt,
                ..PathView::default()
            },
        );
    }
    for served in &progress.uploads.peers {
        let path = PathView {
            fingerprint: served.fingerprint.to_string(),
            reason: served.decision.as_ref().map(|it| it.reason.to_string()),
            hops: hops(&served.interfaces),
            up: served.rate,
            uploaded: served.bytes,
            rtt: served.rtt,
            ..PathView::default()
        };
        peers.serve(served.peer, path, &served.state);
    }
    for (address, reason) in &progress.idle_peers {
        peers.get(*address).trouble = Some(reason.clone());
    }
    peers.0.into_values().collect()
}

/// Peers as they are gathered from what is received and what is sent.
#[derive(Default)]
struct Peers(BTreeMap<PeerAddr, PeerView>);

impl Peers {
    fn get(&mut self, address: PeerAddr) -> &mut PeerView {
        self.0.entry(address).or_insert_with(|| PeerView {
            address,
            state: None,
            trouble: None,
            paths: Vec::new(),
        })
    }

    /// Adds a path over which blocks are received.
    fn add(&mut self, address: PeerAddr, path: PathView) {
        self.get(address).paths.push(path);
    }

    /// Adds what is sent over a path that is connected, and may have been added.
    fn serve(&mut self, address: PeerAddr, sent: PathView, state: &PeerState) {
        let peer = self.get(address);
        match &mut peer.state {
            None => peer.state = Some(state.clone()),
            Some(known) => merge(known, state),
        }
        let known = peer.paths.iter_mut().find(|path| {
            path.fingerprint == sent.fingerprint && path.rtt.is_some() == sent.rtt.is_some()
        });
        match known {
            Some(path) => {
                path.up += sent.up;
                path.uploaded += sent.uploaded;
                if path.hops.is_empty() {
                    path.hops = sent.hops;
                }
                path.reason = path.reason.take().or(sent.reason);
            }
            None => peer.paths.push(PathView {
                state: "idle".to_owned(),
                ..sent
            }),
        }
    }
}

/// Adds what is known of a peer over another of its connections.
fn merge(known: &mut PeerState, other: &PeerState) {
    known.client = known
        .client
        .take()
        .or_else(|| other.client.as_ref().map(Arc::clone));
    known.pieces = known.pieces.max(other.pieces);
    known.is_incoming &= other.is_incoming;
    known.is_interested |= other.is_interested;
    known.is_served |= other.is_served;
    known.is_interesting |= other.is_interesting;
    known.serves |= other.serves;
    known.is_upload_only |= other.is_upload_only;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interfaces(texts: &[&str]) -> Vec<Interface> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn interfaces_are_read_as_ases() {
        let hop = |isd_as: &str, ingress, egress| Hop {
            isd_as: isd_as.to_owned(),
            ingress,
            egress,
        };
        let path = interfaces(&[
            "1-ff00:0:1#1",
            "1-ff00:0:2#2",
            "1-ff00:0:2#3",
            "1-ff00:0:3#4",
        ]);
        let expected = [
            hop("1-ff00:0:1", None, Some(1)),
            hop("1-ff00:0:2", Some(2), Some(3)),
            hop("1-ff00:0:3", Some(4), None),
        ];
        assert_eq!(hops(&path), expected);
        assert_eq!(hops(&[]), []);
        // What is no path is shown as it is.
        let odd = interfaces(&[
            "1-ff00:0:1#1",
            "1-ff00:0:1#2",
            "1-ff00:0:1#3",
            "1-ff00:0:1#4",
        ]);
        let expected = [
            hop("1-ff00:0:1", None, Some(1)),
            hop("1-ff00:0:1", Some(2), Some(3)),
            hop("1-ff00:0:1", Some(4), None),
        ];
        assert_eq!(hops(&odd), expected);
    }

    proptest! {
        /// Every interface is shown, in its order.
        #[test]
        fn no_interface_is_lost(ids in proptest::collection::vec((1u64..4, 1u16..9), 0..20)) {
            let all: Vec<Interface> = ids
                .iter()
                .map(|(isd_as, id)| format!("1-ff00:0:{isd_as:x}#{id}").parse().unwrap())
                .collect();
            let shown = hops(&all).into_iter().flat_map(|hop| {
                let ids = [hop.ingress, hop.egress];
                ids.into_iter().flatten().map(move |id| format!("{}#{id}", hop.isd_as))
            });
            let expected: Vec<String> = all.iter().map(ToString::to_string).collect();
            prop_assert_eq!(shown.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn what_is_sent_and_received_over_a_path_is_one_row() {
        let address: PeerAddr = "1-ff00:0:110,10.0.0.1:6881".parse().unwrap();
        let path = |fingerprint: &str, down, up| PathView {
            fingerprint: fingerprint.to_owned(),
            state: "active".to_owned(),
            rtt: Some(Duration::from_millis(3)),
            down,
            up,
            ..PathView::default()
        };
        let mut peers = Peers::default();
        peers.add(address, path("aa", 8, 0));
        peers.add(
            address,
            PathView {
                rtt: None,
                ..path("bb", 0, 0)
            },
        );
        let (mut one, mut other) = (PeerState::default(), PeerState::default());
        (one.pieces, one.serves) = (7, true);
        (other.pieces, other.client) = (9, Some("x".into()));
        let reason = Some("it is short".to_owned());
        peers.serve(
            address,
            PathView {
                reason: reason.clone(),
                ..path("aa", 0, 16)
            },
            &one,
        );
        peers.serve(address, path("cc", 0, 32), &other);
        let peer = peers.0.remove(&address).unwrap();
        let rows: Vec<_> = peer
            .paths
            .iter()
            .map(|it| (&*it.fingerprint, it.down, it.up))
            .collect();
        assert_eq!(rows, [("aa", 8, 16), ("bb", 0, 0), ("cc", 0, 32)]);
        assert_eq!(
            (&peer.paths[0].reason, &*peer.paths[2].state),
            (&reason, "idle")
        );
        let state = peer.state.unwrap();
        assert_eq!(
            (state.pieces, state.serves, state.client.as_deref()),
            (9, true, Some("x"))
        );
    }
}
