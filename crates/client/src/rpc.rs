//! Transmission's RPC over the torrents of a host. Each call blocks until it is answered.
//!
//! What hawser cannot do yet is refused with [`UNSUPPORTED`]: cookies for URLs. A value that changes nothing is
//! taken, as clients send all of theirs at once.

mod change;
mod session;
mod show;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hawser_torrent::Metainfo;
use hawser_torrent::metainfo::MAX_METAINFO_BYTES;
use hawser_transmission::{
    Action, Add, Added, CallError, Change, Client as Calls, GroupChange, GroupView, Ids,
    IpProtocol, Parts, RECENT, SessionView, Setting, Space, Stats, TorrentId, TorrentRef,
    TorrentView, Totals,
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use self::change::Changes;
use self::session::SessionChanges;
use self::show::Kept;
use crate::UNSUPPORTED;
use crate::addresses::PeerAddresses;
use crate::client::{Client, NewTorrent, Source};
use crate::error::ClientError;
use crate::fetch::Cookies;
use crate::record::Pending;
use crate::renames::Rename;
use crate::settings::Settings;
use crate::torrents::{Bounds, CommandError, Move, Torrents};
use crate::view::View;

/// The calls of one request.
pub(crate) struct Rpc<'a> {
    client: &'a Client,
    addresses: &'a PeerAddresses,
    stop: &'a CancellationToken,
    runtime: Handle,
}

/// The error for what hawser cannot do yet.
fn unsupported(what: &str) -> CallError {
    CallError::System(format!("{what} {UNSUPPORTED}"))
}

fn failed(error: &ClientError) -> CallError {
    match error {
        ClientError::Refused(CommandError::SameTrackers(_)) => CallError::AnnounceList,
        error => CallError::System(error.to_string()),
    }
}

fn id(view: &View) -> TorrentId {
    TorrentId::try_from(view.number).unwrap_or(TorrentId::MAX)
}

impl<'a> Rpc<'a> {
    /// For calls from a thread that may block.
    pub fn new(
        client: &'a Client,
        addresses: &'a PeerAddresses,
        stop: &'a CancellationToken,
        runtime: Handle,
    ) -> Self {
        Self {
            client,
            addresses,
            stop,
            runtime,
        }
    }

    /// The torrents but for those that are being removed; none if the daemon is stopping.
    fn views(&self) -> Vec<View> {
        let views = self.runtime.block_on(self.client.views());
        let mut views = views.unwrap_or_default();
        views.retain(|view| !matches!(view.record.pending, Some(Pending::Remove { .. })));
        views
    }

    /// What holds for all torrents.
    fn bounds(&self) -> Bounds {
        self.runtime
            .block_on(self.client.bounds())
            .unwrap_or_default()
    }

    /// The torrents with these numbers, in their order.
    fn views_of(&self, ids: &[TorrentId]) -> Vec<View> {
        let views = self.views();
        let found = ids
            .iter()
            .filter_map(|wanted| views.iter().find(|view| id(view) == *wanted));
        found.cloned().collect()
    }

    /// Does something to each torrent. One that was removed meanwhile is passed over.
    fn each(
        &self,
        ids: &[TorrentId],
        call: impl Fn(&mut Torrents, hawser_torrent::InfoHash) -> Result<(), CommandError>
        + Clone
        + Send
        + 'static,
    ) -> Result<(), CallError> {
        let views = self.views_of(ids).into_iter();
        all_of(views.map(|view| {
            let (call, hash) = (call.clone(), view.record.info_hash);
            let changed = self.client.change(move |all| call(all, hash));
            match self.runtime.block_on(changed) {
                Ok(()) | Err(ClientError::Refused(CommandError::Unknown(_))) => Ok(()),
                Err(error) => Err(failed(&error)),
            }
        }))
    }
}

/// Does all of these, also after one that fails, and returns the first error.
fn all_of(outcomes: impl Iterator<Item = Result<(), CallError>>) -> Result<(), CallError> {
    let mut all = Ok(());
    for outcome in outcomes {
        all = all.and(outcome);
    }
    all
}

