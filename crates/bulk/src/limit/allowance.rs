//! What the limits allow one session to send.

use std::time::Instant;

use super::{Holder, Limit};

/// What the limits allow one session to send: those given here, and that of its sink. Without any,
/// nothing is asked and nothing counted.
#[derive(Debug, Default)]
pub(crate) struct Allowance(Option<Limited>);

#[derive(Debug)]
struct Limited {
    holder: Holder,
    own: Option<Limit>,
    sink: Option<Limit>,
}

impl Allowance {
    /// What `own` allows.
    pub(crate) fn new(own: Option<Limit>) -> Self {
        Self(own.map(|own| Limited {
            holder: Holder::new(),
            own: Some(own),
            sink: None,
        }))
    }

    /// From now on the sink wants no more than `sink` allows.
    pub(crate) fn set_sink(&mut self, sink: Option<Limit>) {
        let own = self.0.as_ref().and_then(|limited| limited.own.clone());
        *self = Self::new(own);
        if sink.is_some() {
            let limited = self.0.get_or_insert_with(|| Limited {
                holder: Holder::new(),
                own: None,
                sink: None,
            });
            limited.sink = sink;
        }
    }

    /// Whether anything is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.0.is_some()
    }

    /// How many bytes may be sent now. They are to be [spent](Self::spend) at once, or
    /// [left](Self::leave) to others.
    ///
    /// # Errors
    /// When to ask again.
    pub(crate) fn ask(&mut self, now: Instant) -> Result<u64, Instant> {
        let Some(limited) = &self.0 else {
            return Ok(u64::MAX);
        };
        let mut most = u64::MAX;
        for limit in limited.all() {
            let asked = limit.bucket().ask(limited.holder, now);
            match asked {
                Ok(bytes) => most = most.min(bytes),
                Err(at) => {
                    // No other session is to wait for this one meanwhile.
                    let others = limited.all().filter(|other| !other.is(limit));
                    others.for_each(|other| other.bucket().leave(limited.holder));
                    return Err(at);
                }
            }
        }
        Ok(most)
    }

    /// `bytes` are sent.
    pub(crate) fn spend(&mut self, bytes: u64, now: Instant) {
        if let Some(limited) = &self.0 {
            for limit in limited.all() {
                limit.bucket().spend(limited.holder, bytes, now);
            }
        }
    }

    /// There is nothing to send after all.
    pub(crate) fn leave(&mut self) {
        if let Some(limited) = &self.0 {
            limited.leave();
        }
    }
}

impl Limited {
    /// The limits, those of the fewest sessions first.
    fn all(&self) -> impl Iterator<Item = &Limit> {
        let own = self.own.iter().flat_map(Limit::chain);
        self.sink.iter().chain(own)
    }

    fn leave(&self) {
        self.all()
            .for_each(|limit| limit.bucket().leave(self.holder));
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        self.leave();
    }
}
