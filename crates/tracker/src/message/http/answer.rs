//! The answer to an announce.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hawser_address::{PeerAddr, compact_ip, ip_from_compact};
use hawser_bencode::{BencodeError, Dict, Value, parse_tolerant};
use thiserror::Error;

use crate::message::announce::{Answer, MAX_ANSWER_PEERS, Retry, TrackerError};
use crate::message::entries;
use crate::message::text::text;

/// Longest answer read, in bytes.
pub const MAX_ANSWER: usize = 1 << 20;
/// Longest `tracker id` kept, in bytes; it is sent back in a URL.
const MAX_TRACKER_ID: usize = 256;

/// Why an answer of a tracker is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It is longer than [`MAX_ANSWER`].
    #[error("the tracker's answer has more than {MAX_ANSWER} bytes")]
    Long,
    /// It is not bencode.
    #[error("the tracker's answer is not bencode: {0}")]
    Bencode(BencodeError),
    /// It is not a dictionary, or lacks what an answer has.
    #[error("the tracker's answer is not one of a tracker")]
    Shape,
    /// It is a refusal.
    #[error("the tracker refuses: {reason}")]
    Refused {
        /// Its reason, in its words.
        reason: String,
        /// When it may be asked again.
        retry: Retry,
    },
}

impl From<AnswerError> for TrackerError {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Refused { reason, retry } => Self::Refused { reason, retry },
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Reads the dictionary of an answer.
///
/// # Errors
/// [`AnswerError`] if it is none, or a refusal.
pub(super) fn read_dict(bytes: &[u8]) -> Result<Dict<'_>, AnswerError> {
    if bytes.len() > MAX_ANSWER {
        return Err(AnswerError::Long);
    }
    let Value::Dict(dict) = parse_tolerant(bytes).map_err(AnswerError::Bencode)? else {
        return Err(AnswerError::Shape);
    };
    match dict.bytes("failure reason") {
        Some(reason) => Err(AnswerError::Refused {
            reason: text(reason),
            retry: retry(dict.find("retry in")),
        }),
        None => Ok(dict),
    }
}

/// Minutes, or `never` (BEP 31).
fn retry(value: Option<&Value<'_>>) -> Retry {
    let minutes = match value {
        Some(Value::Int(minutes)) => u64::try_from(*minutes).ok(),
        Some(Value::Bytes(b"never")) => return Retry::Never,
        Some(Value::Bytes(bytes)) => std::str::from_utf8(bytes).ok().and_then(|t| t.parse().ok()),
        _ => None,
    };
    match minutes {
        Some(minutes) => Retry::After(Duration::from_secs(minutes.saturating_mul(60))),
        None => Retry::Unsaid,
    }
}

/// Reads the answer to an announce, as tolerantly as trackers differ: peers compact (BEP 23) or as a list
/// of dictionaries, which may name hosts by text (names of hosts are ignored); addresses that no peer can
/// have, and entries cut short, are left out.
///
/// # Errors
/// [`AnswerError`] if it is not an answer, or a refusal.
pub fn read_answer(bytes: &[u8]) -> Result<Answer, AnswerError> {
    let dict = read_dict(bytes)?;
    let has = |key| dict.find(key).is_some();
    if !["interval", "peers", "peers6", "peers_scion"]
        .into_iter()
        .any(has)
    {
        return Err(AnswerError::Shape);
    }
    Ok(Answer {
        interval: seconds(&dict, "interval"),
        min_interval: seconds(&dict, "min interval"),
        complete: count(&dict, "complete"),
        incomplete: count(&dict, "incomplete"),
        peers: peers(&dict),
        warning: dict.bytes("warning message").map(text),
        tracker_id: dict
            .bytes("tracker id")
            .filter(|id| id.len() <= MAX_TRACKER_ID)
            .map(<[u8]>::to_vec),
        external_ip: dict.bytes("external ip").and_then(ip),
    })
}

/// Seconds; `None` if there are none, or fewer than one.
fn seconds(dict: &Dict<'_>, key: &str) -> Option<Duration> {
    let seconds = u64::try_from(dict.int(key)?).ok();
    seconds.filter(|s| *s > 0).map(Duration::from_secs)
}

