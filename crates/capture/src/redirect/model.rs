//! A model of nf_tables: takes requests as the kernel does, and applies the rules to packets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::nftables::Request;

/// The objects of the one table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    pub flags: u32,
    pub sets: BTreeMap<String, Set>,
    pub chains: BTreeMap<String, Chain>,
}

/// A set of intervals: where one begins or, with `true`, ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub key_length: u32,
    pub elements: BTreeSet<(Vec<u8>, bool)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub hook: u32,
    pub priority: i32,
    pub kind: String,
    pub rules: Vec<Vec<Expression>>,
}

/// Name and attributes.
type Expression = (String, BTreeMap<u16, Vec<u8>>);

/// A packet, and what the kernel knows of it.
#[derive(Debug, Clone)]
pub struct Packet {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    /// Those of the TCP header.
    pub flags: u8,
    pub mark: u32,
    pub user: u32,
    /// Numbers of the control groups around the sender, from the root.
    pub groups: Vec<u64>,
    pub class: u32,
    /// Whether the destination is an address of this host.
    pub local: bool,
    /// The destination port of TCP.
    pub port: u16,
    /// Whether the connection's destination was translated.
    pub translated: bool,
    /// The device by which it leaves.
    pub device: &'static str,
}

/// What becomes of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Untouched,
    Redirected {
        port: u16,
    },
    Proxied {
        port: u16,
        mark: u32,
    },
    /// With a reset, or as prohibited by ICMP.
    Rejected {
        reset: bool,
    },
}

/// The attributes in `bytes`.
fn attributes(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let kind = u16::from_ne_bytes([bytes[2], bytes[3]]) & 0x3fff;
        all.push((kind, bytes[4..length].to_vec()));
        bytes = &bytes[length.next_multiple_of(4)..];
    }
    all
}

fn map(bytes: &[u8]) -> BTreeMap<u16, Vec<u8>> {
    let all = attributes(bytes);
    let count = all.len();
    let map: BTreeMap<_, _> = all.into_iter().collect();
    assert_eq!(map.len(), count, "an attribute twice");
    map
}

fn text(value: &[u8]) -> String {
    let text = value.strip_suffix(&[0]).expect("ends with a zero");
    String::from_utf8(text.to_vec()).unwrap()
}

fn number(value: &[u8]) -> u32 {
    u32::from_be_bytes(value.try_into().unwrap())
}

/// Elements of a list.
fn list(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    attributes(value).into_iter().map(|(kind, value)| {
        assert_eq!(kind, 1);
        value
    })
}

impl Model {
    /// What is there after a transaction in which the table `name` was created.
    pub fn created(name: &str, requests: &[Request]) -> Self {
        let (table, rest) = requests.split_first().unwrap();
        assert_eq!(table.kind, 0);
        let attributes = map(table.attributes.as_slice());
        assert_eq!(text(&attributes[&1]), name);
        let mut model = Self {
            flags: number(&attributes[&2]),
            ..Self::default()
        };
        model.apply(name, rest);
        model
    }

    /// Carries out a transaction.
    pub fn apply(&mut self, name: &str, requests: &[Request]) {
        for request in requests {
            let attributes = map(request.attributes.as_slice());
            assert_eq!(text(&attributes[&1]), name);
            self.change(request.kind, &attributes);
        }
        for set in self.sets.values() {
            // Each end follows a beginning: no interval overlaps another.
            for (i, (_, end)) in set.elements.iter().enumerate() {
                assert_eq!(*end, i % 2 == 1, "{set:?}");
            }
        }
    }

