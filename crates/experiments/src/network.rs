//! The networks of experiments that have no ready topology.

use std::ops::RangeInclusive;

use hawser_topology::Network;

use crate::error::ExperimentError;

/// Properties of a link between two ASes, named like its `.topo` keys.
#[derive(Debug, Clone, Copy)]
pub struct LinkSpec {
    /// Limit, in Mbit/s.
    pub mbit: f64,
    /// One-way delay, in milliseconds.
    pub millis: f64,
    /// Share of packets lost, in percent.
    pub loss: f64,
}

impl LinkSpec {
    /// A link without loss.
    pub fn new(mbit: f64, millis: impl Into<f64>) -> Self {
        Self {
            mbit,
            millis: millis.into(),
            loss: 0.0,
        }
    }

    fn keys(&self) -> String {
        let kbit = (self.mbit * 1e3).round();
        let (micros, loss) = ((self.millis * 1e3).round(), self.loss);
        format!("rate: {kbit}kbit, delay: {micros}us, loss: {loss}%")
    }
}

/// Two ASes, 1-ff00:0:110 and 1-ff00:0:111, with these links between them.
pub fn parallel(links: &[LinkSpec]) -> Result<Network, ExperimentError> {
    let links = links.iter().zip(1..);
    let links = links.map(|(link, id)| (format!("110#{id}"), format!("111#{id}"), *link));
    core(110..=111, links)
}

/// The seeder's AS 1-ff00:0:111 and the leecher's AS 1-ff00:0:110 with 1-ff00:0:112 between them, and
/// `link` from there to the leecher. A TCP flow from the seeder's AS meets the queue of that link in
/// another host, as it would on a real one: in its own, the kernel keeps it from filling a queue.
pub fn behind(link: LinkSpec) -> Result<Network, ExperimentError> {
    let fast = LinkSpec::new(10_000.0, 0);
    let links = [("111#1", "112#1", fast), ("112#2", "110#1", link)];
    core(
        110..=112,
        links.map(|(a, b, link)| (a.into(), b.into(), link)),
    )
}

/// As [`behind`], with `count` such links: as many paths that share nothing but the link next to the
/// sender.
pub fn fan(count: u8, link: LinkSpec) -> Result<Network, ExperimentError> {
    let fast = (
        "111#1".to_owned(),
        "112#1".to_owned(),
        LinkSpec::new(10_000.0, 0),
    );
    let limited =
        (1..=u16::from(count)).map(|id| (format!("112#{}", id + 1), format!("110#{id}"), link));
    core(110..=112, std::iter::once(fast).chain(limited))
}

/// The testbed of 003, Fig. 1: the sender's AS 1-ff00:0:110 (Geneva) behind one link to 1-ff00:0:112,
/// and from there two paths to the receiver's AS 1-ff00:0:111 (Amsterdam), over 1-ff00:0:113 (Paris) and
/// over 1-ff00:0:114 (Hamburg), each with a round trip of 24 ms. Other hosts in 1-ff00:0:115 congest the
/// link from 1-ff00:0:112 to 1-ff00:0:114. All links but theirs have the same limit.
pub fn hercules(mbit: f64) -> Result<Network, ExperimentError> {
    let near = LinkSpec::new(mbit, 0);
    let far = LinkSpec::new(mbit, 12);
    let links = [
        ("110#1", "112#1", near),
        ("112#2", "113#1", far),
        ("112#3", "114#1", far),
        ("113#2", "111#1", near),
        ("114#2", "111#2", near),
        ("115#1", "112#4", LinkSpec::new(10.0 * mbit, 0)),
    ];
    core(
        110..=115,
        links.map(|(a, b, link)| (a.into(), b.into(), link)),
    )
}

/// The testbed of 000, Fig. 5.5: the leecher's AS 1-ff00:0:110 behind one link to 1-ff00:0:112, and
/// from there two paths to the seeder's AS 1-ff00:0:111: path 1 directly, path 2 over 1-ff00:0:113,
/// so that path 1 is the shortest. All links have the same limit, so two paths carry no more than
/// one unless cross traffic takes a share of one.
pub fn congested(mbit: f64) -> Result<Network, ExperimentError> {
    let ends = [
        ("110#1", "112#1"),
        ("112#2", "111#1"),
        ("112#3", "113#1"),
        ("113#2", "111#2"),
    ];
    let link = LinkSpec::new(mbit, 2);
    core(110..=113, ends.map(|(a, b)| (a.into(), b.into(), link)))
}

/// A tree of ASes without limits: the core AS 1-ff00:0:1, ten children of each AS below it, until there are
/// `ases`.
pub fn tree(ases: u16) -> Result<Network, ExperimentError> {
    let name = |number: u16| format!("1-ff00:0:{number:x}");
    let mut text = format!("ASes:\n  \"{}\": {{core: true}}\n", name(1));
    text.extend((2..=ases).map(|number| format!("  \"{}\": {{}}\n", name(number))));
    text.push_str(if ases < 2 { "links: []\n" } else { "links:\n" });
    text.extend((2..=ases).map(|number| {
        let (parent, child) = (name((number - 2) / 10 + 1), name(number));
        // The first interface of an AS is that of its parent.
        let id = (number - 2) % 10 + 2;
        format!("  - {{a: \"{parent}#{id}\", b: \"{child}#1\", linkAtoB: CHILD}}\n")
    }));
    Network::parse(&text).map_err(ExperimentError::step)
}

/// Core ASes numbered from 1-ff00:0:110, with links between interfaces such as `110#1`.
fn core(
    ases: RangeInclusive<u16>,
    links: impl IntoIterator<Item = (String, String, LinkSpec)>,
) -> Result<Network, ExperimentError> {
    let ases = ases.map(|id| format!("  \"1-ff00:0:{id}\": {{core: true}}\n"));
    let links = links.into_iter().map(|(a, b, link)| {
        let keys = link.keys();
        format!("  - {{a: \"1-ff00:0:{a}\", b: \"1-ff00:0:{b}\", linkAtoB: CORE, {keys}}}\n")
    });
    let (ases, links) = (ases.collect::<String>(), links.collect::<String>());
    Network::parse(&format!("ASes:\n{ases}links:\n{links}")).map_err(ExperimentError::step)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn links_have_the_specified_properties() {
        let bad = LinkSpec {
            loss: 2.5,
            ..LinkSpec::new(0.5, 100)
        };
        let network = parallel(&[LinkSpec::new(20.0, 5), bad]).unwrap();
        let shapes: Vec<_> = network.links.iter().map(|link| link.shape).collect();
        assert_eq!(shapes[0].rate, Some(20_000_000));
        assert_eq!(shapes[0].delay, Duration::from_millis(5));
        assert_eq!(shapes[1].rate, Some(500_000));
        assert!((shapes[1].loss - 0.025).abs() < 1e-9);
        assert_eq!(congested(40.0).unwrap().links.len(), 4);
        assert_eq!(hercules(40.0).unwrap().links.len(), 6);
        assert_eq!(fan(8, bad).unwrap().links.len(), 9);
    }

    #[test]
    fn a_tree_has_a_link_above_each_as_but_the_first() {
        for ases in [1, 2, 12, 1000] {
            let network = tree(ases).unwrap();
            assert_eq!(network.ases.len(), usize::from(ases));
            assert_eq!(network.links.len(), usize::from(ases) - 1);
        }
    }
}
