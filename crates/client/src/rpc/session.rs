//! What `session-set` changes. Each setting is read in one place: it is changed, or refused if it is to be
//! something else than it is.

use std::path::PathBuf;

use hawser_torrent::{EncryptionPolicy, IpTransports};
use hawser_transmission::{CallError, Encryption, SessionView, Setting, Transport};

use super::change::{count, rate};
use super::unsupported;
use crate::addresses::PeerAddresses;
use crate::alternative::AlternativeChanges;
use crate::network::NetworkSettings;
use crate::peer_limits::PeerChanges;
use crate::settings::{IncompleteChange, QueueChanges, RateChanges};
use crate::torrents::{CommandError, Torrents};

/// The changes of the session that one call makes together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SessionChanges {
    pub rates: RateChanges,
    pub queue: QueueChanges,
    pub alternative: AlternativeChanges,
    pub peers: PeerChanges,
    pub download_dir: Option<PathBuf>,
    pub incomplete: IncompleteChange,
    pub network: NetworkSettings,
}

impl SessionChanges {
    /// Reads changes of this session. It shows the port at the gateway in place of that of the addresses of
    /// peers.
    ///
    /// # Errors
    /// If one is not supported yet.
    pub fn read(
        settings: &[Setting],
        session: &SessionView,
        there: &PeerAddresses,
    ) -> Result<Self, CallError> {
        let network = &session.network;
        let changed = |is_on: bool, shown: bool| (is_on != shown).then_some(is_on);
        let mut read = Self::default();
        let mut transports = shown_transports(session);
        for setting in settings {
            match setting {
                Setting::DownLimit(kilobytes) => read.rates.download.rate = Some(rate(*kilobytes)),
                Setting::DownLimited(holds) => read.rates.download.holds = Some(*holds),
                Setting::UpLimit(kilobytes) => read.rates.upload.rate = Some(rate(*kilobytes)),
                Setting::UpLimited(holds) => read.rates.upload.holds = Some(*holds),
                Setting::DownloadQueue(size) => {
                    read.queue.downloads.value = Some(count(*size));
                }
                Setting::DownloadQueued(holds) => read.queue.downloads.holds = Some(*holds),
                Setting::SeedQueue(size) => read.queue.seeds.value = Some(count(*size)),
                Setting::SeedQueued(holds) => read.queue.seeds.holds = Some(*holds),
                Setting::RatioLimit(ratio) => read.queue.ratio.value = Some(*ratio),
                Setting::RatioLimited(holds) => read.queue.ratio.holds = Some(*holds),
                Setting::IdleLimit(minutes) => {
                    read.queue.idle.value = Some(minutes.saturating_mul(60));
                }
                Setting::IdleLimited(holds) => read.queue.idle.holds = Some(*holds),
                Setting::StartsAdded(starts) => read.queue.starts_added = Some(*starts),
                Setting::PeerLimit(limit) => read.peers.all = Some(count(*limit)),
                Setting::TorrentPeerLimit(limit) => read.peers.each = Some(count(*limit)),
                Setting::DownloadDir(folder) if *folder != session.folders.download_dir => {
                    read.download_dir = Some(folder.into());
                }
                Setting::DownloadDir(_) => {}
                Setting::IncompleteDir(folder) if *folder != session.folders.incomplete_dir => {
                    read.incomplete.folder = Some(folder.into());
                }
                Setting::IncompleteDir(_) => {}
                Setting::UsesIncompleteDir(is_on) => read.incomplete.is_on = Some(*is_on),
                Setting::Encryption(wanted) => {
                    let policy = Some(policy(*wanted));
                    read.network.encryption =
                        policy.filter(|_| *wanted != session.network.encryption);
                }
                Setting::Dht(is_on) => read.network.dht = changed(*is_on, network.dht),
                Setting::Lpd(is_on) => read.network.local = changed(*is_on, network.lpd),
                Setting::Pex(is_on) => read.network.exchange = changed(*is_on, network.pex),
                Setting::Utp(is_on) => transports = (transports.0, *is_on),
                Setting::Transports(wanted) => transports = from_list(wanted)?,
                other if set_alternative(other, &mut read.alternative) => {}
                other => check(other, session, there)?,
            }
        }
        if transports != shown_transports(session) {
            read.network.transports = Some(match transports {
                (true, true) => IpTransports::BOTH,
                (true, false) => IpTransports::TCP,
                (false, true) => IpTransports::UTP,
                (false, false) => {
                    let text = "TCP and uTP cannot both be off: leave one of them on".to_owned();
                    return Err(CallError::InvalidParams(text));
                }
            });
        }
        Ok(read)
    }

