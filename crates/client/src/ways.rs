//! Ways to find peers that a daemon was started without, and that are opened when they are switched on.

use std::fmt;

use hawser_discovery::{AllowedWays, DhtNodes, LocalDiscovery, PeerFinder};

use crate::network::NetworkSettings;

/// Opens a way to find peers, or says why it cannot.
pub type OpenWay<T> = Box<dyn Fn() -> Result<T, String> + Send + Sync>;

/// What opens the ways to find peers when they are switched on. Each is called until it has succeeded once, and
/// may wait for the disk, not for others.
#[derive(Default)]
pub struct WayOpeners {
    /// Runs the nodes of the DHT; `None` if that needs another start of the daemon.
    pub dht: Option<OpenWay<DhtNodes>>,
    /// Joins local discovery; `None` if that needs another start of the daemon.
    pub local: Option<OpenWay<LocalDiscovery>>,
}

impl fmt::Debug for WayOpeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WayOpeners")
            .field("dht", &self.dht.is_some())
            .field("local", &self.local.is_some())
            .finish()
    }
}

/// How the peers of all torrents of a daemon are found, of which users switch ways on and off.
pub(crate) struct Ways {
    pub finder: PeerFinder,
    /// What was there at the start, which is on unless users have switched it off.
    at_start: AllowedWays,
    openers: WayOpeners,
}

impl Ways {
    pub fn new(finder: PeerFinder) -> Self {
        let at_start = AllowedWays {
            dht: finder.has_dht(),
            local: finder.has_local(),
        };
        Self {
            finder,
            at_start,
            openers: WayOpeners::default(),
        }
    }

    pub fn set_openers(&mut self, openers: WayOpeners) {
        self.openers = openers;
    }

    /// Opens what this change switches on and is not there. It is searched once [`Self::allow`] has it on.
    ///
    /// # Errors
    /// Why something cannot be opened.
    pub fn open(&self, change: &NetworkSettings) -> Result<(), String> {
        if change.dht == Some(true) && !self.finder.has_dht() {
            self.finder.add_dht(open("dht", self.openers.dht.as_ref())?);
        }
        if change.local == Some(true) && !self.finder.has_local() {
            let opened = open("local", self.openers.local.as_ref())?;
            self.finder.add_local(opened);
        }
        Ok(())
    }

    /// Has the ways be on as these settings say.
    pub fn allow(&self, settings: &NetworkSettings) {
        self.finder.allow(AllowedWays {
            dht: settings.dht.unwrap_or(self.at_start.dht),
            local: settings.local.unwrap_or(self.at_start.local),
        });
    }
}

fn open<T>(way: &str, opener: Option<&OpenWay<T>>) -> Result<T, String> {
    let opener = opener.ok_or_else(|| {
        format!("{way}: the daemon was started without: start it with --find ...,{way}")
    })?;
    opener().map_err(|reason| format!("{way}: {reason}"))
}
