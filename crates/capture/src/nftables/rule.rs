//! Rules: what they match, and what they do with a packet.

use super::attribute::Attributes;

/// An IP version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// `NFPROTO_IPV4` and `NFPROTO_IPV6`.
    pub fn number(self) -> u8 {
        match self {
            Self::V4 => libc::NFPROTO_IPV4 as u8,
            Self::V6 => libc::NFPROTO_IPV6 as u8,
        }
    }

    /// Length of an address in bytes.
    pub fn address_length(self) -> u32 {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }
}

/// An address in the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Source,
    Destination,
}

impl Field {
    /// Offset in the IP header, in bytes (RFC 791, section 3.1; RFC 8200, section 3).
    fn offset(self, family: Family) -> u32 {
        match (self, family) {
            (Self::Source, Family::V4) => 12,
            (Self::Destination, Family::V4) => 16,
            (Self::Source, Family::V6) => 8,
            (Self::Destination, Family::V6) => 24,
        }
    }
}

/// A part of a rule. A rule applies its parts in order until one does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Statement {
    /// `meta mark MARK`: sent by a socket with this mark.
    Mark(u32),
    /// `meta skuid UID`: sent by a socket of this user.
    User(u32),
    /// `meta cgroup CLASSID`: sent by a process of a net_cls control group with this class.
    Class(u32),
    /// `socket cgroupv2 level LEVEL ID`: sent by a process in the control group with this number, or
    /// in one below it. Its depth below the root is `level`.
    Group { level: u32, id: u64 },
    /// `meta l4proto tcp`.
    Tcp,
    /// `tcp dport PORT`. It needs [`Self::Tcp`] before it.
    ToPort(u16),
    /// `ct status & dnat == 0`: of a connection whose destination was not translated.
    NotRedirected,
    /// `meta oifname NAME`: leaves by the device with this name, of at most 15 bytes.
    ToDevice(String),
    /// `tcp flags & (fin | syn | rst | ack) == syn`: opens a connection. It needs [`Self::Tcp`] before
    /// it.
    Opens,
    /// `meta nfproto FAMILY`. The statements that read addresses need it before them.
    Version(Family),
    /// `fib daddr type local`: to an address of this host.
    ToThisHost,
    /// `ip daddr @SET`.
    In {
        field: Field,
        family: Family,
        set: &'static str,
    },
    /// `return`: the chain is done with the packet.
    Return,
    /// `reject`: drops the packet, and informs its sender.
    Reject(Rejection),
    /// `redirect to :PORT`: to this host's own address and that port.
    Redirect { port: u16 },
    /// `tproxy to :PORT meta mark set MARK accept`: to the transparent listener on that port, with
    /// the destination unchanged.
    Proxy {
        family: Family,
        port: u16,
        mark: u32,
    },
}

/// How the sender of a rejected packet is informed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// `with tcp reset`. It needs [`Statement::Tcp`] before it.
    Reset,
    /// `with icmpx admin-prohibited`: "administratively prohibited" of ICMP or ICMPv6.
    Prohibited,
}

/// Statements in order.
pub(crate) type Rule = Vec<Statement>;

/// `NFTA_LIST_ELEM`: an element of any list.
pub(super) const LIST_ELEMENT: u16 = 1;
/// `NFT_REG_1`: the register in which each statement has its values, of 16 bytes.
const REGISTER: u32 = 1;
/// `NFT_REG_VERDICT`: what becomes of the packet.
const VERDICT: u32 = 0;
/// `NFT_RETURN` and `NF_ACCEPT`.
const RETURN: u32 = -5_i32 as u32;
const ACCEPT: u32 = 1;

/// `enum nft_meta_keys`.
const META_MARK: u32 = 3;
const META_OIFNAME: u32 = 7;
const META_SKUID: u32 = 10;
const META_NFPROTO: u32 = 15;
const META_L4PROTO: u32 = 16;
const META_CGROUP: u32 = 23;

