//! Messages of NAT-PMP (RFC 6886): requests to a gateway, and its answers.

use std::net::Ipv4Addr;

/// The version of the protocol in each message.
const VERSION: u8 = 0;
/// What an answer adds to the operation of its request.
const ANSWER: u8 = 128;
/// Longest answer, in bytes (section 3.3).
pub(super) const MAX_ANSWER: usize = 16;

/// The transport protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Protocol {
    Udp,
    Tcp,
}

impl Protocol {
    pub const BOTH: [Self; 2] = [Self::Tcp, Self::Udp];

    fn operation(self) -> u8 {
        match self {
            Self::Udp => 1,
            Self::Tcp => 2,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        }
    }
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// For the address of the gateway on the other side (section 3.2).
    Address,
    /// For a mapping of a port (section 3.3), or its end (section 3.4), which has lifetime 0.
    Map {
        protocol: Protocol,
        /// The port on this host.
        internal: u16,
        /// The wanted port of the gateway; 0 at the end of a mapping.
        external: u16,
        /// In seconds.
        lifetime: u32,
    },
}

impl Request {
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::Address => vec![VERSION, 0],
            Self::Map {
                protocol,
                internal,
                external,
                lifetime,
            } => {
                let mut bytes = vec![VERSION, protocol.operation(), 0, 0];
                bytes.extend(internal.to_be_bytes());
                bytes.extend(external.to_be_bytes());
                bytes.extend(lifetime.to_be_bytes());
                bytes
            }
        }
    }
}

/// Why a gateway refuses (section 3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResultCode(pub u16);

impl ResultCode {
    /// The reason in words, with the remedy where there is one.
    pub fn reason(self) -> String {
        match self.0 {
            1 => "the gateway speaks another version of NAT-PMP".to_owned(),
            2 => "the gateway refuses mappings: allow NAT-PMP or UPnP in its settings".to_owned(),
            3 => "the gateway has no address from its own network".to_owned(),
            4 => "the gateway has no room for more mappings".to_owned(),
            5 => "the gateway does not map ports by NAT-PMP".to_owned(),
            code => format!("the gateway refuses with code {code}"),
        }
    }
}

/// An answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The address of the gateway on the other side.
    Address(Ipv4Addr),
    /// A mapping, or its end.
    Mapped {
        protocol: Protocol,
        internal: u16,
        external: u16,
        /// In seconds.
        lifetime: u32,
    },
    /// The gateway refuses the mapping of a port of this protocol; `None`, to tell its address.
    Refused(Option<Protocol>, ResultCode),
}

impl Answer {
    /// Reads an answer; `None` if it is none. Bytes after it do not count, as later versions may add some.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let protocol = match (head[0], head[1].checked_sub(ANSWER)?) {
            (VERSION, 0) => None,
            (VERSION, 1) => Some(Protocol::Udp),
            (VERSION, 2) => Some(Protocol::Tcp),
            _ => return None,
        };
        let code = u16::from_be_bytes([head[2], head[3]]);
        if code != 0 {
            return Some(Self::Refused(protocol, ResultCode(code)));
        }
        match protocol {
            None => Some(Self::Address(Ipv4Addr::from(*rest.first_chunk::<4>()?))),
            Some(protocol) => {
                let body = rest.first_chunk::<8>()?;
                Some(Self::Mapped {
                    protocol,
                    internal: u16::from_be_bytes([body[0], body[1]]),
                    external: u16::from_be_bytes([body[2], body[3]]),
                    lifetime: u32::from_be_bytes([body[4], body[5], body[6], body[7]]),
                })
            }
        }
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// An answer as a gateway writes it.
    pub fn encode(answer: Answer) -> Vec<u8> {
        let (operation, code, body) = match answer {
            Answer::Address(address) => (0, 0, address.octets().to_vec()),
            Answer::Mapped {
                protocol,
                internal,
                external,
                lifetime,
            } => {
                let mut body = internal.to_be_bytes().to_vec();
                body.extend(external.to_be_bytes());
                body.extend(lifetime.to_be_bytes());
                (protocol.operation(), 0, body)
            }
            Answer::Refused(protocol, code) => {
                let operation = protocol.map_or(0, Protocol::operation);
                (operation, code.0, vec![0; 8])
            }
        };
        let mut bytes = vec![VERSION, ANSWER + operation];
        bytes.extend(u16::to_be_bytes(code));
        // Seconds since its start.
        bytes.extend(7_u32.to_be_bytes());
        bytes.extend(body);
        bytes
    }

    /// Reads a request; `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Option<Request> {
        match *bytes {
            [VERSION, 0] => Some(Request::Address),
            [VERSION, operation @ 1..=2, 0, 0, a, b, c, d, e, f, g, h] => Some(Request::Map {
                protocol: [Protocol::Udp, Protocol::Tcp][usize::from(operation) - 1],
                internal: u16::from_be_bytes([a, b]),
                external: u16::from_be_bytes([c, d]),
                lifetime: u32::from_be_bytes([e, f, g, h]),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Vec<Answer> {
        let mapped = Answer::Mapped {
            protocol: Protocol::Tcp,
            internal: 6881,
            external: 40_000,
            lifetime: 7200,
        };
        let refused = Answer::Refused(Some(Protocol::Udp), ResultCode(2));
        let address = Answer::Address(Ipv4Addr::new(192, 0, 2, 1));
        vec![
            mapped,
            refused,
            address,
            Answer::Refused(None, ResultCode(3)),
        ]
    }

    #[test]
    fn requests_are_as_the_rfc_has_them() {
        assert_eq!(Request::Address.encode(), [0, 0]);
        let map = Request::Map {
            protocol: Protocol::Tcp,
            internal: 0x1234,
            external: 0x5678,
            lifetime: 7200,
        };
        assert_eq!(
            map.encode(),
            [0, 2, 0, 0, 0x12, 0x34, 0x56, 0x78, 0, 0, 0x1c, 0x20]
        );
        assert_eq!(testing::parse(&map.encode()), Some(map));
    }

    #[test]
    fn answers_are_read_as_they_were_written() {
        for answer in answers() {
            let bytes = testing::encode(answer);
            assert!(bytes.len() <= MAX_ANSWER);
            assert_eq!(Answer::parse(&bytes), Some(answer));
        }
        // A request is no answer.
        assert_eq!(Answer::parse(&[0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Answer::parse(&[0, 130, 0, 0, 0, 0, 0, 0, 1]), None);
    }

    mod fuzz {
        use super::*;

        #[test]
        fn answers_of_gateways() {
            let valid: Vec<Vec<u8>> = answers().into_iter().map(testing::encode).collect();
            hawser_fuzz::fuzz(&valid, |input| {
                if let Some(answer) = Answer::parse(input) {
                    assert_eq!(Answer::parse(&testing::encode(answer)), Some(answer));
                }
            });
        }
    }
}
