//! With whom programs of this host exchange packets.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lock::lock;
use crate::packets::Ends;

/// Most pairs of addresses of a session between which packets may arrive; beyond them it forgets
/// others.
const CONTACTS: usize = 4096;

/// The pairs of addresses between which programs of this host have sent packets over a session: what
/// arrives from others is dropped, as nobody has asked for it.
#[derive(Debug, Default)]
pub(crate) struct Contacts {
    ends: Mutex<HashSet<Ends>>,
    packets: AtomicU64,
}

impl Contacts {
    /// Records a packet that is sent.
    pub(crate) fn add(&self, ends: Ends) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        let mut contacts = lock(&self.ends);
        if contacts.len() >= CONTACTS && !contacts.contains(&ends) {
            contacts.clear();
        }
        contacts.insert(ends);
    }

    /// Whether it may be the answer to one that was sent.
    pub(crate) fn has_asked(&self, answer: Ends) -> bool {
        let has_asked = lock(&self.ends).contains(&answer.reversed());
        self.packets.fetch_add(has_asked.into(), Ordering::Relaxed);
        has_asked
    }

    /// How many packets there were, with the answers.
    pub(crate) fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }
}
