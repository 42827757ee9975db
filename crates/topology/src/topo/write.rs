//! Writing a network as a `.topo` file.

use std::fmt::Write;

use crate::network::{
    As, DEFAULT_DISPATCHED_PORTS, DEFAULT_MTU, Link, LinkKind, Network, Shape, Underlay,
};
use crate::ports;
use crate::quantity::{format_duration, format_loss, format_rate};

/// Writes a network as text from which the same network is read. Omits default values.
pub fn write(network: &Network) -> String {
    let mut text = String::from("ASes:\n");
    for as_ in &network.ases {
        text += &as_line(as_);
    }
    text += match network.links.is_empty() {
        true => "links: []\n",
        false => "links:\n",
    };
    for link in &network.links {
        text += &link_line(link);
    }
    text
}

fn as_line(as_: &As) -> String {
    let mut keys = Vec::new();
    for (key, set) in [
        ("core", as_.core),
        ("voting", as_.voting),
        ("authoritative", as_.authoritative),
        ("issuing", as_.issuing),
    ] {
        if set {
            keys.push(format!("{key}: true"));
        }
    }
    if let Some(issuer) = as_.cert_issuer {
        keys.push(format!("cert_issuer: \"{issuer}\""));
    }
    keys.extend(underlay(as_.underlay));
    if as_.dispatched_ports != DEFAULT_DISPATCHED_PORTS {
        let ports = ports::format(as_.dispatched_ports);
        keys.push(format!("dispatched_ports: \"{ports}\""));
    }
    keys.extend(mtu(as_.mtu));
    if let Some(note) = &as_.note {
        keys.push(format!("note: {}", quoted(note)));
    }
    format!("  \"{}\": {{{}}}\n", as_.isd_as, keys.join(", "))
}

fn link_line(link: &Link) -> String {
    let kind = match link.kind {
        LinkKind::Core => "CORE",
        LinkKind::Child => "CHILD",
        LinkKind::Peer => "PEER",
    };
    let mut keys = vec![
        format!("a: {}", quoted(&link.a.to_string())),
        format!("b: {}", quoted(&link.b.to_string())),
        format!("linkAtoB: {kind}"),
    ];
    keys.extend(underlay(link.underlay));
    keys.extend(mtu(link.mtu));
    keys.extend(shape(&link.shape));
    format!("  - {{{}}}\n", keys.join(", "))
}

fn underlay(underlay: Underlay) -> Option<String> {
    (underlay != Underlay::default()).then(|| format!("underlay: {underlay}"))
}

fn mtu(mtu: u16) -> Option<String> {
    (mtu != DEFAULT_MTU).then(|| format!("mtu: {mtu}"))
}