    /// Makes the changes, but for those of the network.
    pub fn apply(self, all: &mut Torrents) -> Result<(), CommandError> {
        all.change_queue(self.queue)?;
        all.change_alternative(self.alternative)?;
        all.change_incomplete(self.incomplete)?;
        all.change_all_rates(self.rates);
        all.change_peer_limits(self.peers);
        if let Some(folder) = self.download_dir {
            all.set_download_dir(folder)?;
        }
        Ok(())
    }
}

/// Whether TCP and uTP are used.
fn shown_transports(session: &SessionView) -> (bool, bool) {
    (session.network.tcp, session.network.utp)
}

/// The same of a list.
///
/// # Errors
/// If uTP is to come first.
fn from_list(list: &[Transport]) -> Result<(bool, bool), CallError> {
    match list {
        [Transport::Utp, Transport::Tcp, ..] => Err(unsupported("to dial over uTP before TCP")),
        list => Ok((
            list.contains(&Transport::Tcp),
            list.contains(&Transport::Utp),
        )),
    }
}

fn policy(encryption: Encryption) -> EncryptionPolicy {
    match encryption {
        Encryption::Required => EncryptionPolicy::Require,
        Encryption::Preferred => EncryptionPolicy::Prefer,
        Encryption::Allowed => EncryptionPolicy::Allow,
    }
}

/// Changes an alternative limit, if this is one. A number that is out of its bounds becomes one that is, too.
fn set_alternative(setting: &Setting, changes: &mut AlternativeChanges) -> bool {
    let minutes = |minutes: u64| Some(u16::try_from(minutes).unwrap_or(u16::MAX));
    let schedule = &mut changes.schedule;
    match setting {
        Setting::Alternative(holds) => changes.holds = Some(*holds),
        Setting::AlternativeDown(kilobytes) => changes.download = Some(rate(*kilobytes)),
        Setting::AlternativeUp(kilobytes) => changes.upload = Some(rate(*kilobytes)),
        Setting::Scheduled(holds) => schedule.is_on = Some(*holds),
        Setting::ScheduleBegin(time) => schedule.begin = minutes(*time),
        Setting::ScheduleEnd(time) => schedule.end = minutes(*time),
        Setting::ScheduleDays(bits) => {
            schedule.days = Some(u8::try_from(*bits).unwrap_or(u8::MAX));
        }
        _ => return false,
    }
    true
}

/// Checks a setting that cannot change while the daemon runs.
///
/// # Errors
/// If it is to be something else than it is.
fn check(setting: &Setting, session: &SessionView, there: &PeerAddresses) -> Result<(), CallError> {
    let local = there.tcp.map_or(0, |tcp| tcp.port());
    let (network, folders, adding) = (&session.network, &session.folders, &session.adding);
    let stalled = session.queues.stalled;
    let (is_same, what) = match setting {
        Setting::RenamesPartial(is_on) => (
            *is_on == folders.renames_partial,
            "to change the names of incomplete files while the daemon runs (--part-suffix)",
        ),
        Setting::DeletesOriginal(deletes) => (
            *deletes == adding.deletes_original,
            "to delete the files that torrents are added from (--watch-dir renames them)",
        ),
        Setting::SequentialAdded(is_sequential) => (
            *is_sequential == adding.is_sequential,
            "to download all torrents in order",
        ),
        Setting::DefaultTrackers(tiers) => (tiers.is_empty(), "trackers of all torrents"),
        Setting::StalledEnabled(is_on) => (*is_on == stalled.is_enabled, STALLED),
        Setting::StalledMinutes(minutes) => (*minutes == stalled.value, STALLED),
        Setting::Port(port) => (
            [network.port, local].contains(port),
            "to change the port while the daemon runs (--tcp)",
        ),
        Setting::RandomPort(is_random) => (
            *is_random == network.port_is_random,
            "another port at each start",
        ),
        Setting::PortForwarding(is_on) => (
            *is_on == network.is_forwarded,
            "to change while the daemon runs whether the gateway maps the port (--map-port)",
        ),
        Setting::RunsDoneScript(is_on) => (*is_on != session.done_script.is_empty(), SCRIPT),
        Setting::DoneScript(name) => (name.is_empty() || *name == session.done_script, SCRIPT),
        Setting::RequestQueue(requests) => (
            *requests == network.request_queue,
            "to change how many requests of a peer may wait",
        ),
        _ => (false, "this setting"),
    };
    match is_same {
        true => Ok(()),
        false => Err(unsupported(what)),
    }
}

