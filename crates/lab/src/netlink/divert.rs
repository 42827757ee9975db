//! Diversion of what a device sends to another device, by a filter before its queueing discipline
//! (clsact of tc(8)).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{DefaultNla, Emitable};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use super::Netlink;

/// The filter's place among those of the device, and its handle.
const PRIORITY: u32 = 1;
const HANDLE: u32 = 1;

/// Attributes of a bpf filter (`linux/pkt_cls.h`).
const TCA_BPF_ACT: u16 = 1;
const TCA_BPF_OPS_LEN: u16 = 4;
const TCA_BPF_OPS: u16 = 5;
/// Attributes of an action (`linux/pkt_cls.h`, `linux/tc_act/tc_mirred.h`).
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;
/// `TCA_EGRESS_REDIR`: the other device sends the packet.
const REDIRECT: u32 = 1;
/// `TC_ACT_STOLEN`: the packet is not processed any further.
const STOLEN: u32 = 4;

/// Packets that are not diverted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exempt {
    /// Packets of sockets with this mark (`SO_MARK` of socket(7)).
    pub mark: u32,
    /// UDP to this address.
    pub udp_to: Ipv4Addr,
    /// UDP to this address.
    pub udp_to6: Option<Ipv6Addr>,
}

impl Netlink {
    /// Diverts all packets that the device `from` is to send to the device `to`, which sends them
    /// instead, except those of `exempt`.
    pub fn divert(&mut self, from: u32, to: u32, exempt: &Exempt) -> io::Result<()> {
        let mut classifier = message(from, TcHandle::CLSACT, "clsact");
        classifier.header.handle = TcHandle {
            major: TcHandle::CLSACT.major,
            minor: 0,
        };
        self.create(RouteNetlinkMessage::NewQueueDiscipline(classifier))?;
        let egress = TcHandle {
            major: TcHandle::CLSACT.major,
            minor: TcHandle::MIN_EGRESS,
        };
        let mut filter = message(from, egress, "bpf");
        filter.header.handle = HANDLE.into();
        filter.header.info = PRIORITY << 16 | u32::from((libc::ETH_P_ALL as u16).to_be());
        let program = program(exempt);
        let length = (program.len() as u16).to_ne_bytes().to_vec();
        let program = program.iter().flat_map(|one| one.bytes()).collect();
        filter.attributes.push(TcAttribute::Options(vec![
            TcOption::Other(nested(
                TCA_BPF_ACT,
                &[nested(PRIORITY as u16, &redirect(to))],
            )),
            TcOption::Other(DefaultNla::new(TCA_BPF_OPS_LEN, length)),
            TcOption::Other(DefaultNla::new(TCA_BPF_OPS, program)),
        ]));
        self.create(RouteNetlinkMessage::NewTrafficFilter(filter))
    }
}

fn message(device: u32, parent: TcHandle, kind: &str) -> TcMessage {
    let mut message = TcMessage::with_index(device as i32);
    message.header.parent = parent;
    message.attributes = vec![TcAttribute::Kind(kind.to_owned())];
    message
}

/// The attributes of the action that redirects to the device `to`.
fn redirect(to: u32) -> [DefaultNla; 2] {
    // struct tc_mirred: index, capabilities, action, references, bindings; then its own.
    let parameters = [0, 0, STOLEN, 0, 0, REDIRECT, to];
    let parameters = parameters.into_iter().flat_map(u32::to_ne_bytes).collect();
    [
        DefaultNla::new(TCA_ACT_KIND, b"mirred\0".to_vec()),
        nested(
            TCA_ACT_OPTIONS,
            &[DefaultNla::new(TCA_MIRRED_PARMS, parameters)],
        ),
    ]
}

fn nested(kind: u16, attributes: &[DefaultNla]) -> DefaultNla {
    let mut value = vec![0; attributes.buffer_len()];
    attributes.emit(&mut value);
    DefaultNla::new(kind, value)
}

/// An instruction of the classic packet filter (`struct sock_filter` of socket(7)).
#[derive(Debug, Clone, Copy)]
struct Instruction {
    code: u32,
    /// Number of instructions to skip if a comparison is false.
    otherwise: u8,
    operand: u32,
}

impl Instruction {
    fn bytes(&self) -> [u8; 8] {
        let [a, b] = (self.code as u16).to_ne_bytes();
        let [c, d, e, f] = self.operand.to_ne_bytes();
        [a, b, 0, self.otherwise, c, d, e, f]
    }
}

