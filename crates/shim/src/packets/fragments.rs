//! Fragments put together again.

use std::collections::HashMap;
use std::time::Duration;

use etherparse::IpNumber;
use etherparse::defrag::IpDefragBuf;

use super::ip::{Ends, Received};

/// Most packets of which fragments are kept.
const PACKETS: usize = 16;
/// How long fragments wait for the others, as in Linux (`net.ipv4.ipfrag_time`).
const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Packets of which some fragments have arrived. The caller gives the time.
#[derive(Debug, Default)]
pub(crate) struct Fragments(HashMap<Name, (IpDefragBuf, Duration)>);

/// What fragments of a packet have in common (RFC 791, 3.2; RFC 8200, 4.5).
type Name = (Ends, u8, u32);

impl Fragments {
    /// Adds a fragment. Returns the payload of its packet if that is complete.
    pub(crate) fn add(&mut self, received: &Received<'_>, now: Duration) -> Option<Vec<u8>> {
        let fragment = received.fragment?;
        self.0
            .retain(|_, (_, began)| now < *began + REASSEMBLY_TIMEOUT);
        let name = (received.ends, received.protocol, fragment.id);
        if !self.0.contains_key(&name) && self.0.len() >= PACKETS {
            let oldest = self.0.iter().min_by_key(|(_, (_, began))| *began);
            let oldest = oldest.map(|(name, _)| *name)?;
            self.0.remove(&oldest);
        }
        let (buffer, _) = self.0.entry(name).or_insert_with(|| {
            let protocol = IpNumber(received.protocol);
            (IpDefragBuf::new(protocol, Vec::new(), Vec::new()), now)
        });
        let added = buffer.add(fragment.offset, fragment.has_more, received.payload);
        if added.is_ok() && !buffer.is_complete() {
            return None;
        }
        // A packet with fragments that contradict each other is dropped.
        let (buffer, _) = self.0.remove(&name)?;
        added.is_ok().then(|| buffer.take_bufs().0)
    }
}