    fn change(&mut self, kind: u8, attributes: &BTreeMap<u16, Vec<u8>>) {
        let of = |attribute| text(&attributes[&attribute]);
        match kind {
            3 => {
                let hook = map(&attributes[&4]);
                let chain = Chain {
                    hook: number(&hook[&1]),
                    priority: number(&hook[&2]) as i32,
                    kind: of(7),
                    rules: Vec::new(),
                };
                assert_eq!(self.chains.insert(of(3), chain), None, "exists");
            }
            5 => {
                let chain = self.chains.remove(&of(3)).expect("no such chain");
                assert_eq!(chain.rules, [[]; 0], "in use");
            }
            6 => {
                let rule = list(&attributes[&4]).map(|expression| {
                    let parts = map(&expression);
                    (text(&parts[&1]), map(&parts[&2]))
                });
                let rule: Vec<_> = rule.collect();
                for (name, data) in &rule {
                    if name == "lookup" {
                        assert!(self.sets.contains_key(&text(&data[&1])), "no such set");
                    }
                }
                let chain = self.chains.get_mut(&of(2)).expect("no such chain");
                chain.rules.push(rule);
            }
            8 => {
                let chain = self.chains.get_mut(&of(2)).expect("no such chain");
                chain.rules.clear();
            }
            9 => {
                assert_eq!(number(&attributes[&3]), 4, "without intervals");
                let set = Set {
                    key_length: number(&attributes[&5]),
                    elements: BTreeSet::new(),
                };
                assert_eq!(self.sets.insert(of(2), set), None, "exists");
            }
            11 => {
                let name = of(2);
                let rules = self.chains.values().flat_map(|chain| &chain.rules);
                for (expression, data) in rules.flatten() {
                    assert!(expression != "lookup" || text(&data[&1]) != name, "in use");
                }
                self.sets.remove(&name).expect("no such set");
            }
            12 | 14 => {
                let set = self.sets.get_mut(&of(2)).expect("no such set");
                for element in list(&attributes[&3]) {
                    let parts = map(&element);
                    let key = map(&parts[&1])[&1].clone();
                    assert_eq!(key.len(), set.key_length as usize);
                    let end = parts.get(&3).is_some_and(|flags| number(flags) == 1);
                    let changed = match kind {
                        12 => set.elements.insert((key, end)),
                        _ => set.elements.remove(&(key, end)),
                    };
                    assert!(changed, "element exists, or does not");
                }
            }
            other => panic!("request {other}"),
        }
    }

    /// What becomes of a packet at a hook.
    pub fn outcome(&self, hook: u32, packet: &Packet) -> Outcome {
        let chains = self.chains.values().filter(|chain| chain.hook == hook);
        let mut chains: Vec<_> = chains.collect();
        chains.sort_by_key(|chain| chain.priority);
        for rule in chains.into_iter().flat_map(|chain| &chain.rules) {
            match self.apply_rule(rule, packet) {
                RuleVerdict::Next => {}
                RuleVerdict::Done(outcome) => return outcome,
            }
        }
        Outcome::Untouched
    }

