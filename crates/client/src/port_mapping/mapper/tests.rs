//! A gateway on virtual time.

use proptest::prelude::*;

use super::super::message::ResultCode;
use super::*;

const PORT: u16 = 6881;

fn mapped(protocol: Protocol, lifetime: u32) -> Answer {
    Answer::Mapped {
        protocol,
        internal: PORT,
        external: 40_000,
        lifetime,
    }
}

/// Whether these requests ask for a mapping of this protocol.
fn asks(requests: &[Request], of: Protocol) -> bool {
    let is_it = |it: &Request| matches!(it, Request::Map { protocol, .. } if *protocol == of);
    requests.iter().any(is_it)
}

#[test]
fn requests_are_repeated_and_given_up() {
    let mut mapper = Mapper::new(PORT, Duration::ZERO);
    let (mut now, mut times) = (Duration::ZERO, Vec::new());
    while mapper.mapped().reason.is_none() {
        if asks(&mapper.advance(now), Protocol::Tcp) {
            times.push(now.as_millis());
        }
        now = mapper.next_due();
    }
    assert_eq!(times, [0, 250, 750, 1750, 3750, 7750]);
    // It is tried again later.
    assert!(asks(&mapper.advance(now + RETRY), Protocol::Tcp));
}

#[test]
fn a_mapping_is_renewed_in_time_and_lost_if_it_is_not() {
    let mut mapper = Mapper::new(PORT, Duration::ZERO);
    mapper.advance(Duration::ZERO);
    for protocol in Protocol::BOTH {
        mapper.on_answer(mapped(protocol, 3600), Duration::ZERO);
    }
    assert_eq!(mapper.mapped().tcp, Some(40_000));
    let half = Duration::from_secs(1800);
    let almost = half - Duration::from_secs(1);
    assert!(!asks(&mapper.advance(almost), Protocol::Tcp));
    let renewal = mapper.advance(half);
    // With the port that it has.
    let wanted = Request::Map {
        protocol: Protocol::Tcp,
        internal: PORT,
        external: 40_000,
        lifetime: LIFETIME,
    };
    assert!(renewal.contains(&wanted), "{renewal:?}");
    mapper.on_answer(mapped(Protocol::Tcp, 3600), half);
    mapper.advance(Duration::from_secs(3600));
    assert_eq!(mapper.mapped().tcp, Some(40_000));
    assert_eq!(mapper.mapped().udp, None);
    assert_eq!(
        mapper.end().len(),
        2,
        "one that may be renewed is ended, too"
    );
}

#[test]
fn answers_that_were_not_asked_for_are_ignored() {
    let mut mapper = Mapper::new(PORT, Duration::ZERO);
    mapper.on_answer(mapped(Protocol::Tcp, 3600), Duration::ZERO);
    assert_eq!(mapper.mapped(), Mapped::default());
    mapper.advance(Duration::ZERO);
    let other = Answer::Mapped {
        protocol: Protocol::Tcp,
        internal: PORT + 1,
        external: 1,
        lifetime: 1,
    };
    mapper.on_answer(other, Duration::ZERO);
    mapper.on_answer(mapped(Protocol::Tcp, 0), Duration::ZERO);
    assert_eq!(mapper.mapped(), Mapped::default());
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u32),
    Maps(bool, u32),
    Refuses(bool),
    Address,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..10_000_000_u32).prop_map(Step::Wait),
        3 => (any::<bool>(), any::<u32>()).prop_map(|(tcp, lifetime)| Step::Maps(tcp, lifetime)),
        1 => any::<bool>().prop_map(Step::Refuses),
        1 => Just(Step::Address),
    ]
}

proptest! {
    /// Whatever the gateway answers, no mapping is held past its time, the gateway is not flooded, and
    /// something is always due.
    #[test]
    fn mappings_are_kept_and_the_gateway_is_not_flooded(steps in prop::collection::vec(step(), 1..60)) {
        let protocol = |tcp: bool| if tcp { Protocol::Tcp } else { Protocol::Udp };
        let (mut mapper, mut now) = (Mapper::new(PORT, Duration::ZERO), Duration::ZERO);
        let mut until = [Duration::ZERO; 2];
        for step in steps {
            match step {
                Step::Wait(millis) => now += Duration::from_millis(millis.into()),
                Step::Maps(tcp, lifetime) => {
                    mapper.on_answer(mapped(protocol(tcp), lifetime), now);
                    let lasts = now + Duration::from_secs(lifetime.into());
                    until[usize::from(tcp)] = until[usize::from(tcp)].max(lasts);
                }
                Step::Refuses(tcp) => mapper.on_answer(
                    Answer::Refused(Some(protocol(tcp)), ResultCode(2)),
                    now,
                ),
                Step::Address => mapper.on_answer(Answer::Address(Ipv4Addr::LOCALHOST), now),
            }
            prop_assert!(mapper.advance(now).len() <= 3);
            // At one time each is sent once.
            prop_assert!(mapper.advance(now).is_empty());
            prop_assert!(mapper.next_due() > now);
            let shown = mapper.mapped();
            prop_assert!(shown.udp.is_none() || now < until[0]);
            prop_assert!(shown.tcp.is_none() || now < until[1]);
        }
    }
}
