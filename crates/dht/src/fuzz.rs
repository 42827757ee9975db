//! Random bytes for everything that reads messages.

use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Instant;

use fastrand::Rng;
use hawser_address::ScionAddr;
use hawser_fuzz::fuzz;

use crate::message::{
    Body, ErrorCode, Found, Message, Method, write_answer, write_error, write_query,
};
use crate::{Address, Announce, Config, Dht, Id};

fn valid<A: Address>(addr: A) -> Vec<Vec<u8>> {
    let (id, target) = (Id([1; 20]), Id([2; 20]));
    let announce = Method::Announce {
        info_hash: target,
        port: Some(6881),
        token: vec![1; 8],
    };
    let methods = [
        Method::Ping,
        Method::FindNode(target),
        Method::GetPeers(target),
        announce,
    ];
    let queries = methods
        .iter()
        .map(|method| write_query(7, id, method, false));
    let found = Found {
        nodes: Some(vec![(id, addr), (target, addr)]),
        values: vec![addr; 2],
        token: Some([3; 8]),
    };
    let answer = write_answer(&[1, 2, 3, 4], id, addr, &found);
    let error = write_error(&[1, 2], ErrorCode::Server, "no");
    queries.chain([answer, error]).collect()
}

fn check<A: Address>(addr: A) {
    fuzz(&valid(addr), |input| {
        let Ok(message) = Message::<A>::read(input) else {
            return;
        };
        match message.body {
            Body::Query { id, method } => {
                let written = write_query(1, id, &method, message.read_only);
                let read = Message::<A>::read(&written).map(|read| read.body);
                assert_eq!(read, Ok(Body::Query { id, method }));
            }
            Body::Answer(answer) => {
                let found = Found {
                    nodes: Some(answer.nodes.clone()),
                    values: answer.values.clone(),
                    token: None,
                };
                let written = write_answer(&message.transaction, answer.id, addr, &found);
                let Ok(Body::Answer(read)) = Message::read(&written).map(|read| read.body) else {
                    panic!("not read")
                };
                assert_eq!((read.id, read.nodes), (answer.id, answer.nodes));
                assert_eq!(read.values, answer.values);
            }
            Body::Error => {}
        }
    });
}

#[test]
fn any_message_is_read_or_refused() {
    check("93.184.216.34:6881".parse::<SocketAddrV4>().unwrap());
    check("[2001:db8::1]:6881".parse::<SocketAddrV6>().unwrap());
    check("1-ff00:0:110,10.0.0.1:6881".parse::<ScionAddr>().unwrap());
}

#[test]
fn a_node_takes_any_datagram() {
    let addr: SocketAddrV4 = "93.184.216.34:6881".parse().unwrap();
    let now = Instant::now();
    let mut dht = Dht::new(Config::default(), Rng::with_seed(1), now);
    dht.bootstrap(now, [addr]);
    let _ = dht.search(now, [9; 20], Some(Announce::Port(1)));
    fuzz(&valid(addr), |input| {
        dht.receive(now, addr, input);
        while dht.poll().is_some() {}
    });
    let stats = dht.stats(now);
    assert!(stats.counters.malformed > 0 && stats.counters.queries_limited > 0);
    assert!(stats.peers <= 8 && stats.good <= 1);
}
