//! A gateway in this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::message::{Protocol, ResultCode, testing};
use super::*;

/// A gateway on loopback, and what it maps: the port on its other side, by protocol.
struct Gateway {
    address: SocketAddr,
    mapped: Arc<Mutex<BTreeMap<&'static str, u16>>>,
    task: JoinHandle<()>,
}

impl Gateway {
    /// Answers all but the first `lost` requests as `answer` says.
    async fn start(
        mut lost: usize,
        answer: impl Fn(Protocol, u16) -> Answer + Send + 'static,
    ) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let mapped = Arc::<Mutex<BTreeMap<_, _>>>::default();
        let table = Arc::clone(&mapped);
        let task = tokio::spawn(async move {
            let mut bytes = [0; 64];
            while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
                if lost > 0 {
                    lost -= 1;
                    continue;
                }
                let answer = match testing::parse(&bytes[..length]).unwrap() {
                    Request::Address => Answer::Address(Ipv4Addr::new(192, 0, 2, 7)),
                    Request::Map {
                        protocol,
                        internal,
                        lifetime: 0,
                        external,
                    } => {
                        assert_eq!(external, 0);
                        table.lock().unwrap().remove(protocol.name());
                        Answer::Mapped {
                            protocol,
                            internal,
                            external,
                            lifetime: 0,
                        }
                    }
                    Request::Map {
                        protocol, internal, ..
                    } => {
                        let answer = answer(protocol, internal);
                        if let Answer::Mapped { external, .. } = answer {
                            table.lock().unwrap().insert(protocol.name(), external);
                        }
                        answer
                    }
                };
                // Something else first, which must not be taken for an answer.
                socket.send_to(b"nonsense", from).await.unwrap();
                let answer = testing::encode(answer);
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        Self {
            address,
            mapped,
            task,
        }
    }

    fn mapped(&self) -> Vec<(&'static str, u16)> {
        let table = self.mapped.lock().unwrap();
        table.iter().map(|(name, port)| (*name, *port)).collect()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn maps(protocol: Protocol, internal: u16) -> Answer {
    Answer::Mapped {
        protocol,
        internal,
        external: internal,
        lifetime: 7200,
    }
}

#[tokio::test]
async fn a_port_is_mapped_and_the_mapping_is_removed_at_the_end() {
    // The first requests are lost on the way.
    let gateway = Gateway::start(3, maps).await;
    let mapper = PortMapper::start(6881, Some(gateway.address));
    let expected = PortMapping::Mapped {
        address: Some(Ipv4Addr::new(192, 0, 2, 7)),
        tcp: Some(6881),
        udp: Some(6881),
    };
    let mut state = mapper.state();
    state.wait_for(|state| *state == expected).await.unwrap();
    assert_eq!(gateway.mapped(), [("TCP", 6881), ("UDP", 6881)]);
    mapper.stop().await;
    assert_eq!(gateway.mapped(), []);
}

#[tokio::test]
async fn a_gateway_that_refuses_is_reported() {
    let refuses = |protocol, _| Answer::Refused(Some(protocol), ResultCode(2));
    let gateway = Gateway::start(0, refuses).await;
    let mapper = PortMapper::start(6881, Some(gateway.address));
    let mut state = mapper.state();
    let failed = state.wait_for(|state| matches!(state, PortMapping::Failed(_)));
    let PortMapping::Failed(reason) = failed.await.unwrap().clone() else {
        panic!("it has not failed");
    };
    assert!(reason.contains("refuses mappings"), "{reason}");
    mapper.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_does_not_answer_does_not_keep_the_end_waiting() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mapper = PortMapper::start(6881, Some(silent.local_addr().unwrap()));
    let mut state = mapper.state();
    let failed = state.wait_for(|state| matches!(state, PortMapping::Failed(_)));
    let text = format!("{:?}", *failed.await.unwrap());
    assert!(text.contains("does not answer"), "{text}");
    mapper.stop().await;
}

#[tokio::test]
async fn peers_are_told_the_port_that_the_gateway_maps() {
    let elsewhere = |protocol, internal| Answer::Mapped {
        protocol,
        internal,
        external: internal + 1,
        lifetime: 7200,
    };
    let gateway = Gateway::start(0, elsewhere).await;
    let mapper = PortMapper::start(6881, Some(gateway.address));
    let mut port = mapper.tcp_port();
    port.wait_for(|port| *port == Some(6882)).await.unwrap();
    assert_eq!(mapper.state().borrow().tcp_port(), Some(6882));
    mapper.stop().await;
}