pub(super) fn count(dict: &Dict<'_>, key: &str) -> Option<u32> {
    let count = u64::try_from(dict.int(key)?).ok()?;
    Some(u32::try_from(count).unwrap_or(u32::MAX))
}

/// 4 or 16 bytes (BEP 24).
fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some(ip.to_canonical())
}

fn peers(dict: &Dict<'_>) -> Vec<PeerAddr> {
    let compact = |key, size| {
        let bytes: &[u8] = dict.bytes(key).unwrap_or_default();
        bytes.chunks_exact(size).filter_map(ip_from_compact)
    };
    let listed = |key| dict.list(key).unwrap_or_default().iter().filter_map(listed);
    let scion = entries::read(dict.bytes("peers_scion").unwrap_or_default());
    let ip = compact("peers", 6)
        .chain(listed("peers"))
        .chain(compact("peers6", 18))
        .chain(listed("peers6"))
        .map(|addr| PeerAddr::Ip(SocketAddr::new(addr.ip().to_canonical(), addr.port())));
    scion
        .filter(|peer| peer.scion().is_some())
        .chain(ip)
        .filter(|peer| peer.is_reachable())
        .take(MAX_ANSWER_PEERS)
        .collect()
}

/// A peer of a list of dictionaries (BEP 3).
fn listed(value: &Value<'_>) -> Option<SocketAddr> {
    let dict = value.as_dict()?;
    let ip = std::str::from_utf8(dict.bytes("ip")?).ok()?;
    let port = u16::try_from(dict.int("port")?).ok()?;
    Some(SocketAddr::new(ip.parse().ok()?, port))
}

/// Writes an answer; the IP peers compact (BEP 23, BEP 7), or as a list of dictionaries. The key
/// `peers_scion` is there if there are SCION peers.
pub fn write_answer(answer: &Answer, compact: bool) -> Vec<u8> {
    let int = |number: Option<u64>| number.map(|n| Value::Int(n.min(i64::MAX as u64) as i64));
    let seconds = |time: Option<Duration>| int(time.map(|time| time.as_secs()));
    let ips = || answer.peers.iter().filter_map(|peer| peer.ip());
    let joined = |ipv6: bool| -> Vec<u8> {
        let family = ips().filter(|addr| addr.is_ipv6() == ipv6);
        family.flat_map(compact_ip).collect()
    };
    let [ipv4, ipv6] = [false, true].map(joined);
    let texts: Vec<_> = ips()
        .map(|addr| (addr.ip().to_string(), addr.port()))
        .collect();
    let list = texts.iter().map(|(ip, port)| {
        let entries = [
            ("ip", Value::text(ip)),
            ("port", Value::Int((*port).into())),
        ];
        Value::dict(entries.map(|(key, value)| (key, Some(value))))
    });
    let peers = match compact {
        true => Value::Bytes(&ipv4),
        false => Value::List(list.collect()),
    };
    let scion = answer.peers.iter().copied();
    let scion = entries::write(scion.filter(|peer| peer.scion().is_some()));
    let external = answer.external_ip.map(|ip| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    });
    let some = |bytes| Some(Value::Bytes(bytes)).filter(|_| !<[u8]>::is_empty(bytes));
    Value::dict([
        ("complete", int(answer.complete.map(u64::from))),
        ("external ip", external.as_deref().map(Value::Bytes)),
        ("incomplete", int(answer.incomplete.map(u64::from))),
        ("interval", seconds(answer.interval)),
        ("min interval", seconds(answer.min_interval)),
        ("peers", Some(peers)),
        ("peers6", some(&ipv6).filter(|_| compact)),
        ("peers_scion", some(&scion)),
        ("tracker id", answer.tracker_id.as_deref().map(Value::Bytes)),
        (
            "warning message",
            answer.warning.as_deref().map(Value::text),
        ),
    ])
    .encode()
}

