//! Methods of services.

use std::fmt;
use std::marker::PhantomData;

/// A method of a service, which takes a message `Q` and answers with a message `A`.
pub struct Method<Q, A> {
    path: &'static str,
    messages: PhantomData<fn(Q) -> A>,
}

impl<Q, A> Method<Q, A> {
    /// The method with a path, `/SERVICE/METHOD`.
    pub const fn new(path: &'static str) -> Self {
        Self {
            path,
            messages: PhantomData,
        }
    }

    /// The path of its URL: `/SERVICE/METHOD`.
    pub const fn path(&self) -> &'static str {
        self.path
    }

    /// Its name, without that of its service.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

// Derived, these would demand the same of the messages.
impl<Q, A> Clone for Method<Q, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q, A> Copy for Method<Q, A> {}

impl<Q, A> fmt::Debug for Method<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Method").field(&self.path).finish()
    }
}