    fn apply_rule(&self, rule: &[Expression], packet: &Packet) -> RuleVerdict {
        let mut register = Vec::new();
        let mut outcome = Outcome::Untouched;
        for (name, data) in rule {
            let value = |attribute: u16| number(&data[&attribute]);
            match name.as_str() {
                "meta" if data.contains_key(&3) => {
                    assert_eq!((value(2), value(3)), (3, 1));
                    let set = u32::from_ne_bytes(register[..].try_into().unwrap());
                    match &mut outcome {
                        Outcome::Proxied { mark, .. } => *mark = set,
                        other => panic!("{other:?}"),
                    }
                }
                "meta" => {
                    register = match value(2) {
                        3 => packet.mark.to_ne_bytes().to_vec(),
                        7 => {
                            let mut name = packet.device.as_bytes().to_vec();
                            name.resize(16, 0);
                            name
                        }
                        10 => packet.user.to_ne_bytes().to_vec(),
                        15 => vec![if packet.destination.is_ipv4() { 2 } else { 10 }],
                        16 => vec![packet.protocol],
                        23 => packet.class.to_ne_bytes().to_vec(),
                        other => panic!("meta {other}"),
                    };
                }
                "socket" => {
                    assert_eq!(value(1), 3);
                    let group = packet.groups.get(value(3) as usize);
                    match group {
                        Some(group) => register = group.to_ne_bytes().to_vec(),
                        None => return RuleVerdict::Next,
                    }
                }
                "fib" => {
                    assert_eq!((value(2), value(3)), (3, 2));
                    let kind: u32 = if packet.local { 2 } else { 1 };
                    register = kind.to_ne_bytes().to_vec();
                }
                "payload" => {
                    let (at, length) = (value(3) as usize, value(4) as usize);
                    register = match value(2) {
                        1 => header(packet)[at..at + length].to_vec(),
                        2 => {
                            assert_eq!(packet.protocol, 6);
                            match (at, length) {
                                (2, 2) => packet.port.to_be_bytes().to_vec(),
                                (13, 1) => vec![packet.flags],
                                other => panic!("{other:?} of the TCP header"),
                            }
                        }
                        other => panic!("payload of {other}"),
                    };
                }
                "bitwise" => {
                    let (mask, flip) = (&map(&data[&4])[&1], &map(&data[&5])[&1]);
                    let length = register.len();
                    assert_eq!(
                        (value(3) as usize, mask.len(), flip.len()),
                        (length, length, length)
                    );
                    let masked = register.iter().zip(mask).zip(flip);
                    register = masked
                        .map(|((byte, mask), flip)| byte & mask ^ flip)
                        .collect();
                }
                "ct" => {
                    assert_eq!(value(2), 2);
                    // Confirmed, and perhaps with its destination translated.
                    let status: u32 = if packet.translated { 0x28 } else { 8 };
                    register = status.to_ne_bytes().to_vec();
                }
                "reject" => {
                    let reset = match value(1) {
                        1 => true,
                        2 => {
                            assert_eq!(data[&2], [3]);
                            false
                        }
                        other => panic!("rejection {other}"),
                    };
                    assert!(!reset || packet.protocol == 6);
                    return RuleVerdict::Done(Outcome::Rejected { reset });
                }
                "cmp" => {
                    assert_eq!(value(2), 0);
                    if map(&data[&3])[&1] != register {
                        return RuleVerdict::Next;
                    }
                }
                "lookup" => {
                    let set = &self.sets[&text(&data[&1])];
                    assert_eq!(register.len(), set.key_length as usize);
                    let mut before = set.elements.iter().rev();
                    match before.find(|(key, _)| *key <= register) {
                        Some((_, false)) => {}
                        _ => return RuleVerdict::Next,
                    }
                }
                "immediate" if value(1) == 0 => {
                    let verdict = map(&map(&data[&2])[&2]);
                    assert!([-5, 1].contains(&(number(&verdict[&1]) as i32)));
                    return RuleVerdict::Done(outcome);
                }
                "immediate" => register = map(&data[&2])[&1].clone(),
                "redir" => {
                    let port = u16::from_be_bytes(register[..].try_into().unwrap());
                    return RuleVerdict::Done(Outcome::Redirected { port });
                }
                "tproxy" => {
                    let family = if packet.destination.is_ipv4() { 2 } else { 10 };
                    assert_eq!(value(1), family);
                    let port = u16::from_be_bytes(register[..].try_into().unwrap());
                    outcome = Outcome::Proxied { port, mark: 0 };
                }
                other => panic!("expression {other}"),
            }
        }
        RuleVerdict::Next
    }
}

enum RuleVerdict {
    /// The rule does not match.
    Next,
    Done(Outcome),
}

/// The IP header, as far as addresses matter.
fn header(packet: &Packet) -> Vec<u8> {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut header = vec![0; if packet.destination.is_ipv4() { 12 } else { 8 }];
    header.extend(octets(packet.source));
    header.extend(octets(packet.destination));
    header
}
