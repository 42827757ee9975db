//! Lists the paths to an AS, the ones with the lowest announced latency first.
//!
//! `explore 1-ff00:0:110`

use std::error::Error;
use std::time::SystemTime;

use hawser::{Host, Path};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dst = std::env::args().nth(1).ok_or("explore ISD-AS")?;
    let host = Host::bootstrap().await?;
    let mut paths = host.paths(dst.parse()?).await?;
    paths.sort_by_key(|path| (path.latency().is_none(), path.latency(), path.fingerprint()));
    println!("{} paths from {} to {dst}", paths.len(), host.isd_as());
    for path in &paths {
        show(path);
    }
    for interface in paths.first().map(shared(&paths)).unwrap_or_default() {
        println!("every path crosses {interface}");
    }
    Ok(())
}

fn show(path: &Path) {
    let latency = path
        .latency()
        .map_or("unknown".into(), |one| format!("{} ms", one.as_millis()));
    let left = path
        .expiry()
        .and_then(|expiry| expiry.duration_since(SystemTime::now()).ok());
    let left = left.map_or("no expiry".into(), |left| {
        format!("{} min left", left.as_secs() / 60)
    });
    let (name, mtu, status) = (path.fingerprint().short(), path.mtu(), path.status());
    println!("{name} {path} latency {latency}, mtu {mtu}, {left}, {status:?}");
}

/// The interfaces of a path that all paths cross.
fn shared(paths: &[Path]) -> impl Fn(&Path) -> Vec<hawser::Interface> {
    let all: Vec<Vec<hawser::Interface>> = paths.iter().map(Path::interfaces).collect();
    move |path| {
        let mut interfaces = path.interfaces();
        interfaces.retain(|one| all.iter().all(|path| path.contains(one)));
        interfaces
    }
}
