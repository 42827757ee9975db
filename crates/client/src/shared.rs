//! Values that are shared until they are changed.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value with one owner, of which others can hold snapshots that cost no copy. A change while a snapshot
/// exists copies the value first.
#[derive(Debug)]
pub(crate) struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Shares this value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// The value as it is now, which later changes do not reach.
    pub fn snapshot(&self) -> Arc<T> {
        Arc::clone(&self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_copied_only_when_it_is_changed_while_others_hold_it() {
        let mut shared = Shared::new(String::from("before"));
        let seen = shared.snapshot();
        assert!(std::ptr::eq(&*seen, &*shared));
        shared.push_str(" and after");
        assert_eq!(
            (seen.as_str(), shared.as_str()),
            ("before", "before and after")
        );
        let address = std::ptr::from_ref(&*shared);
        shared.push('.');
        assert_eq!(address, std::ptr::from_ref(&*shared));
    }
}
