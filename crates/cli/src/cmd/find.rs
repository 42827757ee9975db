//! Finding peers while a torrent is downloaded or seeded.

mod dht;
mod finding;

use clap::ValueEnum;
use hawser_client::NetworkSettings;
use hawser_discovery::DhtNode;
use hawser_torrent::{InfoHash, Metainfo};

pub use self::dht::Dht;
pub use self::finding::{Finding, finder, of_download, of_seeder, open_local};
use super::network::Sockets;
use super::{folders, headings};
use crate::failure::Failure;

#[derive(Clone, clap::Args)]
pub struct FindArgs {
    /// Ways to find peers: tracker, dht, local (on the own network), pex (from peers), or none; with
    /// commas between them [default: tracker,pex where the torrent or the link names trackers, dht,pex
    /// where nodes of the DHT are named, else none]
    ///
    /// With dht, and without --dht-node, the public DHT is asked. Private torrents are found by
    /// trackers alone.
    #[arg(
        long,
        value_name = "WAY,...",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    find: Option<Vec<Way>>,
    /// A node of the DHT to begin with: router.example.org:6881, or over SCION
    /// 1-ff00:0:110,10.0.0.1:31000. May be given several times
    #[arg(long, value_name = "HOST:PORT", help_heading = headings::FINDING, hide_short_help = true)]
    dht_node: Vec<DhtNode>,
    /// The UDP port of this program's node of the DHT over IP; over SCION it is the one after it [default:
    /// over IP that of --tcp, else any]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..65535), help_heading = headings::FINDING, hide_short_help = true)]
    dht_port: Option<u16>,
}

/// A way to find peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    Tracker,
    Dht,
    Local,
    Pex,
    None,
}

/// What is known of a torrent whose peers are to be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    pub info_hash: InfoHash,
    /// Its trackers, in tiers.
    pub trackers: Vec<Vec<String>>,
    /// Nodes of the DHT that it names.
    pub nodes: Vec<DhtNode>,
    /// Whether its peers may come from its trackers alone (BEP 27); `None` while that is not known.
    pub is_private: Option<bool>,
    /// Bytes that are missing, as far as that is known.
    pub left: u64,
    /// Whether something of it may be missing.
    pub downloads: bool,
}

impl Sought {
    /// A torrent of which nothing is missing.
    pub fn seeded(metainfo: &Metainfo) -> Self {
        let nodes = metainfo.sources.nodes.iter();
        let nodes = nodes.filter_map(|(host, port)| DhtNode::at(host, *port));
        Self {
            info_hash: metainfo.info_hash,
            trackers: metainfo.sources.trackers.clone(),
            nodes: nodes.collect(),
            is_private: Some(metainfo.private),
            left: 0,
            downloads: false,
        }
    }

    /// A torrent that is downloaded.
    pub fn missing(metainfo: &Metainfo) -> Self {
        Self {
            left: metainfo.pieces.total,
            downloads: true,
            ..Self::seeded(metainfo)
        }
    }
}

/// The ways that are used for a torrent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ways {
    pub trackers: bool,
    pub dht: bool,
    /// Multicast on the own network.
    pub local: bool,
    /// Peers tell each other of peers.
    pub pex: bool,
}

impl Ways {
    /// Whether peers are found at all.
    pub fn any(self) -> bool {
        self.brings_first() || self.pex
    }

    /// The ways to find peers when none is known yet, as `--find` names them.
    pub fn first(self) -> Vec<&'static str> {
        let ways = [
            (self.trackers, "tracker"),
            (self.dht, "dht"),
            (self.local, "local"),
        ];
        let used = ways.into_iter().filter(|(is_used, _)| *is_used);
        used.map(|(_, name)| name).collect()
    }

    /// Whether peers are found without any that is known.
    pub fn brings_first(self) -> bool {
        !self.first().is_empty()
    }
}

impl FindArgs {
    /// Whether the user asks for the DHT by name.
    fn asks_for_dht(&self) -> bool {
        self.has(Way::Dht)
    }

    /// The same, and the DHT asked for by name.
    pub fn with_dht(&self) -> Self {
        let mut args = self.clone();
        args.find.get_or_insert_default().push(Way::Dht);
        args
    }

    fn has(&self, way: Way) -> bool {
        self.find.as_ref().is_some_and(|ways| ways.contains(&way))
    }

    /// Which ways of a daemon the user names, beside trackers: these are on, whatever was switched off before.
    pub fn named(&self) -> NetworkSettings {
        let named = |way| self.has(way).then_some(true);
        NetworkSettings {
            dht: named(Way::Dht),
            local: named(Way::Local),
            exchange: named(Way::Pex),
            ..NetworkSettings::default()
        }
    }