/// Writes a refusal, with when the client may ask again (BEP 31).
pub fn failure(reason: &str, retry: Retry) -> Vec<u8> {
    let retry = match retry {
        Retry::Unsaid => None,
        Retry::After(time) => Some(Value::Int(time.as_secs().div_ceil(60).min(1 << 31) as i64)),
        Retry::Never => Some(Value::text("never")),
    };
    Value::dict([
        ("failure reason", Some(Value::text(reason))),
        ("retry in", retry),
    ])
    .encode()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_answer;

    /// A value of any shape, as bytes of bencode.
    fn any_value() -> impl Strategy<Value = Vec<u8>> {
        let bytes = |bytes: Vec<u8>| Value::Bytes(&bytes).encode();
        let leaf = prop_oneof![
            any::<i64>().prop_map(|number| Value::Int(number).encode()),
            prop_oneof![Just(-1i64), Just(0), Just(65_536), Just(i64::MAX)]
                .prop_map(|number| Value::Int(number).encode()),
            // Compact lists of any length, also odd ones.
            prop::collection::vec(any::<u8>(), 0..80).prop_map(bytes),
            Just(bytes(b"10.0.0.1".to_vec())),
        ];
        let keys = prop::sample::subsequence(vec!["ip", "peer id", "port", "x"], 0..=4);
        leaf.prop_recursive(3, 40, 6, move |inner| {
            let list = prop::collection::vec(inner.clone(), 0..6);
            let list = list.prop_map(|values| [b"l", &values.concat()[..], b"e"].concat());
            let dict = (keys.clone(), prop::collection::vec(inner, 4));
            prop_oneof![
                list,
                dict.prop_map(|(keys, values)| dictionary(&keys, &values))
            ]
        })
    }

    /// A dictionary of encoded values.
    fn dictionary(keys: &[&str], values: &[Vec<u8>]) -> Vec<u8> {
        let entries = keys.iter().zip(values);
        let entries = entries.flat_map(|(key, value)| [Value::text(key).encode(), value.clone()]);
        [b"d", &entries.collect::<Vec<_>>().concat()[..], b"e"].concat()
    }

    const KEYS: [&str; 13] = [
        "complete",
        "external ip",
        "failure reason",
        "incomplete",
        "interval",
        "min interval",
        "peers",
        "peers6",
        "peers_scion",
        "retry in",
        "tracker id",
        "unknown",
        "warning message",
    ];

    #[test]
    fn huge_lists_of_peers_are_cut() {
        let compact = [10, 0, 0, 1, 1, 1].repeat(150_000);
        let compact = Value::dict([("peers", Some(Value::Bytes(&compact)))]).encode();
        let one = Value::dict([
            ("ip", Some(Value::text("10.0.0.1"))),
            ("port", Some(Value::Int(1))),
        ]);
        let listed = Value::List(vec![one; 30_000]);
        let listed = Value::dict([("peers", Some(listed))]).encode();
        for answer in [compact, listed] {
            assert!(answer.len() <= MAX_ANSWER);
            let answer = read_answer(&answer).expect("an answer");
            assert_eq!(answer.peers.len(), MAX_ANSWER_PEERS);
        }
        let deep = [&b"d5:peers"[..], &b"l".repeat(MAX_ANSWER - 10)].concat();
        assert!(matches!(read_answer(&deep), Err(AnswerError::Bencode(_))));
    }

    proptest! {
        #[test]
        fn answers_of_every_shape_are_read_or_refused(
            keys in prop::sample::subsequence(KEYS.to_vec(), 0..=KEYS.len()),
            values in prop::collection::vec(any_value(), KEYS.len()),
            whole_interval in 1..1_000_000u32,
            is_whole: bool,
        ) {
            let mut values = values;
            if is_whole && let Some(at) = keys.iter().position(|key| *key == "interval") {
                values[at] = Value::Int(whole_interval.into()).encode();
            }
            let is_string = |value: &[u8]| value[0].is_ascii_digit();
            let has = |wanted| keys.iter().zip(&values).find(|(key, _)| **key == wanted);
            match read_answer(&dictionary(&keys, &values)) {
                Ok(answer) => {
                    prop_assert!(answer.peers.len() <= MAX_ANSWER_PEERS);
                    prop_assert!(answer.peers.iter().all(|peer| peer.is_reachable()));
                    prop_assert!(answer.warning.is_none_or(|it| it.len() <= 1200));
                    prop_assert!(answer.tracker_id.is_none_or(|it| it.len() <= MAX_TRACKER_ID));
                    prop_assert!(answer.interval.is_none_or(|it| it >= Duration::from_secs(1)));
                    // Odd values beside it do not hide a good one.
                    if is_whole && has("interval").is_some() {
                        let expected = Duration::from_secs(whole_interval.into());
                        prop_assert_eq!(answer.interval, Some(expected));
                    }
                }
                Err(AnswerError::Refused { .. }) => {
                    prop_assert!(has("failure reason").is_some_and(|(_, it)| is_string(it)));
                }
                Err(AnswerError::Shape) => {
                    let lacks = ["interval", "peers", "peers6", "peers_scion"];
                    prop_assert!(lacks.iter().all(|key| has(key).is_none()));
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }

        #[test]
        fn answers_are_read_back(answer in any_answer(), compact: bool) {
            let written = write_answer(&answer, compact);
            let mut read = read_answer(&written).expect("an answer");
            let set = |peers: &[PeerAddr]| peers.iter().copied().collect::<BTreeSet<_>>();
            prop_assert_eq!(set(&read.peers), set(&answer.peers));
            prop_assert_eq!(read.peers.len(), answer.peers.len());
            read.peers = answer.peers.clone();
            prop_assert_eq!(read, answer);
            // Canonical bencode.
            prop_assert!(hawser_bencode::parse(&written).is_ok());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_answer(&bytes);
        }
    }

    #[test]
    fn answers_of_other_trackers_are_read() {
        let read = |text: &str| read_answer(text.as_bytes()).expect("an answer");
        let list = read(
            "d8:intervali900e5:peersl\
             d2:ip8:10.0.0.17:peer id20:aaaaaaaaaaaaaaaaaaaa4:porti6881ee\
             d2:ip11:example.org4:porti1ee\
             d2:ip9:::ffff:a.4:porti1ee\
             d2:ip5:::1:14:porti7ee\
             d2:ip8:10.0.0.14:porti70000ee\
             i7eee",
        );
        let peers: Vec<_> = list.peers.iter().map(ToString::to_string).collect();
        assert_eq!(peers, ["10.0.0.1:6881", "[::1:1]:7"]);
        assert_eq!(list.interval, Some(Duration::from_secs(900)));
        // Cut short, port 0, and no interval.
        let compact = read("d5:peers15:\x0a\0\0\x01\x1a\x1b\x0a\0\0\x02\0\0\x0a\0\0e");
        assert_eq!(compact.peers, ["10.0.0.1:6683".parse().expect("a peer")]);
        assert_eq!(compact.interval, None);
        let odd = read("d8:completei-3e10:incompletei99999999999e8:intervali-5e5:peers0:e");
        assert_eq!((odd.complete, odd.incomplete), (None, Some(u32::MAX)));
        assert_eq!(odd.interval, None);
        let many = format!("d5:peers12000:{}e", "\x01".repeat(12_000));
        assert_eq!(read(&many).peers.len(), MAX_ANSWER_PEERS);
    }

    #[test]
    fn refusals_say_when_to_ask_again() {
        for retry in [
            Retry::Unsaid,
            Retry::After(Duration::from_secs(120)),
            Retry::Never,
        ] {
            let written = failure("not registered", retry);
            let reason = "not registered".to_owned();
            assert_eq!(
                read_answer(&written),
                Err(AnswerError::Refused { reason, retry })
            );
        }
        let text = b"d14:failure reason1:x8:retry in1:5e";
        let Err(error) = read_answer(text) else {
            panic!("not refused")
        };
        let after = Retry::After(Duration::from_secs(300));
        assert!(matches!(&error, AnswerError::Refused { retry, .. } if *retry == after));
        assert_eq!(
            TrackerError::from(error).to_string(),
            "the tracker refuses: x"
        );
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert_eq!(read_answer(b"le"), Err(AnswerError::Shape));
        assert_eq!(read_answer(b"de"), Err(AnswerError::Shape));
        let html = read_answer(b"<html>");
        assert!(matches!(html, Err(AnswerError::Bencode(_))));
        assert_eq!(
            read_answer(&vec![b'd'; MAX_ANSWER + 1]),
            Err(AnswerError::Long)
        );
    }
}
