//! What trackers send.

use std::time::Duration;

use thiserror::Error;

use super::form::{Form, MAX_PAYLOAD, action};
use crate::message::announce::{Answer, MAX_ANSWER_PEERS, Scraped};
use crate::message::http::MAX_SCRAPE;
use crate::message::text::text;

/// A packet of a tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UdpAnswer {
    /// A connection id, to be used for one minute.
    Connect(u64),
    /// The answer to an announce: interval, numbers of peers, and peers.
    Announce(Answer),
    /// The numbers of the swarms that were asked for, in that order.
    Scrape(Vec<Scraped>),
    /// A refusal, with its text.
    Error(String),
}

/// Why a packet is not an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UdpAnswerError {
    /// It is shorter than its action needs.
    #[error("the tracker's answer is cut short")]
    Short,
    /// It has an unknown action.
    #[error("the tracker's answer has the unknown action {0}")]
    Action(u32),
}

impl UdpAnswer {
    /// The packet that answers `transaction`, at most [`MAX_PAYLOAD`] bytes: peers beyond those, and those
    /// that `form` cannot have, are left out.
    pub fn write(&self, transaction: u32, form: Form) -> Vec<u8> {
        let head = |action: u32| {
            let mut out = action.to_be_bytes().to_vec();
            out.extend(transaction.to_be_bytes());
            out
        };
        match self {
            Self::Connect(connection) => {
                let mut out = head(action::CONNECT);
                out.extend(connection.to_be_bytes());
                out
            }
            Self::Announce(answer) => {
                let mut out = head(action::ANNOUNCE);
                let interval = answer.interval.map_or(0, |interval| interval.as_secs());
                let interval = u32::try_from(interval).unwrap_or(u32::MAX);
                let counts = [answer.incomplete, answer.complete].map(Option::unwrap_or_default);
                out.extend(
                    [interval, counts[0], counts[1]]
                        .map(u32::to_be_bytes)
                        .as_flattened(),
                );
                for peer in answer.peers.iter().filter_map(|peer| form.write(*peer)) {
                    if out.len() + peer.len() > MAX_PAYLOAD {
                        break;
                    }
                    out.extend(peer);
                }
                out
            }
            Self::Scrape(swarms) => {
                let mut out = head(action::SCRAPE);
                for swarm in swarms.iter().take(MAX_SCRAPE) {
                    let numbers = [swarm.complete, swarm.downloaded, swarm.incomplete];
                    out.extend(numbers.map(u32::to_be_bytes).as_flattened());
                }
                out
            }
            Self::Error(message) => {
                let mut out = head(action::ERROR);
                out.extend(message.bytes().take(MAX_PAYLOAD - 8));
                out
            }
        }
    }

    /// Reads a packet from a tracker that is reached over the network of `form`. Returns the transaction
    /// id, too.
    ///
    /// # Errors
    /// [`UdpAnswerError`] if it is not an answer.
    pub fn read(packet: &[u8], form: Form) -> Result<(u32, Self), UdpAnswerError> {
        let (head, body) = packet
            .split_first_chunk::<8>()
            .ok_or(UdpAnswerError::Short)?;
        let [action, transaction] = split(head);
        let answer = match action {
            action::CONNECT => {
                let connection = body.first_chunk().ok_or(UdpAnswerError::Short)?;
                Self::Connect(u64::from_be_bytes(*connection))
            }
            action::ANNOUNCE => {
                let (numbers, peers) = body
                    .split_first_chunk::<12>()
                    .ok_or(UdpAnswerError::Short)?;
                let [interval, incomplete, complete] = split(numbers);
                let mut peers = form.read(peers);
                peers.retain(|peer| peer.is_reachable());
                peers.truncate(MAX_ANSWER_PEERS);
                Self::Announce(Answer {
                    interval: (interval > 0).then(|| Duration::from_secs(interval.into())),
                    incomplete: Some(incomplete),
                    complete: Some(complete),
                    peers,
                    ..Answer::default()
                })
            }
            action::SCRAPE => {
                let (swarms, _) = body.as_chunks::<12>();
                let scraped = |numbers: &[u8; 12]| {
                    let [complete, downloaded, incomplete] = split(numbers);
                    Scraped {
                        complete,
                        downloaded,
                        incomplete,
                    }
                };
                Self::Scrape(swarms.iter().take(MAX_SCRAPE).map(scraped).collect())
            }
            action::ERROR => Self::Error(text(body)),
            action => return Err(UdpAnswerError::Action(action)),
        };
        Ok((transaction, answer))
    }
}

