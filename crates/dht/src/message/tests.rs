use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use hawser_address::{IsdAsn, ScionAddr};
use proptest::prelude::*;

use super::*;

type V4 = SocketAddrV4;

const ID: Id = Id(*b"abcdefghij0123456789");
const TARGET: Id = Id(*b"mnopqrstuvwxyz123456");

fn read(text: &[u8]) -> Result<Message<V4>, Fault> {
    Message::read(text)
}

fn body(text: &[u8]) -> Body<V4> {
    read(text).unwrap().body
}

#[test]
fn the_queries_of_bep_5_are_read() {
    let query = |method| Body::Query { id: ID, method };
    let ping = b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe";
    assert_eq!(body(ping), query(Method::Ping));
    assert_eq!(read(ping).unwrap().transaction, b"aa");
    assert!(!read(ping).unwrap().read_only);
    let find = b"d1:ad2:id20:abcdefghij01234567896:target20:mnopqrstuvwxyz123456e1:q9:find_node1:t2:aa1:y1:qe";
    assert_eq!(body(find), query(Method::FindNode(TARGET)));
    let get = b"d1:ad2:id20:abcdefghij01234567899:info_hash20:mnopqrstuvwxyz123456e1:q9:get_peers2:roi1e1:t2:aa1:y1:qe";
    assert_eq!(body(get), query(Method::GetPeers(TARGET)));
    assert!(read(get).unwrap().read_only);
    let announce = b"d1:ad2:id20:abcdefghij012345678912:implied_porti1e9:info_hash20:mnopqrstuvwxyz1234564:porti6881e5:token8:aoeusnthe1:q13:announce_peer1:t2:aa1:y1:qe";
    let method = |port| Method::Announce {
        info_hash: TARGET,
        port,
        token: b"aoeusnth".to_vec(),
    };
    assert_eq!(body(announce), query(method(None)));
    let given = String::from_utf8_lossy(announce).replace("porti1e", "porti0e");
    assert_eq!(body(given.as_bytes()), query(method(Some(6881))));
    for port in ["i0e", "i65536e", "i-1e"] {
        let text = given.replace("i6881e", port);
        let code = ErrorCode::Protocol;
        let transaction = b"aa".to_vec();
        assert_eq!(
            read(text.as_bytes()),
            Err(Fault::Query { transaction, code })
        );
    }
}

#[test]
fn the_answers_of_bep_5_are_read() {
    let text = b"d1:rd2:id20:abcdefghij01234567895:nodes26:mnopqrstuvwxyz123456axje.u5:token8:aoeusnth6:valuesl6:axje.u6:idhtnmee1:t2:aa1:y1:re";
    let Body::Answer(answer) = body(text) else {
        panic!("not an answer")
    };
    assert_eq!(answer.id, ID);
    assert_eq!(answer.token.as_deref(), Some(&b"aoeusnth"[..]));
    let addr = V4::from_compact(b"axje.u").unwrap();
    assert_eq!(answer.nodes, [(TARGET, addr)]);
    assert_eq!(answer.values, [addr, V4::from_compact(b"idhtnm").unwrap()]);
    let error = b"d1:eli201e23:A Generic Error Ocurrede1:t2:aa1:y1:ee";
    assert_eq!(body(error), Body::Error);
}

#[test]
fn unknown_queries_with_a_target_look_for_nodes() {
    let text =
        b"d1:ad2:id20:abcdefghij01234567896:target20:mnopqrstuvwxyz123456e1:q3:get1:t2:aa1:y1:qe";
    let method = Method::FindNode(TARGET);
    assert_eq!(body(text), Body::Query { id: ID, method });
    let text = b"d1:ad2:id20:abcdefghij0123456789e1:q3:foo1:t2:aa1:y1:qe";
    let fault = Fault::Query {
        transaction: b"aa".to_vec(),
        code: ErrorCode::MethodUnknown,
    };
    assert_eq!(read(text), Err(fault));
}

#[test]
fn queries_that_cannot_be_understood_can_be_refused() {
    for text in [
        &b"d1:t2:aa1:y1:qe"[..],
        b"d1:q4:ping1:t2:aa1:y1:qe",
        b"d1:ad2:id3:abce1:q4:ping1:t2:aa1:y1:qe",
        b"d1:ad2:id20:abcdefghij0123456789e1:q9:get_peers1:t2:aa1:y1:qe",
    ] {
        let code = ErrorCode::Protocol;
        let transaction = b"aa".to_vec();
        assert_eq!(read(text), Err(Fault::Query { transaction, code }));
    }
    for text in [
        &b""[..],
        b"le",
        b"d1:y1:qe",
        b"d1:t2:aae",
        b"d1:t2:aa1:y1:xe",
        b"d1:t2:aa1:y1:re",
        b"d1:rde1:t2:aa1:y1:re",
        b"d1:t40:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1:y1:qe",
        &[b'x'; MAX_DATAGRAM + 1],
    ] {
        assert_eq!(read(text), Err(Fault::Malformed));
    }
}

