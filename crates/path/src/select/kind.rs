//! What is known of a strategy before one is made: how it is written, and how to read it.

use std::fmt;
use std::sync::Arc;

use super::strategy::Strategy;

/// A kind of strategy: an entry of [`STRATEGIES`](super::STRATEGIES).
#[derive(Debug)]
pub struct Kind {
    /// What stands before the colon.
    pub name: &'static str,
    /// What may follow the name: `[:K|:any]`; empty where nothing may.
    pub argument: &'static str,
    /// What it does, in one clause for help texts.
    pub about: &'static str,
    /// Whether it picks a set of paths; the others rank.
    pub picks: bool,
    /// What to write in place of an argument that it does not take.
    pub(super) remedy: &'static str,
    /// Makes it from what follows the colon; `None` where that does not fit.
    pub(super) read: fn(Option<&str>) -> Option<Arc<dyn Strategy>>,
}

impl Kind {
    /// One that ranks, by its name alone.
    pub(super) const fn ranking(
        name: &'static str,
        about: &'static str,
        read: fn(Option<&str>) -> Option<Arc<dyn Strategy>>,
    ) -> Self {
        Self {
            name,
            argument: "",
            about,
            picks: false,
            remedy: "nothing after its name",
            read,
        }
    }
}

/// Makes a strategy that is written by its name alone.
pub(super) fn plain<S: Strategy + Default + 'static>(
    argument: Option<&str>,
) -> Option<Arc<dyn Strategy>> {
    argument.is_none().then(|| Arc::new(S::default()) as _)
}

/// Printed as it is written: `spread:N%`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.argument)
    }
}