fn shape(shape: &Shape) -> Vec<String> {
    let default = Shape::default();
    let time =
        |key, time, default| (time != default).then(|| format!("{key}: {}", format_duration(time)));
    [
        shape
            .rate
            .map(|rate| format!("rate: {}", format_rate(rate))),
        time("delay", shape.delay, default.delay),
        time("jitter", shape.jitter, default.jitter),
        (shape.loss != default.loss).then(|| format!("loss: {}", format_loss(shape.loss))),
        time("queue", shape.queue, default.queue),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A double-quoted scalar (YAML 1.2.2, 7.3.1), with all characters other than printable ASCII,
/// letters and digits as escapes (5.7).
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            ' '..='~' => write!(quoted, "{c}"),
            c if c.is_alphanumeric() => write!(quoted, "{c}"),
            c => write!(quoted, "\\U{:08X}", u32::from(c)),
        };
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::{End, IsdAsn, parse_loss};

    #[test]
    fn default_values_are_omitted() {
        let text = write(&Network::ready("fig4").unwrap());
        let expected = r#"ASes:
  "1-ff00:0:110": {core: true, note: "A"}
  "1-ff00:0:111": {core: true, note: "B"}
links:
  - {a: "1-ff00:0:110#1", b: "1-ff00:0:111#1", linkAtoB: CORE, rate: 300mbit}
  - {a: "1-ff00:0:110#2", b: "1-ff00:0:111#2", linkAtoB: CORE, rate: 300mbit}
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn ready_topologies_are_read_back() {
        for name in Network::ready_names() {
            let network = Network::ready(name).unwrap();
            assert_eq!(Network::parse(&write(&network)).unwrap(), network, "{name}");
        }
    }

    fn an_underlay() -> impl Strategy<Value = Underlay> {
        prop_oneof![Just(Underlay::Ipv4), Just(Underlay::Ipv6)]
    }

    fn ports() -> impl Strategy<Value = (u16, u16)> {
        let range = (1..=u16::MAX, 1..=u16::MAX).prop_map(|(a, b)| (a.min(b), a.max(b)));
        prop_oneof![
            Just((0, 0)),
            Just((1, u16::MAX)),
            Just(DEFAULT_DISPATCHED_PORTS),
            range
        ]
    }

    /// An AS, whose number and issuer are set later.
    fn an_as() -> impl Strategy<Value = As> {
        let flags = any::<[bool; 4]>();
        let note = option::of(prop_oneof![
            ".{0,12}",
            prop::collection::vec(any::<char>(), 0..6).prop_map(String::from_iter)
        ]);
        (flags, an_underlay(), ports(), 1280..=u16::MAX, note).prop_map(
            |([core, voting, authoritative, issuing], underlay, dispatched_ports, mtu, note)| As {
                isd_as: IsdAsn::WILDCARD,
                core,
                voting,
                authoritative,
                issuing,
                cert_issuer: None,
                underlay,
                dispatched_ports,
                mtu,
                note,
            },
        )
    }

    fn a_time() -> impl Strategy<Value = Duration> {
        let times = prop_oneof![0..2_000_000u64, 0..=3_600_000_000_000u64];
        times.prop_map(Duration::from_nanos)
    }

    fn a_shape() -> impl Strategy<Value = Shape> {
        let loss = (0..=100u32, 0..10_000_000u32)
            .prop_map(|(whole, rest)| parse_loss(&format!("{whole}.{rest}%")).unwrap_or(1.0));
        let rate = option::of(prop_oneof![8..100_000u64, 8..=1_000_000_000_000_000u64]);
        (rate, a_time(), a_time(), loss, a_time()).prop_map(|(rate, delay, jitter, loss, queue)| {
            Shape {
                rate,
                delay,
                jitter,
                loss,
                queue,
            }
        })
    }

    prop_compose! {
        /// A network. Its ends are created one by one, because their numbers must differ within an
        /// AS.
        fn a_network()(
            mut ases in prop::collection::vec(an_as(), 2..8),
            issuers in prop::collection::vec(option::of(any::<Index>()), 8),
            links in prop::collection::vec(
                (any::<[Index; 2]>(), any::<[u8; 2]>(), ["[A-Za-z0-9_ ]{0,3}", "[A-Za-z0-9]{0,2}"], any::<Index>(), an_underlay(), 1280..=u16::MAX, a_shape()),
                0..12,
            ),
        ) -> Network {
            for (number, as_) in (0x110..).zip(&mut ases) {
                // The ASes belong to two ISDs.
                let text = format!("{}-ff00:0:{number:x}", 1 + number % 2);
                as_.isd_as = text.parse().unwrap();
            }
            for (at, issuer) in issuers.iter().take(ases.len()).enumerate() {
                let isd = ases[at].isd_as.isd();
                let of_isd: Vec<_> = ases.iter().filter(|a| a.isd_as.isd() == isd).collect();
                let issuer = issuer.map(|index| index.get(&of_isd).isd_as);
                ases[at].cert_issuer = issuer;
            }
            let mut used = vec![std::collections::BTreeSet::new(); ases.len()];
            let links = links.into_iter().filter_map(|(at, ids, routers, kind, underlay, mtu, shape)| {
                let at = at.map(|index| index.index(ases.len()));
                let kinds: Vec<LinkKind> = [LinkKind::Core, LinkKind::Child, LinkKind::Peer]
                    .into_iter()
                    .filter(|kind| match kind {
                        LinkKind::Core => ases[at[0]].core && ases[at[1]].core,
                        LinkKind::Child => !ases[at[1]].core,
                        LinkKind::Peer => true,
                    })
                    .collect();
                if at[0] == at[1] {
                    return None;
                }
                let [a, b] = [0, 1].map(|i| {
                    let mut id = u16::from(ids[i]) * 257;
                    while id == 0 || !used[at[i]].insert(id) {
                        id = id.wrapping_add(1);
                    }
                    End { isd_as: ases[at[i]].isd_as, router: routers[i].clone(), id }
                });
                Some(Link { a, b, kind: *kind.get(&kinds), underlay, mtu, shape })
            }).collect();
            Network { ases, links }
        }
    }

    proptest! {
        #[test]
        fn any_network_is_read_back(network in a_network()) {
            let text = write(&network);
            let read = Network::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert_eq!(read, network, "{}", text);
        }
    }
}