/// What requests do not choose: a token lets one in to the torrents, not to programs of the host.
const SCRIPT: &str =
    "to change the program for completed torrents by a request (--on-complete of hawser daemon)";

const STALLED: &str = "to leave out stalled torrents of the queue";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(setting: Setting, session: &SessionView) -> Result<SessionChanges, CallError> {
        SessionChanges::read(&[setting], session, &PeerAddresses::default())
    }

    #[test]
    fn limits_are_in_minutes_and_in_kilobytes_of_1000_bytes() {
        let settings = [
            Setting::IdleLimit(2),
            Setting::DownloadQueued(false),
            Setting::SeedQueue(9),
            Setting::DownLimit(7),
            Setting::UpLimited(true),
        ];
        let read = SessionChanges::read(
            &settings,
            &SessionView::default(),
            &PeerAddresses::default(),
        )
        .unwrap();
        let queue = read.queue;
        assert_eq!((queue.idle.value, queue.idle.holds), (Some(120), None));
        assert_eq!(
            (queue.downloads.holds, queue.seeds.value),
            (Some(false), Some(9))
        );
        assert_eq!(
            (read.rates.download.rate, read.rates.upload.holds),
            (Some(56_000), Some(true))
        );
    }

    #[test]
    fn transports_change_and_one_stays_on() {
        let mut session = SessionView::default();
        session.network.tcp = true;
        let transports = |settings: &[Setting]| {
            let read = SessionChanges::read(settings, &session, &PeerAddresses::default());
            read.map(|read| read.network.transports)
        };
        let list = |list: &[Transport]| Setting::Transports(list.to_vec());
        let (tcp, utp) = (Transport::Tcp, Transport::Utp);
        assert_eq!(transports(&[Setting::Utp(false)]), Ok(None));
        let both = Ok(Some(IpTransports::BOTH));
        assert_eq!(transports(&[Setting::Utp(true)]), both);
        assert_eq!(transports(&[list(&[tcp, utp])]), both);
        assert_eq!(transports(&[list(&[utp])]), Ok(Some(IpTransports::UTP)));
        assert_eq!(transports(&[list(&[tcp])]), Ok(None));
        for refused in [&[list(&[utp, tcp])][..], &[list(&[])]] {
            assert!(transports(refused).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn encryption_that_is_shown_already_is_no_change() {
        let mut session = SessionView::default();
        session.network.encryption = Encryption::Allowed;
        let encryption = |wanted| read(Setting::Encryption(wanted), &session).unwrap();
        assert_eq!(encryption(Encryption::Allowed), SessionChanges::default());
        let changes = encryption(Encryption::Required);
        assert_eq!(changes.network.encryption, Some(EncryptionPolicy::Require));
    }

    #[test]
    fn what_changes_nothing_is_taken_and_the_rest_is_refused() {
        let mut session = SessionView::default();
        session.network.port = 7001;
        let there = PeerAddresses {
            tcp: Some(([127, 0, 0, 1], 6881).into()),
            ..PeerAddresses::default()
        };
        let check = |setting| SessionChanges::read(&[setting], &session, &there).is_ok();
        // The mapped port and the local one.
        assert!(check(Setting::Port(7001)) && check(Setting::Port(6881)));
        assert!(!check(Setting::Port(6882)));
        assert!(check(Setting::Dht(true)) && check(Setting::Lpd(true)));
        assert!(check(Setting::StalledMinutes(0)) && !check(Setting::StalledMinutes(5)));
    }

    #[test]
    fn the_program_for_completed_torrents_is_not_chosen_by_requests() {
        let session = SessionView {
            done_script: "/bin/true".into(),
            ..SessionView::default()
        };
        let (shown, none) = (&session, &SessionView::default());
        for (setting, session, works) in [
            (Setting::RunsDoneScript(true), shown, true),
            (Setting::RunsDoneScript(false), shown, false),
            (Setting::RunsDoneScript(true), none, false),
            (Setting::DoneScript("/bin/true".into()), shown, true),
            (Setting::DoneScript("/bin/sh".into()), shown, false),
            (Setting::DoneScript(String::new()), none, true),
            (Setting::DoneScript("/bin/sh".into()), none, false),
        ] {
            let read = read(setting.clone(), session);
            assert_eq!(read.is_ok(), works, "{setting:?}");
        }
    }
}
