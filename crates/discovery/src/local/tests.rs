use std::time::Duration;

use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use hawser_kernel::veth::VethEnd;
use tokio::sync::oneshot;

use super::*;

fn spawn(port: Option<u16>, hash: u8) -> (LocalDiscovery, mpsc::Receiver<Vec<PeerAddr>>) {
    let (sink, found) = mpsc::channel(8);
    let search = LocalSearch {
        info_hash: [hash; 20],
        port,
        ip: Some([127, 0, 0, 1].into()),
    };
    (LocalDiscovery::spawn(search, sink).unwrap(), found)
}

#[tokio::test]
async fn clients_of_one_torrent_find_each_other_on_the_loopback() {
    let (_listener, mut found) = spawn(None, 0xa1);
    let (_other, mut others) = spawn(None, 0xa2);
    let (_announcer, mut own) = spawn(Some(6881), 0xa1);
    let peer: PeerAddr = "127.0.0.1:6881".parse().unwrap();
    assert_eq!(found.recv().await, Some(vec![peer]));
    assert!(others.try_recv().is_err());
    // The announcer does not find itself, but the next one.
    let (_second, _found) = spawn(Some(6882), 0xa1);
    let peer: PeerAddr = "127.0.0.1:6882".parse().unwrap();
    assert_eq!(own.recv().await, Some(vec![peer]));
}

#[tokio::test]
async fn an_address_of_another_host_is_an_error() {
    let (sink, _found) = mpsc::channel(1);
    let search = LocalSearch {
        info_hash: [1; 20],
        port: None,
        ip: Some([192, 0, 2, 1].into()),
    };
    let error = LocalDiscovery::spawn(search, sink).unwrap_err();
    assert!(error.to_string().contains("no interface"), "{error}");
}

/// The number of the device that joins two hosts.
const LINK: u32 = 10;

/// Two hosts on one network, with these addresses.
fn hosts(ips: [IpAddr; 2], prefix: u8) -> [NetNs; 2] {
    let hosts = [NetNs::create().unwrap(), NetNs::create().unwrap()];
    let end = |last| VethEnd {
        device: "link",
        index: LINK,
        mac: [2, 0, 0, 0, 0, last],
    };
    let join = || {
        let mut netlink = Netlink::open().unwrap();
        netlink.add_veth(&end(1), &end(2), &hosts[1], 1500).unwrap();
    };
    hosts[0].run(join).unwrap();
    for (host, ip) in hosts.iter().zip(ips) {
        let configure = || {
            let mut netlink = Netlink::open().unwrap();
            netlink.add_address(LINK, ip, prefix).unwrap();
            netlink.set_up(LINK, true).unwrap();
        };
        host.run(configure).unwrap();
    }
    hosts
}

/// Runs `job` at a host.
fn at<T: Send>(host: &NetNs, job: impl Future<Output = T> + Send) -> T {
    let run = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(job)
    };
    host.run(run).unwrap()
}

#[test]
fn peers_on_two_hosts_find_each_other_over_ipv4_and_ipv6() {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    for (ips, prefix) in [(["10.9.0.1", "10.9.0.2"], 24), (["fd09::1", "fd09::2"], 64)] {
        let ips = ips.map(|ip| ip.parse::<IpAddr>().unwrap());
        let hosts = hosts(ips, prefix);
        let search = |port| LocalSearch {
            info_hash: [0xb1; 20],
            port,
            ip: None,
        };
        let (done, mut is_done) = oneshot::channel();
        let listen = async {
            let (sink, mut found) = mpsc::channel(8);
            let _listener = LocalDiscovery::spawn(search(None), sink).unwrap();
            let found = found.recv().await;
            done.send(()).unwrap();
            found
        };
        let announce = async {
            let (sink, _found) = mpsc::channel(8);
            // The other may not listen yet, nor the link be up: each start announces at once.
            loop {
                let _again = LocalDiscovery::spawn(search(Some(6881)), sink.clone()).unwrap();
                let pause = tokio::time::sleep(Duration::from_millis(100));
                tokio::select! {
                    _ = &mut is_done => return,
                    () = pause => {}
                }
            }
        };
        let found = std::thread::scope(|scope| {
            let listener = scope.spawn(|| at(&hosts[0], listen));
            at(&hosts[1], announce);
            listener.join().unwrap()
        });
        let peer = SocketAddr::new(ips[1], 6881);
        assert_eq!(found, Some(vec![PeerAddr::Ip(peer)]));
    }
}