#[test]
fn lists_of_an_answer_are_bounded_and_may_be_torn() {
    let mut nodes = Vec::new();
    for at in 0..40 {
        nodes.extend([at; 26]);
    }
    let values = Value::List(vec![Value::Bytes(b"axje.u"); 200]);
    let nodes = [
        (&nodes[..], MAX_NODES),
        (&nodes[..70], 2),
        (&nodes[..25], 0),
        (b"", 0),
    ];
    for (nodes, count) in nodes {
        let answer = Value::dict([
            ("id", Some(Value::Bytes(&ID.0))),
            ("nodes", Some(Value::Bytes(nodes))),
            ("values", Some(values.clone())),
        ]);
        let text = Value::dict([
            ("r", Some(answer)),
            ("t", Some(Value::text("aa"))),
            ("y", Some(Value::text("r"))),
        ]);
        let Body::Answer(answer) = body(&text.encode()) else {
            panic!("not an answer")
        };
        assert_eq!(
            (answer.nodes.len(), answer.values.len()),
            (count, MAX_VALUES)
        );
    }
}

fn check<A: Address>(addrs: Vec<A>, token: Option<[u8; 8]>, transaction: &[u8]) {
    let nodes: Vec<_> = addrs.iter().map(|addr| (TARGET, *addr)).collect();
    let to = addrs[0];
    let found = Found {
        nodes: Some(nodes.clone()),
        values: addrs.clone(),
        token,
    };
    let bytes = write_answer(transaction, ID, to, &found);
    assert!(hawser_bencode::parse(&bytes).is_ok(), "not canonical");
    let answer = Answer {
        id: ID,
        nodes,
        values: addrs,
        token: token.map(Vec::from),
    };
    let message = Message {
        transaction: transaction.to_vec(),
        read_only: false,
        ip: Some(to),
        body: Body::Answer(answer),
    };
    assert_eq!(Message::read(&bytes), Ok(message));
}

proptest! {
    #[test]
    fn answers_are_read_as_written(
        hosts in prop::collection::vec(any::<(u64, SocketAddr)>(), 1..9),
        token: Option<[u8; 8]>,
        transaction in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let scion = hosts.iter().map(|(isd_as, host)| {
            ScionAddr::new(IsdAsn(*isd_as), SocketAddr::new(host.ip(), host.port()))
        });
        check(scion.collect(), token, &transaction);
        let v4 = |(bits, host): &(u64, SocketAddr)| V4::new((*bits as u32).into(), host.port());
        check(hosts.iter().map(v4).collect(), token, &transaction);
        let v6 = |(bits, host): &(u64, SocketAddr)| {
            SocketAddrV6::new(u128::from(*bits).into(), host.port(), 0, 0)
        };
        check(hosts.iter().map(v6).collect(), token, &transaction);
    }

    #[test]
    fn queries_are_read_as_written(
        number: u32,
        id: [u8; 20],
        target: [u8; 20],
        port in prop::option::of(1u16..),
        token in prop::collection::vec(any::<u8>(), 0..20),
        read_only: bool,
    ) {
        let (id, target) = (Id(id), Id(target));
        let announce = Method::Announce { info_hash: target, port, token };
        for method in [Method::Ping, Method::FindNode(target), Method::GetPeers(target), announce] {
            let bytes = write_query(number, id, &method, read_only);
            prop_assert!(hawser_bencode::parse(&bytes).is_ok(), "not canonical");
            let message = Message::<V4>::read(&bytes).unwrap();
            prop_assert_eq!(&message.transaction, &number.to_be_bytes());
            prop_assert_eq!(message.read_only, read_only);
            prop_assert_eq!(message.body, Body::Query { id, method });
        }
    }

    #[test]
    fn any_bytes_are_messages_or_not(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
    }
}

#[test]
fn errors_are_read_as_written() {
    let bytes = write_error(b"xy", ErrorCode::Protocol, "invalid token");
    assert!(bytes.starts_with(b"d1:eli203e13:invalid tokene1:t2:xy"));
    assert_eq!(body(&bytes), Body::Error);
}

#[test]
fn an_announcement_says_whether_the_port_is_that_of_the_query() {
    let written = |port| {
        let announce = Method::Announce {
            info_hash: TARGET,
            port,
            token: b"aoeusnth".to_vec(),
        };
        let bytes = write_query(1, ID, &announce, false);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // Some programs take none that does not say so.
    assert!(written(None).contains("12:implied_porti1e"));
    assert!(written(Some(6881)).contains("12:implied_porti0e"));
    assert!(written(Some(6881)).contains("4:porti6881e"));
}
