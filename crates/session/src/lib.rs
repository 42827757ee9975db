//! What every transfer needs around the path manager.
//!
//! A transfer to a remote runs like this:
//!
//! 1. The [`Dialer`] offers the paths to the remote to a [`PathSet`](hawser_manager::PathSet), again
//!    whenever they change: mostly those that [`Endhost::watch`](hawser_endhost::Endhost::watch) returns.
//! 2. The path set orders dials. The dialer runs each as a task of its own, all at once.
//! 3. [`Dialer::next`] returns the outcome of each dial that is still wanted, and returns as well when the
//!    path set is due. The transfer reports the outcome to the path set, and later when the subflow stalls,
//!    recovers or is lost.
//! 4. [`Dialer::orders`] has the path set weigh the paths, carries out what concerns dials, and returns the
//!    other orders: subflows to hold, to resume and to close are the transfer's.
//! 5. When nothing is left to transfer, the demand becomes
//!    [`Demand::None`](hawser_manager::Demand::None) before subflows are closed: a path that is wanted is
//!    dialed again at once.
//!
//! ```no_run
//! use std::collections::HashMap;
//! use std::time::Instant;
//!
//! use hawser_manager::{Action, Carried, Demand, Failure};
//! use hawser_session::{Dialer, Remote};
//!
//! async fn transfer<C, R>(mut dialer: Dialer<R>, is_done: impl Fn(&[&C]) -> bool)
//! where
//!     R: Remote<Outcome = Result<C, String>>,
//! {
//!     let mut open = HashMap::new();
//!     while !is_done(&open.values().collect::<Vec<_>>()) {
//!         let (outcome, now) = (dialer.next().await, Instant::now());
//!         match outcome {
//!             Some((subflow, Ok(connection))) => {
//!                 dialer.paths.connected(subflow, None, now);
//!                 // The transfer begins to send over it.
//!                 open.insert(subflow, connection);
//!             }
//!             Some((subflow, Err(error))) => {
//!                 dialer.paths.lost(subflow, Failure::Failed, error, now);
//!             }
//!             None => {}
//!         }
//!         // With what each subflow has carried, paths are weighed; without, they are taken as they rank.
//!         for order in dialer.orders(|_| Carried::default(), now) {
//!             if let Action::Close { .. } = order.action {
//!                 open.remove(&order.subflow);
//!             }
//!         }
//!     }
//!     dialer.paths.set_demand(Demand::None);
//! }
//! ```
//!
//! The smallest transfers that obey a path set are `tests/copy.rs` of `hawser-manager`, without a network,
//! and the example `copy` of the crate `hawser`.
//!
//! A [`SharedPolicy`] says which paths may be used, and can be changed while transfers run.
//!
//! What both sides of a connection tell each other beside the content goes over its [`Control`] stream, as
//! messages of the transfer's own type ([`ControlMessage`]). Its life: the side that dialed
//! [opens](Control::open) it and writes the first message; the other side [accepts](Control::accept) both,
//! within [`FIRST_MESSAGE_TIMEOUT`]. Both may write and read more messages in turn, until one of them
//! [refuses](Control::refuse) the connection, or both know each other. Then a task of each side
//! [runs](Control::run) the stream: it sends what a [`MessageSender`] was given, which never waits, and
//! passes what arrives on to the transfer's own channel, as long as that has room. The transfer ends it by
//! [finishing](MessageSender::finish) its direction, which waits until the peer has received everything;
//! the peer's end, or a failure, is what the task returns. Only a stream that is run ends in order;
//! refusals are for peers that are not served.
//!
//! A transfer whose packets are sealed datagrams beside the connection learns from those that opened over
//! which lane to answer, and takes no other word for it ([`Sightings`]).
//!
//! One task owns a dialer. Dropping it cancels all dials. A transfer with many remotes, each with a path
//! set of its own, has one [`Dials`] and one [`Timer`] for all of them. Each dial is a task;
//! one that is cancelled has no outcome.
//!
//! The one lock is that of the messages that wait in a [`MessageQueue`]. It is held to add, take or drop
//! some, and never at an await. Offers and policies are in watch channels; a borrow of them is never held
//! at an await either. While the path set takes offers, [`Remote::fits`] runs under such a borrow, so it
//! must not wait.

mod control;
mod dialer;
mod dials;
mod policy;
mod sightings;
mod timer;

pub use self::control::{
    Control, ControlError, ControlMessage, FIRST_MESSAGE_TIMEOUT, Framing, MessageQueue,
    MessageSender, message_queue,
};
pub use self::dialer::{Dialer, Remote};
pub use self::dials::Dials;
pub use self::policy::{PolicyChanges, SharedPolicy};
pub use self::sightings::{First, Sightings};
pub use self::timer::Timer;
