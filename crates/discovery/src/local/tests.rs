use std::time::Duration;

use hawser_kernel::namespace::{NetNs, is_privileged};
use hawser_kernel::netlink::Netlink;
use hawser_kernel::veth::VethEnd;
use tokio::sync::oneshot;

use super::*;

/// Longest wait for anything, also on a machine that is very busy.
const PATIENCE: Duration = Duration::from_secs(300);

type Found = mpsc::Receiver<Vec<PeerAddr>>;

fn open(port: Option<u16>) -> LocalDiscovery {
    let ip = Some([127, 0, 0, 1].into());
    LocalDiscovery::open(LocalOptions { port, ip }).unwrap()
}

fn search(local: &LocalDiscovery, hash: u8, announces: bool) -> (LocalSearch, Found) {
    let (sink, found) = mpsc::channel(8);
    (local.search([hash; 20], announces, sink), found)
}

fn spawn(port: Option<u16>, hash: u8) -> (LocalSearch, Found) {
    search(&open(port), hash, true)
}

/// What is found next.
async fn next(found: &mut Found) -> Option<Vec<PeerAddr>> {
    let next = tokio::time::timeout(PATIENCE, found.recv()).await;
    next.expect("a peer is found")
}

fn peer(port: u16) -> Option<Vec<PeerAddr>> {
    Some(vec![PeerAddr::Ip(([127, 0, 0, 1], port).into())])
}

#[tokio::test]
async fn clients_of_one_torrent_find_each_other_on_the_loopback() {
    let (_listener, mut found) = spawn(None, 0xa1);
    let (_other, mut others) = spawn(None, 0xa2);
    let (_announcer, mut own) = spawn(Some(6881), 0xa1);
    assert_eq!(next(&mut found).await, peer(6881));
    assert!(others.try_recv().is_err());
    // The announcer does not find itself, but the next one.
    let (_second, _found) = spawn(Some(6882), 0xa1);
    assert_eq!(next(&mut own).await, peer(6882));
}

#[tokio::test]
async fn the_torrents_of_a_client_are_told_apart() {
    let all = open(None);
    let (first, mut of_first) = search(&all, 0xc1, false);
    let (_second, mut of_second) = search(&all, 0xc2, false);
    let (_announcer, _found) = spawn(Some(6883), 0xc2);
    assert_eq!(next(&mut of_second).await, peer(6883));
    assert!(of_first.try_recv().is_err());
    // A later search for the same torrent takes its place, and the end of the earlier one changes nothing.
    let (_again, mut of_again) = search(&all, 0xc1, false);
    drop(first);
    let (_announcer, _found) = spawn(Some(6884), 0xc1);
    assert_eq!(next(&mut of_again).await, peer(6884));
    assert_eq!(next(&mut of_first).await, None);
}

#[tokio::test]
async fn a_torrent_is_announced_once_it_may_be() {
    let (_listener, mut found) = spawn(None, 0xd1);
    let (_other, mut others) = spawn(None, 0xd2);
    let local = open(Some(6885));
    let (secret, _found) = search(&local, 0xd1, false);
    let (_open, _found) = search(&local, 0xd2, true);
    assert_eq!(next(&mut others).await, peer(6885));
    assert!(found.try_recv().is_err());
    // Not through the same client: that may send again in a minute.
    let local = open(Some(6886));
    let (known, _found) = search(&local, 0xd1, false);
    known.announce();
    assert_eq!(next(&mut found).await, peer(6886));
    drop(secret);
}

#[tokio::test]
async fn an_address_of_another_host_is_an_error() {
    let options = LocalOptions {
        port: None,
        ip: Some([192, 0, 2, 1].into()),
    };
    let error = LocalDiscovery::open(options).unwrap_err();
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
        let search = |port| {
            let local = LocalDiscovery::open(LocalOptions { port, ip: None }).unwrap();
            search(&local, 0xb1, true)
        };
        let (done, mut is_done) = oneshot::channel();
        let listen = async {
            let (_listener, mut found) = search(None);
            let found = next(&mut found).await;
            done.send(()).unwrap();
            found
        };
        let announce = async {
            // The other may not listen yet, nor the link be up: each start announces at once.
            loop {
                let _again = search(Some(6881));
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
