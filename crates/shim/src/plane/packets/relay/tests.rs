use super::*;

/// What was sent, and how many packets were not.
#[derive(Default)]
struct Recorded {
    sent: Mutex<Vec<Vec<u8>>>,
    unsent: AtomicU64,
}

struct Recorder(Arc<Recorded>);

impl Replies for Recorder {
    fn largest(&self) -> usize {
        1500
    }

    fn send(&self, packets: &[Vec<u8>]) {
        lock(&self.0.sent).extend_from_slice(packets);
    }

    fn on_unsent(&self) {
        self.0.unsent.fetch_add(1, Ordering::Relaxed);
    }
}

fn packet(source: &str, destination: &str) -> Vec<u8> {
    let name = Name {
        kind: FlowProtocol::Udp,
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    };
    name.sample().unwrap()
}

#[test]
fn errors_are_counted_and_reported_where_icmp_has_a_message() {
    let recorded = Arc::new(Recorded::default());
    let relay = Relay::new(Rule::Any, Box::new(Recorder(Arc::clone(&recorded))));
    let v4 = packet("10.0.0.1:5", "10.0.0.2:7");
    let v6 = packet("[fd00::1]:5", "[fd00::2]:7");
    let mut whole = v4.clone();
    // "Don't fragment"; the checksum of the header is not looked at.
    whole[6] |= 0x40;
    for (error, packet, expected, count) in [
        (Errno::CONNREFUSED, &v4, Some((3, 3)), 0),
        (Errno::HOSTUNREACH, &v4, Some((3, 1)), 1),
        (Errno::NETUNREACH, &v4, Some((3, 0)), 1),
        (Errno::NETUNREACH, &v6, Some((1, 0)), 1),
        (Errno::MSGSIZE, &whole, Some((3, 4)), 1),
        (Errno::MSGSIZE, &v6, Some((2, 0)), 1),
        (Errno::AGAIN, &v4, None, 1),
        (Errno::PERM, &v6, None, 1),
    ] {
        relay.on_error(error, packet, || Some(1300));
        let message = std::mem::take(&mut *lock(&recorded.sent)).pop();
        let kind = message.as_deref().map(|message| {
            let received = Received::parse(message).unwrap();
            (received.payload[0], received.payload[1])
        });
        assert_eq!(kind, expected, "{error}");
        assert_eq!(recorded.unsent.swap(0, Ordering::Relaxed), count, "{error}");
    }
    // What routers may cut needs no message, nor where no limit is known.
    let mut cut = v4;
    cut[6] &= !0x40;
    relay.on_error(Errno::MSGSIZE, &cut, || Some(1300));
    relay.on_error(Errno::MSGSIZE, &v6, || None);
    assert!(lock(&recorded.sent).is_empty());
}
