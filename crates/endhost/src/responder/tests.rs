use super::*;
use crate::path::Path;

const FROM: &str = "127.0.0.1:4000";

fn request(message: &[u8]) -> Vec<u8> {
    let us: ScionAddr = "1-ff00:0:1,10.0.0.1:31000".parse().unwrap();
    let host: ScionAddr = "1-ff00:0:1,10.0.0.2:30041".parse().unwrap();
    let path = Path::within(us.isd_as, 1472);
    Headers::new(us, host, &path).unwrap().scmp(message)
}

fn echo(reply: bool, id: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    let echo = Scmp::Query {
        reply,
        id,
        sequence,
        body: Body::Echo(data),
    };
    echo.to_bytes()
}

#[test]
fn an_echo_reply_repeats_the_request() {
    let request = request(&echo(false, 31000, 5, b"data"));
    let reply = answer(&request, FROM.parse().unwrap()).unwrap();
    let packet = Packet::parse(&reply).unwrap();
    let expected = Scmp::Query {
        reply: true,
        id: 31000,
        sequence: 5,
        body: Body::Echo(b"data"),
    };
    assert_eq!(Scmp::parse(&packet), Ok(expected));
    assert_eq!(packet.src_host().unwrap().to_string(), "10.0.0.2");
    assert_eq!(packet.dst_host().unwrap().to_string(), "10.0.0.1");
    assert_eq!(reply.len(), request.len());
}

#[test]
fn traceroute_is_answered_and_not_amplified() {
    let message = Scmp::Query {
        reply: false,
        id: 31000,
        sequence: 5,
        body: Body::Traceroute {
            isd_as: "1-ff00:0:9".parse().unwrap(),
            interface: 0,
        },
    };
    let message = message.to_bytes();
    let request = request(&message);
    let reply = answer(&request, FROM.parse().unwrap()).unwrap();
    let packet = Packet::parse(&reply).unwrap();
    let expected = Scmp::Query {
        reply: true,
        id: 31000,
        sequence: 5,
        body: Body::Traceroute {
            isd_as: "1-ff00:0:1".parse().unwrap(),
            interface: 0,
        },
    };
    assert_eq!(Scmp::parse(&packet), Ok(expected));
    assert_eq!(reply.len(), request.len());
    let short = self::request(&message[..8]);
    assert_eq!(answer(&short, FROM.parse().unwrap()), None);
}

#[test]
fn replies_and_malformed_packets_are_not_answered() {
    let from = FROM.parse().unwrap();
    assert_eq!(answer(&request(&echo(true, 31000, 5, b"")), from), None);
    assert_eq!(answer(b"noise", from), None);
    let mut broken = request(&echo(false, 31000, 5, b"data"));
    *broken.last_mut().unwrap() ^= 1;
    assert_eq!(answer(&broken, from), None);
}