    /// The ways for a torrent.
    ///
    /// # Errors
    /// Wrong use, if flags exclude each other, trackers are to be asked and there is none, or a private
    /// torrent is to be found elsewhere.
    pub fn ways(&self, sought: &Sought) -> Result<Ways, Failure> {
        let ways = self.ways_with(sought)?;
        if !self.dht_node.is_empty() && !ways.dht {
            let text = "--dht-node: --find leaves the DHT out: add dht to it";
            return Err(Failure::usage(text));
        }
        if self.dht_port.is_some() && !ways.dht {
            let text = "--dht-port: the DHT is not used: add --find dht, or --dht-node";
            return Err(Failure::usage(text));
        }
        Ok(ways)
    }

    /// As [`Self::ways`], also where flags of the DHT are given and it is not used.
    fn ways_with(&self, sought: &Sought) -> Result<Ways, Failure> {
        let (has_trackers, is_private) =
            (!sought.trackers.is_empty(), sought.is_private == Some(true));
        let names_nodes = !self.dht_node.is_empty();
        let ways = match &self.find {
            None => {
                let dht = names_nodes || !sought.nodes.is_empty() && !is_private;
                Ways {
                    trackers: has_trackers,
                    dht,
                    local: false,
                    pex: has_trackers || dht,
                }
            }
            Some(_) => Ways {
                trackers: self.has(Way::Tracker),
                dht: self.has(Way::Dht),
                local: self.has(Way::Local),
                pex: self.has(Way::Pex),
            },
        };
        let wrong = |text: &str| Err(Failure::usage(text));
        if self.has(Way::None) && ways.any() {
            return wrong("--find: none excludes the other ways: leave it out, or them");
        }
        if ways.trackers && !has_trackers {
            return wrong("--find tracker: the torrent names no tracker: leave it out");
        }
        if (ways.dht || ways.local) && is_private {
            let flag = match (names_nodes, ways.dht) {
                (true, _) => "--dht-node",
                (false, true) => "--find dht",
                (false, false) => "--find local",
            };
            return Err(Failure::usage(format!(
                "{flag}: the torrent is private, so its peers come from its trackers alone (BEP 27): \
                 leave it out"
            )));
        }
        Ok(ways)
    }

    /// The ways for all torrents of a daemon: each is asked where a torrent has it. The DHT may be switched on while
    /// the daemon runs, so its flags may be given without it.
    ///
    /// # Errors
    /// Wrong use, if flags exclude each other.
    pub fn ways_of_all(&self) -> Result<Ways, Failure> {
        let sought = Sought {
            info_hash: InfoHash([0; 20]),
            // Stands for those of any torrent.
            trackers: vec![Vec::new()],
            nodes: Vec::new(),
            is_private: None,
            left: 0,
            downloads: true,
        };
        self.ways_with(&sought)
    }

    /// Runs the nodes of this program for a torrent, if `ways` say so.
    ///
    /// # Errors
    /// If no node can be opened.
    pub fn open_dht(
        &self,
        ways: Ways,
        sought: &Sought,
        sockets: &Sockets,
    ) -> Result<Option<Dht>, Failure> {
        if !ways.dht {
            return Ok(None);
        }
        let folder = folders::kept("dht");
        Ok(Some(Dht::open(self, &sought.nodes, sockets, folder)?))
    }

