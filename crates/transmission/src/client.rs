//! What a daemon implements: the torrents and the session that requests are about.

use crate::change::{Add, Added, Change, GroupChange, Setting};
use crate::error::CallError;
use crate::ids::{Ids, TorrentId};
use crate::session_view::{GroupView, SessionView, Space, Stats};
use crate::torrent::{Parts, TorrentView};

/// What a BitTorrent client must be able to do to be served. A call blocks until its answer is
/// there.
///
/// A torrent may be removed between two calls: an id that is not there any more is passed over.
pub trait Client {
    /// The numbers of these torrents, in the order of `ids`, or in ascending order if it does not
    /// list them. What is not there is passed over.
    fn resolve(&self, ids: &Ids) -> Vec<TorrentId>;

    /// The numbers of torrents that were removed within the last [`RECENT`](crate::RECENT).
    fn removed(&self) -> Vec<TorrentId>;

    /// Calls `show` for each of these torrents, in their order, with these parts of
    /// [`Detail`](crate::Detail) filled. One view may be filled again and again.
    fn show(&self, ids: &[TorrentId], parts: Parts, show: &mut dyn FnMut(&TorrentView));

    /// Adds a torrent. One that is there already is left as it is.
    ///
    /// # Errors
    /// [`CallError::UnrecognizedInfo`], [`CallError::CorruptTorrent`], [`CallError::Http`],
    /// [`CallError::FileIndex`], [`CallError::System`] or others: nothing is added then.
    fn add(&mut self, add: Add) -> Result<Added, CallError>;

    /// Does this to each of these torrents; nothing to one for which it is no change. Verification
    /// and announces are begun here and run later.
    ///
    /// # Errors
    /// If it is refused.
    fn act(&mut self, action: Action, ids: &[TorrentId]) -> Result<(), CallError>;

    /// Changes the settings of a torrent, in the order of the changes.
    ///
    /// # Errors
    /// [`CallError::FileIndex`], [`CallError::PieceIndex`], [`CallError::AnnounceList`],
    /// [`CallError::TrackerList`] or others. Changes before the wrong one may have been made.
    fn change(&mut self, id: TorrentId, changes: &[Change]) -> Result<(), CallError>;

    /// Removes torrents, with their content if `deletes_content`.
    ///
    /// # Errors
    /// If it is refused.
    fn remove(&mut self, ids: &[TorrentId], deletes_content: bool) -> Result<(), CallError>;

    /// Sets the folder of the content of torrents, an absolute path. If `moves`, the content is
    /// moved there; otherwise it is looked for there.
    ///
    /// # Errors
    /// If it is refused.
    fn relocate(&mut self, ids: &[TorrentId], folder: &str, moves: bool) -> Result<(), CallError>;

    /// Renames a file or folder of a torrent, given by its path as [`FileView`](crate::FileView)
    /// names it. The path is neither empty nor absolute and has no `..`; the name is one part of a
    /// path.
    ///
    /// # Errors
    /// If there is no such path, or the name is taken, or it is refused.
    fn rename(&mut self, id: TorrentId, path: &str, name: &str) -> Result<(), CallError>;

    /// The session.
    fn session(&self) -> SessionView;

    /// Changes the session, in the order of the settings. One that the daemon has no use for is to
    /// be ignored, as clients send all of theirs at once.
    ///
    /// # Errors
    /// If one is refused. Those before it may have been changed.
    fn set_session(&mut self, settings: &[Setting]) -> Result<(), CallError>;

    /// Transfers in numbers.
    fn stats(&self) -> Stats;

    /// The room at an absolute path.
    ///
    /// # Errors
    /// If it is not known.
    fn space(&self, path: &str) -> Result<Space, CallError>;

    /// Finds out whether peers can connect from outside, over this version of IP or over any.
    ///
    /// # Errors
    /// If it cannot be found out.
    fn test_port(&mut self, protocol: Option<IpProtocol>) -> Result<bool, CallError>;

    /// The bandwidth groups.
    fn groups(&self) -> Vec<GroupView>;

    /// Changes a bandwidth group, or makes it.
    ///
    /// # Errors
    /// If it is refused.
    fn set_group(&mut self, change: GroupChange) -> Result<(), CallError>;

    /// Ends the daemon soon: the answer is to be sent before.
    ///
    /// # Errors
    /// If it is refused.
    fn close(&mut self) -> Result<(), CallError>;
}

/// What is done to torrents as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Starts it when it is its turn.
    Start,
    /// Starts it now.
    StartNow,
    /// Stops it.
    Stop,
    /// Verifies its content.
    Verify,
    /// Announces it to its trackers now.
    Reannounce,
    /// Moves it to the front of the queue.
    QueueTop,
    /// Moves it one place forward.
    QueueUp,
    /// Moves it one place back.
    QueueDown,
    /// Moves it to the end of the queue.
    QueueBottom,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpProtocol {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}
