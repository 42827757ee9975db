//! Which slots the holder knows to be live.

use std::collections::BTreeSet;

use crate::address::Slot;

/// The slots of a session that the kernel's subflows may use, as the holder has them.
#[derive(Debug, Default)]
pub(crate) struct Published(BTreeSet<Slot>);

impl Published {
    /// The slots that are live now, if the holder has others. It learns also that none is: when the last
    /// one that was live is the first to be live again, the subflow over it may have ended at the other
    /// host, or wait long to send again.
    pub(crate) fn update(&mut self, live: BTreeSet<Slot>) -> Option<Vec<Slot>> {
        if live == self.0 {
            return None;
        }
        self.0 = live;
        Some(self.all())
    }

    /// The slots that the holder has.
    pub(crate) fn all(&self) -> Vec<Slot> {
        self.0.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_learns_of_each_change_also_that_no_slot_is_live() {
        let mut published = Published::default();
        assert_eq!(published.update([1, 2].into()), Some(vec![1, 2]));
        assert_eq!(published.update([2].into()), Some(vec![2]));
        assert_eq!(published.update([2].into()), None);
        assert_eq!(published.update([].into()), Some(vec![]));
        assert_eq!(published.update([].into()), None);
        assert_eq!(published.update([2].into()), Some(vec![2]));
        assert_eq!(published.update([1, 2].into()), Some(vec![1, 2]));
    }
}