/// The filter: returns zero for packets of `exempt`, all ones for others.
fn program(exempt: &Exempt) -> Vec<Instruction> {
    /// Offsets in an Ethernet frame.
    const TYPE: u32 = 12;
    const PROTOCOL: u32 = 14 + 9;
    const DESTINATION: u32 = 14 + 16;
    const NEXT_HEADER6: u32 = 14 + 6;
    const DESTINATION6: u32 = 14 + 24;

    let load = |size, at| (libc::BPF_LD | size | libc::BPF_ABS, at);
    let mark = load(libc::BPF_W, (libc::SKF_AD_OFF + libc::SKF_AD_MARK) as u32);
    let kind = load(libc::BPF_H, TYPE);
    let udp = libc::IPPROTO_UDP as u32;
    // Each list is a way to be exempt: all its loads have the value beside them.
    let mut ways = vec![
        vec![(mark, exempt.mark)],
        vec![
            (kind, libc::ETH_P_IP as u32),
            (load(libc::BPF_B, PROTOCOL), udp),
            (load(libc::BPF_W, DESTINATION), exempt.udp_to.to_bits()),
        ],
    ];
    // Fragments of UDP packets too: they have another next header.
    for protocol in [udp, libc::IPPROTO_FRAGMENT as u32] {
        let Some(address) = exempt.udp_to6 else { break };
        let words = address.octets();
        let words = words
            .chunks(4)
            .map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
        let words = (DESTINATION6..).step_by(4).zip(words);
        let ahead = [
            (kind, libc::ETH_P_IPV6 as u32),
            (load(libc::BPF_B, NEXT_HEADER6), protocol),
        ];
        let words = words.map(|(at, word)| (load(libc::BPF_W, at), word));
        ways.push(ahead.into_iter().chain(words).collect());
    }

    let plain = |code, operand| Instruction {
        code,
        otherwise: 0,
        operand,
    };
    let mut program = Vec::new();
    for way in ways {
        let mut left = way.len() as u8;
        for ((code, at), value) in way {
            left -= 1;
            program.push(plain(code, at));
            program.push(Instruction {
                code: libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                // The rest of this way, and the instruction that ends it.
                otherwise: 2 * left + 1,
                operand: value,
            });
        }
        program.push(plain(libc::BPF_RET | libc::BPF_K, 0));
    }
    program.push(plain(libc::BPF_RET | libc::BPF_K, u32::MAX));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does with a program for a frame of a socket with `mark`: whether the frame is
    /// diverted.
    fn diverts(program: &[Instruction], frame: &[u8], mark: u32) -> bool {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let one = program[at];
            at += 1;
            let bytes = |count| {
                let start = one.operand as usize;
                let bytes = frame.get(start..start + count)?;
                Some(
                    bytes
                        .iter()
                        .fold(0, |word, byte| word << 8 | u32::from(*byte)),
                )
            };
            let read = match one.code {
                0x06 => return one.operand != 0,
                0x15 => {
                    if loaded != one.operand {
                        at += usize::from(one.otherwise);
                    }
                    continue;
                }
                0x20 if one.operand > i32::MAX as u32 => Some(mark),
                0x20 => bytes(4),
                0x28 => bytes(2),
                0x30 => bytes(1),
                code => panic!("instruction {code:#x}"),
            };
            // A load past the end of the frame ends the program, with no match.
            match read {
                Some(read) => loaded = read,
                None => return false,
            }
        }
    }

    fn ipv4(protocol: u8, to: Ipv4Addr) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 8];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[14 + 9] = protocol;
        frame[14 + 16..14 + 20].copy_from_slice(&to.octets());
        frame
    }

    fn ipv6(protocol: u8, to: Ipv6Addr) -> Vec<u8> {
        let mut frame = vec![0; 14 + 40 + 8];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[14 + 6] = protocol;
        frame[14 + 24..14 + 40].copy_from_slice(&to.octets());
        frame
    }

    #[test]
    fn all_but_the_underlay_and_marked_packets_is_diverted() {
        const UDP: u8 = 17;
        const TCP: u8 = 6;
        const FRAGMENT: u8 = 44;
        let [far, host] = [[10, 128, 0, 1], [10, 0, 2, 1]].map(Ipv4Addr::from);
        let far6: Ipv6Addr = "fd00:0:1::1".parse().unwrap();
        let host6: Ipv6Addr = "fd00:0:1::2".parse().unwrap();
        let exempt = Exempt {
            mark: 7,
            udp_to: far,
            udp_to6: Some(far6),
        };
        let whole = program(&exempt);
        for exempt in [ipv4(UDP, far), ipv6(UDP, far6), ipv6(FRAGMENT, far6)] {
            assert!(!diverts(&whole, &exempt, 0), "{exempt:?}");
        }
        let plain = [
            ipv4(UDP, host),
            ipv4(TCP, far),
            ipv6(UDP, host6),
            ipv6(TCP, far6),
        ];
        for plain in plain {
            assert!(diverts(&whole, &plain, 0), "{plain:?}");
            assert!(!diverts(&whole, &plain, 7), "{plain:?}");
        }
        let without = Exempt {
            udp_to6: None,
            ..exempt
        };
        assert!(diverts(&program(&without), &ipv6(UDP, far6), 0));
        assert!(!diverts(&program(&without), &ipv4(UDP, far), 0));
    }
}
