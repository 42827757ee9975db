//! Greeting and answer: the first bytes on each path of a session.

use std::fmt;

use thiserror::Error;

/// The application protocol (TLS ALPN).
pub(crate) const ALPN: &[u8] = b"hawser-session/1";
/// Bytes of a greeting, and of an answer.
pub(crate) const GREETING: usize = 58;
pub(crate) const ANSWER: usize = 10;
/// The first byte of the stream, which is not the application's: it shows the server that the stream has
/// begun, also where the client writes nothing.
pub(crate) const OPENING: u8 = 1;

/// The version of the protocol.
const VERSION: u8 = 1;

/// Codes with which the QUIC connections of a session are closed.
pub(crate) mod code {
    /// The session is closed here, and everything up to the other side's end has arrived.
    pub(crate) const COMPLETE: u32 = 16;
    /// The session is closed here before the other side's end has arrived.
    pub(crate) const CLOSED: u32 = 17;
    /// The session was given up here.
    pub(crate) const DROPPED: u32 = 18;
    /// The other side offends against the protocol.
    pub(crate) const OFFENCE: u32 = 19;
    /// This path of the session is not used any more.
    pub(crate) const PATH: u32 = 20;
    /// The client's key is not allowed.
    pub(crate) const KEY: u32 = 32;
}

/// The name of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(pub [u8; 16]);

/// What the paths of a session have in common, and nobody else knows.
#[derive(Clone, Copy)]
pub(crate) struct Secret(pub [u8; 32]);

impl Secret {
    /// Whether both are the same, in a time that does not depend on where they differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(other.0);
        pairs.fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The first message of the client on a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Greeting {
    pub id: SessionId,
    pub secret: Secret,
    /// Whether the server has accepted a greeting of the session before.
    pub known: bool,
    /// What the client calls the path.
    pub path: u64,
}

/// What the server says to a greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub status: Result<(), Refusal>,
    /// What the server calls the path.
    pub path: u64,
}

/// Why a path is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    #[error("the peer does not know the session any more; it was probably restarted")]
    Unknown,
    #[error("the session is another host's")]
    NotYours,
    #[error("the peer has too many connections or paths; try again later")]
    Busy,
    #[error("the peer has ended the session")]
    Ended,
}

/// Bytes are not a greeting or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum WireError {
    #[error("version {0} of the protocol is not known here")]
    Version(u8),
    #[error("a field has the unknown value {0}")]
    Value(u8),
}

impl Greeting {
    pub(crate) fn encode(&self) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[0] = VERSION;
        bytes[1] = self.known.into();
        bytes[2..18].copy_from_slice(&self.id.0);
        bytes[18..50].copy_from_slice(&self.secret.0);
        bytes[50..].copy_from_slice(&self.path.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; GREETING]) -> Result<Self, WireError> {
        let known = match (bytes[0], bytes[1]) {
            (VERSION, 0) => false,
            (VERSION, 1) => true,
            (VERSION, other) => return Err(WireError::Value(other)),
            (version, _) => return Err(WireError::Version(version)),
        };
        let (mut id, mut secret, mut path) = ([0; 16], [0; 32], [0; 8]);
        id.copy_from_slice(&bytes[2..18]);
        secret.copy_from_slice(&bytes[18..50]);
        path.copy_from_slice(&bytes[50..]);
        Ok(Self {
            id: SessionId(id),
            secret: Secret(secret),
            known,
            path: u64::from_be_bytes(path),
        })
    }
}

impl Answer {
    pub(crate) fn encode(&self) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        bytes[0] = VERSION;
        bytes[1] = match self.status {
            Ok(()) => 0,
            Err(Refusal::Unknown) => 1,
            Err(Refusal::NotYours) => 2,
            Err(Refusal::Busy) => 3,
            Err(Refusal::Ended) => 4,
        };
        bytes[2..].copy_from_slice(&self.path.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; ANSWER]) -> Result<Self, WireError> {
        let status = match (bytes[0], bytes[1]) {
            (VERSION, 0) => Ok(()),
            (VERSION, 1) => Err(Refusal::Unknown),
            (VERSION, 2) => Err(Refusal::NotYours),
            (VERSION, 3) => Err(Refusal::Busy),
            (VERSION, 4) => Err(Refusal::Ended),
            (VERSION, other) => return Err(WireError::Value(other)),
            (version, _) => return Err(WireError::Version(version)),
        };
        let mut path = [0; 8];
        path.copy_from_slice(&bytes[2..]);
        let path = u64::from_be_bytes(path);
        Ok(Self { status, path })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn greetings() -> impl Strategy<Value = Greeting> {
        any::<([u8; 16], [u8; 32], bool, u64)>().prop_map(|(id, secret, known, path)| Greeting {
            id: SessionId(id),
            secret: Secret(secret),
            known,
            path,
        })
    }

    pub(crate) fn answers() -> impl Strategy<Value = Answer> {
        use Refusal::{Busy, Ended, NotYours, Unknown};
        let statuses = vec![Ok(()), Err(Unknown), Err(NotYours), Err(Busy), Err(Ended)];
        let all = (prop::sample::select(statuses), any::<u64>());
        all.prop_map(|(status, path)| Answer { status, path })
    }

    #[test]
    fn a_greeting_is_as_documented() {
        let greeting = Greeting {
            id: SessionId([2; 16]),
            secret: Secret([3; 32]),
            known: true,
            path: 0x0405,
        };
        let bytes = [&[1, 1][..], &[2; 16], &[3; 32], &[0, 0, 0, 0, 0, 0, 4, 5]].concat();
        assert_eq!(greeting.encode().as_slice(), bytes);
        assert_eq!(format!("{:?}", greeting.secret), "Secret");
    }

    #[test]
    fn other_versions_and_values_are_refused() {
        let mut bytes = [0; GREETING];
        let refused = |bytes: &[u8; GREETING]| Greeting::decode(bytes).err();
        assert_eq!(refused(&bytes), Some(WireError::Version(0)));
        (bytes[0], bytes[1]) = (1, 2);
        assert_eq!(refused(&bytes), Some(WireError::Value(2)));
        let answer = Answer::decode(&[1, 5, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(answer, Err(WireError::Value(5)));
    }

    proptest! {
        #[test]
        fn greetings_are_read_as_they_are_written(greeting in greetings()) {
            let read = Greeting::decode(&greeting.encode()).unwrap();
            prop_assert_eq!(read.id, greeting.id);
            prop_assert!(read.secret.is(&greeting.secret));
            prop_assert_eq!((read.known, read.path), (greeting.known, greeting.path));
        }

        #[test]
        fn answers_are_read_as_they_are_written(answer in answers()) {
            prop_assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        }

        #[test]
        fn secrets_are_the_same_only_if_all_bytes_are(secret: [u8; 32], at in 0usize..32, bit in 0u8..8) {
            let mut other = secret;
            other[at] ^= 1 << bit;
            prop_assert!(Secret(secret).is(&Secret(secret)));
            prop_assert!(!Secret(secret).is(&Secret(other)));
        }
    }
}
