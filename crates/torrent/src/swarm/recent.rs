//! A map with a bounded number of entries, whose oldest makes room for a new one.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A map that keeps the entries inserted last.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    entries: HashMap<K, (u64, V)>,
    /// The keys by the number of their insertion.
    by_age: BTreeMap<u64, K>,
    inserted: u64,
    max: usize,
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    /// Keeps at most `max` entries, 1 at least.
    pub fn new(max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            by_age: BTreeMap::new(),
            inserted: 0,
            max: max.max(1),
        }
    }

    /// Inserts an entry, in place of one with the same key, as the newest. Returns the key of the oldest if
    /// that makes room for it.
    pub fn insert(&mut self, key: K, value: V) -> Option<K> {
        self.remove(&key);
        let removed = match self.entries.len() < self.max {
            true => None,
            false => self.by_age.pop_first().map(|(_, oldest)| oldest),
        };
        if let Some(oldest) = &removed {
            self.entries.remove(oldest);
        }
        self.inserted += 1;
        self.by_age.insert(self.inserted, key.clone());
        self.entries.insert(key, (self.inserted, value));
        removed
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|(_, value)| value)
    }

    pub fn contains(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        let (number, value) = self.entries.remove(key)?;
        self.by_age.remove(&number);
        Some(value)
    }

    /// Number of entries.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.by_age.len());
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_newest_entries_are_kept(
            max in 1..8_usize,
            steps in prop::collection::vec((any::<bool>(), 0..12_u8), 0..100),
        ) {
            let mut map = Recent::new(max);
            let mut model: Vec<u8> = Vec::new();
            for (inserts, key) in steps {
                let known = model.iter().position(|it| *it == key);
                let known = known.map(|at| model.remove(at));
                if inserts {
                    let oldest = (model.len() == max).then(|| model.remove(0));
                    model.push(key);
                    prop_assert_eq!(map.insert(key, key), oldest);
                } else {
                    prop_assert_eq!(map.remove(&key), known);
                }
                prop_assert_eq!(map.len(), model.len());
                for key in 0..12 {
                    prop_assert_eq!(map.get(&key).is_some(), model.contains(&key));
                }
            }
        }
    }
}