/// Reads a `.torrent` file on this host.
fn read(path: &str) -> Result<Vec<u8>, CallError> {
    let mut bytes = Vec::new();
    // One more byte shows that it is too long, which its reader says.
    let limit = MAX_METAINFO_BYTES as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    read.map_err(|error| CallError::System(format!("{path}: {error}")))?;
    Ok(bytes)
}

impl Calls for Rpc<'_> {
    fn resolve(&self, ids: &Ids) -> Vec<TorrentId> {
        let mut views = self.views();
        match ids {
            Ids::All => {}
            Ids::RecentlyActive => {
                views.retain(|view| view.live.is_some() || view.changed <= RECENT)
            }
            Ids::List(list) => {
                let find = |one: &TorrentRef| {
                    let is_it = |view: &&View| match one {
                        TorrentRef::Id(number) => id(view) == *number,
                        TorrentRef::Hash(hash) => view.record.info_hash.0 == *hash,
                        TorrentRef::Unknown => false,
                    };
                    views.iter().find(is_it).map(id)
                };
                return list.iter().filter_map(find).collect();
            }
        }
        let mut found: Vec<TorrentId> = views.iter().map(id).collect();
        found.sort_unstable();
        found
    }

    fn removed(&self) -> Vec<TorrentId> {
        let removed = self.runtime.block_on(self.client.removed_within(RECENT));
        let removed = removed.unwrap_or_default().into_iter();
        removed
            .filter_map(|number| TorrentId::try_from(number).ok())
            .collect()
    }

    fn show(&self, ids: &[TorrentId], parts: Parts, show: &mut dyn FnMut(&TorrentView)) {
        let all = self.bounds().all;
        for view in self.views_of(ids) {
            let needs_metainfo = [
                Parts::TEXTS,
                Parts::FILES,
                Parts::PIECES,
                Parts::AVAILABILITY,
            ];
            let needs_metainfo = needs_metainfo.iter().any(|part| parts.contains(*part));
            // One that is damaged is reported as the failure of its torrent when that runs.
            let metainfo = match needs_metainfo || self::show::needs_content(&view) {
                true => self
                    .runtime
                    .block_on(self.client.metainfo(&view))
                    .ok()
                    .flatten(),
                false => None,
            };
            let needs_files = parts.contains(Parts::FILES) || parts.contains(Parts::PIECES);
            let files = metainfo.as_ref().filter(|_| needs_files).and_then(|it| {
                let files = self.client.files(&view, it);
                self.runtime.block_on(files)
            });
            let kept = Kept {
                metainfo: metainfo.as_deref(),
                path: &self.client.metainfo_path(view.record.info_hash),
                files: files.as_ref(),
                max_peers: all.peers.each,
                numbers: all.queue.seed_numbers(),
            };
            show(&self::show::torrent(&view, &kept, parts));
        }
    }

    fn add(&mut self, add: Add) -> Result<Added, CallError> {
        let shown = self.bounds().all.queue.seed_numbers();
        let mut changes = Changes::read(&add.changes, Default::default(), shown)?;
        let is_file = !matches!(add.source, hawser_transmission::Source::Magnet(_));
        let source = match add.source {
            hawser_transmission::Source::Metainfo(bytes) => Source::Metainfo(bytes),
            hawser_transmission::Source::Magnet(link) => Source::Magnet(link),
            hawser_transmission::Source::Path(path) => Source::Metainfo(read(&path)?),
            hawser_transmission::Source::Url { url, cookies } => Source::Url {
                url,
                cookies: cookies.filter(|it| !it.is_empty()).map(Cookies::new),
            },
        };
        // Indices that are out of range are no error to Transmission.
        if let Source::Metainfo(bytes) = &source
            && !changes.files.each.is_empty()
            && let Ok(metainfo) = Metainfo::parse(bytes)
        {
            changes.files.drop_unknown(metainfo.files.len());
        }
        let mut settings = Settings {
            seeding: changes.limits,
            seed_numbers: changes.numbers,
            max_peers: changes.max_peers,
            priority: changes.outer.priority.unwrap_or_default(),
            ..Settings::default()
        };
        changes.rates.apply(&mut settings.rates);
        settings.files.change(&changes.files);
        let new = NewTorrent {
            folder: add.download_dir.map(Into::into),
            started: add.is_paused.map(|is_paused| !is_paused),
            labels: changes.labels.clone().unwrap_or_default(),
            settings,
            ..NewTorrent::new(source)
        };
        let added = self.runtime.block_on(self.client.add(new));
        let added = added.map_err(|error| match error {
            ClientError::Invalid(_) if is_file => CallError::CorruptTorrent,
            ClientError::Invalid(text) => CallError::System(text),
            error => failed(&error),
        })?;
        let hash = added.info_hash;
        if let Some(position) = changes.position.filter(|_| added.merged.is_none()) {
            let to = Move::To(position);
            let moved = self
                .runtime
                .block_on(self.client.change(move |all| all.reorder(hash, to)));
            moved.map_err(|error| failed(&error))?;
        }
        let view = self.runtime.block_on(self.client.view(hash));
        let view = view.map_err(|error| failed(&error))?;
        Ok(Added {
            id: id(&view),
            hash: hash.0,
            name: view.record.name.clone(),
            is_duplicate: added.merged.is_some(),
        })
    }

    fn act(&mut self, action: Action, ids: &[TorrentId]) -> Result<(), CallError> {
        match action {
            Action::Start => self.each(ids, Torrents::start),
            Action::StartNow => self.each(ids, Torrents::start_now),
            Action::Stop => self.each(ids, Torrents::stop),
            Action::Verify => self.each(ids, Torrents::verify),
            Action::Reannounce => self.each(ids, Torrents::reannounce),
            Action::QueueTop => {
                // So that they keep their order.
                let backwards: Vec<TorrentId> = ids.iter().rev().copied().collect();
                self.each(&backwards, |all, hash| all.reorder(hash, Move::Top))
            }
            Action::QueueUp => self.each(ids, |all, hash| all.reorder(hash, Move::Up)),
            Action::QueueDown => {
                let backwards: Vec<TorrentId> = ids.iter().rev().copied().collect();
                self.each(&backwards, |all, hash| all.reorder(hash, Move::Down))
            }
            Action::QueueBottom => self.each(ids, |all, hash| all.reorder(hash, Move::Bottom)),
        }
    }

    fn change(&mut self, id: TorrentId, changes: &[Change]) -> Result<(), CallError> {
        let Some(view) = self.views_of(&[id]).pop() else {
            return Ok(());
        };
        let settings = &view.record.settings;
        let shown = settings
            .seed_numbers
            .or(self.bounds().all.queue.seed_numbers());
        let mut changes = Changes::read(changes, settings.seeding, shown)?;
        if !changes.files.each.is_empty() || !changes.trackers.is_empty() {
            let metainfo = self.runtime.block_on(self.client.metainfo(&view));
            let metainfo = metainfo.map_err(|error| failed(&error))?;
            changes.named = view
                .record
                .named_trackers(metainfo.as_deref())
                .unwrap_or_default();
            if let Some(metainfo) = metainfo {
                changes.files.drop_unknown(metainfo.files.len());
            }
        }
        self.each(&[id], move |all, hash| {
            all.change_one(hash, |all| changes.apply(all, hash))
        })
    }

    fn remove(&mut self, ids: &[TorrentId], deletes_content: bool) -> Result<(), CallError> {
        self.each(ids, move |all, hash| all.remove(hash, deletes_content))
    }

    fn relocate(&mut self, ids: &[TorrentId], folder: &str, moves: bool) -> Result<(), CallError> {
        let folder = folder.to_owned();
        self.each(ids, move |all, hash| {
            all.relocate(hash, folder.clone().into(), moves)
        })
    }

    fn rename(&mut self, id: TorrentId, path: &str, name: &str) -> Result<(), CallError> {
        let Some(view) = self.views_of(&[id]).pop() else {
            return Ok(());
        };
        let rename = Rename {
            path: path.to_owned(),
            name: name.to_owned(),
        };
        let renamed = self.client.rename(view.record.info_hash, rename);
        let renamed = self.runtime.block_on(renamed);
        renamed.map_err(|error| failed(&error))
    }

    fn session(&self) -> SessionView {
        let bounds = self.bounds();
        let folder = self.client.download_dir_of(&bounds);
        let done_script = self.client.on_complete();
        let free = nearest_space(&folder).ok().map(|space| space.free);
        let mut session = show::session(&bounds, self.addresses, &folder, free);
        session.done_script = done_script.map_or(String::new(), |path| path.display().to_string());
        let state = self.client.state_folder();
        let state = std::path::absolute(state).unwrap_or_else(|_| state.to_owned());
        session.config_dir = state.display().to_string();
        let mapping = self.client.port_mapping();
        session.network.is_forwarded = mapping.is_some();
        if let Some(port) = mapping.and_then(|mapping| mapping.tcp_port()) {
            session.network.port = port;
        }
        session.folders.renames_partial = self.client.storage().part_suffix;
        show::network(self.client.network(), &mut session.network);
        session
    }

    fn set_session(&mut self, settings: &[Setting]) -> Result<(), CallError> {
        let changes = SessionChanges::read(settings, &self.session(), self.addresses)?;
        let network = changes.network;
        let changed = self
            .client
            .change_all(network, move |all| changes.apply(all));
        let changed = self.runtime.block_on(changed);
        changed.map_err(|error| failed(&error))
    }

    fn stats(&self) -> Stats {
        let views = self.views();
        let transferred = self
            .runtime
            .block_on(self.client.transferred())
            .unwrap_or_default();
        let running = views.iter().filter(|view| view.live.is_some());
        let sum = |number: fn(&View) -> u64| views.iter().map(number).sum::<u64>();
        let current = Totals {
            uploaded: transferred.uploaded,
            downloaded: transferred.downloaded,
            seconds: self.client.age().as_secs(),
            sessions: 1,
            ..Totals::default()
        };
        Stats {
            torrents: views.len() as u64,
            active: running.count() as u64,
            down_rate: sum(|view| view.rates().down / 8),
            up_rate: sum(|view| view.rates().up / 8),
            current,
            // Of the torrents that are there, and of this session.
            cumulative: Totals {
                uploaded: sum(|view| view.record.totals.uploaded).max(current.uploaded),
                downloaded: sum(|view| view.record.totals.downloaded).max(current.downloaded),
                ..current
            },
        }
    }

    fn space(&self, path: &str) -> Result<Space, CallError> {
        free_space(Path::new(path)).map_err(|error| CallError::System(format!("{path}: {error}")))
    }

    fn test_port(&mut self, _: Option<IpProtocol>) -> Result<bool, CallError> {
        Err(unsupported("testing the port from outside"))
    }

    fn groups(&self) -> Vec<GroupView> {
        let groups = self.bounds().all.groups;
        groups.into_iter().map(show::group).collect()
    }

    fn set_group(&mut self, change: GroupChange) -> Result<(), CallError> {
        let changes = change::group(&change);
        let changed = self
            .client
            .change(move |all| all.change_group(&change.name, changes));
        let changed = self.runtime.block_on(changed);
        changed.map_err(|error| failed(&error))
    }

    fn close(&mut self) -> Result<(), CallError> {
        self.stop.cancel();
        Ok(())
    }
}

/// The room in the file system of a folder, which is made when it is needed: of the nearest one above it that exists.
fn nearest_space(folder: &Path) -> Result<Space, rustix::io::Errno> {
    let mut outcome = Err(rustix::io::Errno::NOENT);
    for path in folder.ancestors() {
        outcome = free_space(path);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// The room in the file system of a folder.
fn free_space(folder: &Path) -> Result<Space, rustix::io::Errno> {
    let found = rustix::fs::statvfs(folder)?;
    let block = found.f_frsize.max(1);
    Ok(Space {
        free: found.f_bavail.saturating_mul(block),
        total: found.f_blocks.saturating_mul(block),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_torrent_that_fails_keeps_no_other_from_changing() {
        let mut done = Vec::new();
        let outcomes = [Ok(()), Err("a"), Err("b"), Ok(())];
        let outcome = all_of(outcomes.into_iter().enumerate().map(|(at, outcome)| {
            done.push(at);
            outcome.map_err(|text| CallError::System(text.to_owned()))
        }));
        assert_eq!(outcome, Err(CallError::System("a".to_owned())));
        assert_eq!(done, [0, 1, 2, 3]);
    }
}
