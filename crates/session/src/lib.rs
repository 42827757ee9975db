//! What every transfer needs around the path manager.
//!
//! A transfer to a remote runs like this:
//!
//! 1. The [`Dialer`] offers the paths to the remote to a [`PathSet`](hawser_manager::PathSet), again
//!    whenever they change.
//! 2. The path set orders dials. The dialer runs each as a task of its own, all at once.
//! 3. [`Dialer::next`] returns the outcome of each dial that is still wanted, and returns as well when the
//!    path set is due. The transfer reports to the path set when the subflow delivers, stalls, recovers or
//!    ends.
//! 4. [`Dialer::orders`] has the path set weigh the paths, carries out what concerns dials, and returns the
//!    other orders: subflows to hold, to resume and to close are the transfer's.
//!
//! A [`SharedPolicy`] says which paths may be used, and can be changed while transfers run.
//!
//! One task owns a dialer. Dropping it cancels all dials. A transfer with many remotes, each with a path
//! set of its own, has one [`Dials`] and one [`Timer`] for all of them.

mod dialer;
mod dials;
mod policy;
mod timer;

pub use self::dialer::{Dialer, Remote};
pub use self::dials::Dials;
pub use self::policy::{PolicyChanges, SharedPolicy};
pub use self::timer::Timer;
