//! The topologies that come with hawser: those of the paper's experiments (001).

const READY: [(&str, &str); 3] = [
    ("fig4", include_str!("../topologies/fig4.topo")),
    ("fig7a", include_str!("../topologies/fig7a.topo")),
    ("fig9", include_str!("../topologies/fig9.topo")),
];

/// The `.topo` text of a ready topology.
pub fn text(name: &str) -> Option<&'static str> {
    READY
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, text)| *text)
}

/// The names of the ready topologies.
pub fn names() -> impl Iterator<Item = &'static str> {
    READY.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use crate::network::Network;

    #[test]
    fn every_ready_topology_parses() {
        for name in super::names() {
            let text = super::text(name).unwrap();
            let network = Network::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(!network.links.is_empty(), "{name} has no links");
        }
        assert!(Network::ready("fig5").is_none());
    }
}
