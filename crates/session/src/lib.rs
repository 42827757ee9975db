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
//! What both sides of a connection tell each other beside the content goes over its [`Control`] stream, as
//! messages of the transfer's own type ([`ControlMessage`]). Its life: the side that dialed
//! [opens](Control::open) it and writes the first message; the other side [accepts](Control::accept) both,
//! within [`FIRST_MESSAGE_TIMEOUT`]. Both may write and read more messages in turn, until one of them
//! [refuses](Control::refuse) the connection, or both know each other. Then a task of each side
//! [runs](Control::run) the stream: it sends what a [`MessageSender`] was given, which never waits, and
//! passes what arrives on to the transfer's own channel, as long as that has room. The transfer ends it by
//! [finishing](MessageSender::finish) its direction, which waits until the peer has received everything;
//! the peer's end, or a failure, is what the task returns.
//!
//! A transfer whose packets are sealed datagrams beside the connection learns from those that opened over
//! which lane to answer, and takes no other word for it ([`Sightings`]).
//!
//! One task owns a dialer. Dropping it cancels all dials. A transfer with many remotes, each with a path
//! set of its own, has one [`Dials`] and one [`Timer`] for all of them.

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