/// The numbers in `bytes`, which has four bytes for each.
fn split<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let (numbers, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|at| {
        numbers
            .get(at)
            .map_or(0, |bytes| u32::from_be_bytes(*bytes))
    })
}

#[cfg(test)]
mod tests {
    use hawser_address::PeerAddr;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_peer;

    fn any_form() -> impl Strategy<Value = Form> {
        prop_oneof![Just(Form::Ipv4), Just(Form::Ipv6), Just(Form::Scion)]
    }

    proptest! {
        #[test]
        fn announces_are_read_back(
            transaction: u32, seconds: u32, counts: [u32; 2], form in any_form(),
            peers in vec(any_peer(), 0..300),
        ) {
            let answer = Answer {
                interval: (seconds > 0).then(|| Duration::from_secs(seconds.into())),
                incomplete: Some(counts[0]),
                complete: Some(counts[1]),
                peers,
                ..Answer::default()
            };
            let packet = UdpAnswer::Announce(answer.clone()).write(transaction, form);
            prop_assert!(packet.len() <= MAX_PAYLOAD);
            let fits = |peer: &&PeerAddr| form == Form::Scion || Form::of(**peer) == form;
            let fitting: Vec<_> = answer.peers.iter().filter(fits).copied().collect();
            let (id, UdpAnswer::Announce(read)) = UdpAnswer::read(&packet, form).expect("an answer")
            else {
                return Err(TestCaseError::fail("not an announce"));
            };
            prop_assert_eq!(id, transaction);
            prop_assert!(fitting.starts_with(&read.peers));
            prop_assert!(read.peers.len() == fitting.len() || read.peers.len() >= 40);
            prop_assert_eq!(Answer { peers: answer.peers.clone(), ..read }, answer);
        }

        #[test]
        fn other_answers_are_read_back(
            transaction: u32, id: u64, numbers in vec(any::<[u32; 3]>(), 0..=74), message in "[a-z]{0,50}",
        ) {
            let scraped = |[complete, downloaded, incomplete]: [u32; 3]| Scraped {
                complete, downloaded, incomplete,
            };
            let swarms = numbers.into_iter().map(scraped).collect();
            for answer in [UdpAnswer::Connect(id), UdpAnswer::Scrape(swarms), UdpAnswer::Error(message)] {
                let packet = answer.write(transaction, Form::Ipv4);
                prop_assert_eq!(UdpAnswer::read(&packet, Form::Ipv4), Ok((transaction, answer)));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300), form in any_form()) {
            let _ = UdpAnswer::read(&bytes, form);
        }
    }

    #[test]
    fn odd_packets_are_refused() {
        let read = |bytes: &[u8]| UdpAnswer::read(bytes, Form::Ipv4).map(|(_, answer)| answer);
        assert_eq!(read(&[0; 7]), Err(UdpAnswerError::Short));
        assert_eq!(read(&[0; 15]), Err(UdpAnswerError::Short));
        assert_eq!(
            read(&[0, 0, 0, 1, 0, 0, 0, 0, 1]),
            Err(UdpAnswerError::Short)
        );
        assert_eq!(
            read(&[0, 0, 0, 7, 0, 0, 0, 0]),
            Err(UdpAnswerError::Action(7))
        );
        let long = UdpAnswer::Error("a".repeat(2000)).write(1, Form::Ipv6);
        assert!(long.len() <= MAX_PAYLOAD);
    }
}