    /// The first SCION node that the user names, which makes a SCION network necessary.
    pub fn scion_node(&self) -> Option<&DhtNode> {
        let mut nodes = self.dht_node.iter();
        nodes.find(|node| matches!(node, DhtNode::Addr(addr) if addr.scion().is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sought(has_trackers: bool, has_nodes: bool, is_private: Option<bool>) -> Sought {
        let trackers = has_trackers.then(|| vec!["udp://a.example:1".to_owned()]);
        let nodes = has_nodes.then(|| DhtNode::Name("b.example".to_owned(), 2));
        Sought {
            info_hash: InfoHash([1; 20]),
            trackers: trackers.into_iter().collect(),
            nodes: nodes.into_iter().collect(),
            is_private,
            left: 1,
            downloads: true,
        }
    }

    fn args(find: Option<Vec<Way>>, nodes: &[&str], dht_port: Option<u16>) -> FindArgs {
        FindArgs {
            find,
            dht_node: nodes.iter().map(|node| node.parse().unwrap()).collect(),
            dht_port,
        }
    }

    fn ways(trackers: bool, dht: bool, pex: bool) -> Ways {
        Ways {
            trackers,
            dht,
            local: false,
            pex,
        }
    }

    #[test]
    fn what_the_torrent_names_is_asked_unless_ways_are_named() {
        let none = |sought| args(None, &[], None).ways(&sought).unwrap();
        let public = Some(false);
        assert_eq!(none(sought(true, false, public)), ways(true, false, true));
        assert_eq!(none(sought(false, false, public)), Ways::default());
        assert_eq!(none(sought(false, false, None)), Ways::default());
        assert_eq!(none(sought(false, true, public)), ways(false, true, true));
        assert_eq!(none(sought(true, true, public)), ways(true, true, true));
        // The engine exchanges no peers of a private torrent.
        let private = sought(true, true, Some(true));
        assert_eq!(none(private), ways(true, false, true));
    }

    #[test]
    fn flags_choose_the_ways() {
        let chosen = |find: &[Way], nodes: &[&str]| {
            let find = (!find.is_empty()).then(|| find.to_vec());
            let sought = sought(true, true, Some(false));
            args(find, nodes, None).ways(&sought).unwrap()
        };
        assert_eq!(chosen(&[Way::None], &[]), Ways::default());
        assert_eq!(chosen(&[Way::Pex], &[]), ways(false, false, true));
        assert_eq!(chosen(&[Way::Dht], &[]), ways(false, true, false));
        assert_eq!(chosen(&[], &["10.0.0.1:1"]), ways(true, true, true));
        let both = [Way::Dht, Way::Tracker];
        assert_eq!(chosen(&both, &["10.0.0.1:1"]), ways(true, true, false));
        let local = Ways {
            local: true,
            ..Ways::default()
        };
        assert_eq!(chosen(&[Way::Local], &[]), local);
        assert!(local.brings_first());
        let pex = chosen(&[Way::Pex], &[]);
        assert!(pex.any() && !pex.brings_first());
    }

    #[test]
    fn a_daemon_uses_what_torrents_name_and_the_dht_if_that_is_named() {
        let chosen = |find, nodes: &[&str]| args(find, nodes, None).ways_of_all();
        assert_eq!(chosen(None, &[]).unwrap(), ways(true, false, true));
        let by_node = chosen(None, &["10.0.0.1:1"]).unwrap();
        assert_eq!(by_node, ways(true, true, true));
        let none = chosen(Some(vec![Way::None]), &[]).unwrap();
        assert_eq!(none, Ways::default());
        let dht = chosen(Some(vec![Way::Dht]), &[]).unwrap();
        assert_eq!(dht, ways(false, true, false));
        assert!(chosen(Some(vec![Way::None, Way::Pex]), &[]).is_err());
    }

    #[test]
    fn what_excludes_each_other_is_wrong_use() {
        let dht = || Some(vec![Way::Dht]);
        let (node, named) = (["10.0.0.1:1"], sought(true, true, Some(false)));
        let plain = sought(false, false, Some(false));
        let private = sought(true, true, Some(true));
        let none_and_pex = Some(vec![Way::None, Way::Pex]);
        for (args, sought, hint) in [
            (args(none_and_pex, &[], None), &named, "none excludes"),
            (
                args(Some(vec![Way::Tracker]), &[], None),
                &plain,
                "no tracker",
            ),
            (args(Some(vec![Way::None]), &node, None), &named, "--find"),
            (args(Some(vec![Way::Pex]), &node, None), &named, "add dht"),
            (args(dht(), &[], None), &private, "--find dht"),
            (
                args(Some(vec![Way::Local]), &[], None),
                &private,
                "--find local",
            ),
            (args(dht(), &node, None), &private, "--dht-node"),
            (args(None, &node, None), &private, "--dht-node"),
            (args(None, &[], Some(6881)), &plain, "--dht-port"),
        ] {
            let error = args.ways(sought).unwrap_err();
            assert!(error.is_wrong_use());
            assert!(error.to_string().contains(hint), "{hint}: {error}");
        }
    }

    #[test]
    fn a_node_over_scion_needs_a_network() {
        let scion = "1-ff00:0:110,10.0.0.1:31000";
        let of = |nodes: &[&str]| {
            let args = args(None, nodes, None);
            args.scion_node().map(DhtNode::to_string)
        };
        assert_eq!(of(&["10.0.0.1:1", scion]).as_deref(), Some(scion));
        assert_eq!(of(&["10.0.0.1:1", "a.example:1"]), None);
    }
}