/// Flags of the TCP header (RFC 9293, section 3.1): SYN, and those of which a segment that opens a
/// connection has no other.
const SYN: u8 = 0x02;
const OPENING: u8 = 0x17;

/// `IPS_DST_NAT`, a bit of the status of a tracked connection.
const TRANSLATED: u32 = 1 << 5;
/// Bytes of a device's name in a register, padded with zeros (`IFNAMSIZ`).
const DEVICE_NAME: usize = 16;

/// The expressions of a rule (`NFTA_RULE_EXPRESSIONS`).
pub(super) fn expressions(rule: &[Statement]) -> Attributes {
    let all = rule.iter().flat_map(Statement::expressions);
    all.fold(Attributes::default(), |list, (name, data)| {
        let one = Attributes::default().string(1, name).nested(2, data);
        list.nested(LIST_ELEMENT, one)
    })
}

/// Name and data of an expression.
type Expression = (&'static str, Attributes);

impl Statement {
    fn expressions(&self) -> Vec<Expression> {
        match *self {
            Self::ToDevice(ref name) => {
                let mut padded = [0; DEVICE_NAME];
                let length = name.len().min(DEVICE_NAME - 1);
                padded[..length].copy_from_slice(&name.as_bytes()[..length]);
                vec![meta(META_OIFNAME), equal(&padded)]
            }
            // What the kernel has as a number is in the register in the host's byte order.
            Self::Mark(mark) => vec![meta(META_MARK), equal(&mark.to_ne_bytes())],
            Self::User(user) => vec![meta(META_SKUID), equal(&user.to_ne_bytes())],
            Self::Class(class) => vec![meta(META_CGROUP), equal(&class.to_ne_bytes())],
            Self::Group { level, id } => vec![group(level), equal(&id.to_ne_bytes())],
            Self::Tcp => vec![meta(META_L4PROTO), equal(&[libc::IPPROTO_TCP as u8])],
            Self::Opens => vec![tcp_flags(), masked(&[OPENING]), equal(&[SYN])],
            Self::ToPort(port) => vec![destination_port(), equal(&port.to_be_bytes())],
            Self::NotRedirected => vec![
                connection_status(),
                masked(&TRANSLATED.to_ne_bytes()),
                equal(&[0; 4]),
            ],
            Self::Version(family) => vec![meta(META_NFPROTO), equal(&[family.number()])],
            Self::ToThisHost => {
                let local = u32::from(libc::RTN_LOCAL);
                vec![destination_type(), equal(&local.to_ne_bytes())]
            }
            Self::In { field, family, set } => {
                vec![address(field, family), lookup(set)]
            }
            Self::Return => vec![verdict(RETURN)],
            Self::Reject(how) => vec![reject(how)],
            Self::Redirect { port } => {
                let redirect = Attributes::default().number(1, REGISTER);
                vec![immediate(&port.to_be_bytes()), ("redir", redirect)]
            }
            Self::Proxy { family, port, mark } => {
                let proxy = Attributes::default()
                    .number(1, family.number().into())
                    .number(3, REGISTER);
                // The source register of the mark.
                let set_mark = Attributes::default()
                    .number(2, META_MARK)
                    .number(3, REGISTER);
                vec![
                    immediate(&port.to_be_bytes()),
                    ("tproxy", proxy),
                    immediate(&mark.to_ne_bytes()),
                    ("meta", set_mark),
                    verdict(ACCEPT),
                ]
            }
        }
    }
}

/// Loads a property of the packet.
fn meta(key: u32) -> Expression {
    let data = Attributes::default().number(1, REGISTER).number(2, key);
    ("meta", data)
}

/// Loads the number of the control group above the sender's that is `level` below the root.
fn group(level: u32) -> Expression {
    /// `NFT_SOCKET_CGROUPV2`.
    const CGROUPV2: u32 = 3;
    let data = Attributes::default()
        .number(1, CGROUPV2)
        .number(2, REGISTER)
        .number(3, level);
    ("socket", data)
}

/// Loads the type of the route to the destination (`RTN_*`).
fn destination_type() -> Expression {
    /// `NFT_FIB_RESULT_ADDRTYPE` and `NFTA_FIB_F_DADDR`.
    const ADDRESS_TYPE: u32 = 3;
    const DESTINATION: u32 = 2;
    let data = Attributes::default()
        .number(1, REGISTER)
        .number(2, ADDRESS_TYPE)
        .number(3, DESTINATION);
    ("fib", data)
}

/// Loads an address of the packet.
fn address(field: Field, family: Family) -> Expression {
    /// `NFT_PAYLOAD_NETWORK_HEADER`.
    const NETWORK_HEADER: u32 = 1;
    payload(
        NETWORK_HEADER,
        field.offset(family),
        family.address_length(),
    )
}

/// Loads the flags of the TCP header.
fn tcp_flags() -> Expression {
    /// `NFT_PAYLOAD_TRANSPORT_HEADER`.
    const TRANSPORT_HEADER: u32 = 2;
    payload(TRANSPORT_HEADER, 13, 1)
}

/// Loads the destination port of the TCP header.
fn destination_port() -> Expression {
    /// `NFT_PAYLOAD_TRANSPORT_HEADER`.
    const TRANSPORT_HEADER: u32 = 2;
    payload(TRANSPORT_HEADER, 2, 2)
}

/// Loads the status of the tracked connection, in the host's byte order.
fn connection_status() -> Expression {
    /// `NFT_CT_STATUS`.
    const STATUS: u32 = 2;
    let data = Attributes::default().number(1, REGISTER).number(2, STATUS);
    ("ct", data)
}

/// Loads bytes of a header.
fn payload(header: u32, offset: u32, length: u32) -> Expression {
    let data = Attributes::default()
        .number(1, REGISTER)
        .number(2, header)
        .number(3, offset)
        .number(4, length);
    ("payload", data)
}

/// Clears the bits that are not in `mask`, of the register's first bytes.
fn masked(mask: &[u8]) -> Expression {
    let flipped = vec![0; mask.len()];
    let data = Attributes::default()
        .number(1, REGISTER)
        .number(2, REGISTER)
        .number(3, mask.len() as u32)
        .nested(4, Attributes::default().bytes(1, mask))
        .nested(5, Attributes::default().bytes(1, &flipped));
    ("bitwise", data)
}

/// Matches if a set contains the value.
fn lookup(set: &str) -> Expression {
    let data = Attributes::default().string(1, set).number(2, REGISTER);
    ("lookup", data)
}

/// Matches if the register has this value.
fn equal(value: &[u8]) -> Expression {
    /// `NFT_CMP_EQ`.
    const EQUAL: u32 = 0;
    let data = Attributes::default()
        .number(1, REGISTER)
        .number(2, EQUAL)
        .nested(3, Attributes::default().bytes(1, value));
    ("cmp", data)
}

/// Loads a constant.
fn immediate(value: &[u8]) -> Expression {
    let value = Attributes::default().bytes(1, value);
    let data = Attributes::default().number(1, REGISTER).nested(2, value);
    ("immediate", data)
}

/// Drops the packet, and informs its sender.
fn reject(how: Rejection) -> Expression {
    /// `NFT_REJECT_TCP_RST` and `NFT_REJECT_ICMPX_UNREACH`.
    const TCP_RESET: u32 = 1;
    const ICMPX: u32 = 2;
    /// `NFT_REJECT_ICMPX_ADMIN_PROHIBITED`.
    const PROHIBITED: u8 = 3;
    let data = match how {
        Rejection::Reset => Attributes::default().number(1, TCP_RESET),
        Rejection::Prohibited => Attributes::default()
            .number(1, ICMPX)
            .bytes(2, &[PROHIBITED]),
    };
    ("reject", data)
}

fn verdict(code: u32) -> Expression {
    let code = Attributes::default().number(1, code);
    let value = Attributes::default().nested(2, code);
    let data = Attributes::default().number(1, VERDICT).nested(2, value);
    ("immediate", data)
}
