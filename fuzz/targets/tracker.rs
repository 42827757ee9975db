//! Trackers' messages: the answers of trackers over HTTP and UDP, requests of clients, and URLs.

#![no_main]

use hawser_tracker::TrackerUrl;
use hawser_tracker::message::http::{
    parse_announce, parse_scrape, read_answer, read_scrape, write_answer,
};
use hawser_tracker::message::udp::{Form, UdpAnswer, UdpRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Ok(answer) = read_answer(input) {
        assert!(answer.peers.iter().all(|peer| peer.is_reachable()));
        assert!(read_answer(&write_answer(&answer, true)).is_ok());
    }
    let _ = read_scrape(input);
    for form in [Form::Ipv4, Form::Ipv6, Form::Scion] {
        if let Ok((transaction, answer)) = UdpAnswer::read(input, form) {
            assert!(UdpAnswer::read(&answer.write(transaction, form), form).is_ok());
        }
    }
    if let Ok(request) = UdpRequest::read(input) {
        assert!(UdpRequest::read(&request.write()).is_ok());
    }
    let text = String::from_utf8_lossy(input);
    let _ = parse_announce(&text);
    let _ = parse_scrape(&text);
    if let Ok(url) = text.parse::<TrackerUrl>() {
        assert_eq!(url.to_string().parse::<TrackerUrl>(), Ok(url));
    }
});
