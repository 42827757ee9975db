//! Attacks an endpoint with packets that cost it much memory for few bytes, and prints what came of
//! it. To be run beside a program whose resident memory is watched.
//!
//! `hostile begin|hold|fragment ADDRESS ALPN PACKETS [PACKETS-EACH]`. `ADDRESS` without ISD-AS is one on
//! plain IP.

mod attack;

use std::env;
use std::error::Error;
use std::net::{SocketAddr, UdpSocket};

use hawser_endhost::{Bootstrap, Endhost, ScionAddr, plain_ip};

use self::attack::Attacker;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [what, address, alpn, packets, rest @ ..] = &args[..] else {
        return Err("hostile begin|hold|fragment ADDRESS ALPN PACKETS [PACKETS-EACH]".into());
    };
    let (host, peer) = match address.parse::<SocketAddr>() {
        Ok(address) => (Endhost::on_plain_ip(None), plain_ip(address)),
        Err(_) => {
            let host = Endhost::bootstrap(&Bootstrap::default()).await?;
            (host, address.parse::<ScionAddr>()?)
        }
    };
    let path = host.paths(peer.isd_as).await?.remove(0);
    // The address from which the peer, or the router on the way to it, is reached.
    let towards = UdpSocket::bind("0.0.0.0:0")?;
    towards.connect(path.next_hop().unwrap_or(peer.host))?;
    let local = (towards.local_addr()?.ip(), 0).into();
    let mut attacker = Attacker::new(&host, local, peer, &path, alpn.as_bytes())?;
    let packets = packets.parse()?;
    let outcome = match (what.as_str(), rest) {
        ("begin", []) => attacker.begin(packets)?,
        ("hold", []) => attacker.hold(packets)?,
        ("fragment", []) => attacker.fragment(packets, u64::MAX)?,
        ("fragment", [each]) => attacker.fragment(packets, each.parse()?)?,
        _ => return Err("hostile begin|hold|fragment ADDRESS ALPN PACKETS [PACKETS-EACH]".into()),
    };
    println!("{outcome:?}");
    Ok(())
}
