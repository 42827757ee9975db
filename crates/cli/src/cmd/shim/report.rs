//! The status of a shim, as its processes report it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use hawser_http::Listener;
use hawser_kernel::bind::Refused;
use hawser_kernel::rpc::{self, Service};
use hawser_shim::carrier::{CarrierReport, Reporter};
use hawser_shim::holder;
use hawser_shim::status::{StatusReport, metrics};
use serde_json::Value;
use tokio::net::UnixListener;

use super::place::{self, ShimName};
use crate::failure::{Doing, Failure};

/// The carrier, as its users call it.
const CARRIER: Service = Service {
    name: "shim",
    timeout: Duration::from_secs(5),
};

/// Wait after a request could not be accepted.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Reads the status of the shim with this name.
///
/// # Errors
/// When there is no holder; without a carrier the status says so.
pub fn read(name: &ShimName) -> Result<StatusReport, Failure> {
    let held = holder::report(&name.holder()).map_err(|error| place::not_up(name, error))?;
    let carrier: Result<CarrierReport, _> = CARRIER.call(&name.carrier(), &"status");
    Ok(StatusReport::new(held, carrier.ok()))
}

/// Answers at `socket` what there is to see of the carrier.
pub async fn serve(reporter: Reporter, socket: &Path) -> Result<(), Failure> {
    let what = format!("listening at {}", socket.display());
    let (listener, _file) = rpc::listen(socket).doing(&what)?;
    let listener = UnixListener::from_std(listener).doing(&what)?;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // For lack of descriptors, perhaps; sessions go on.
                tracing::warn!(%error, "cannot accept a request for the status");
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
                continue;
            }
        };
        let report = reporter.report().await;
        tokio::task::spawn_blocking(move || {
            let stream = stream.into_std()?;
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(CARRIER.timeout))?;
            let _: (Value, _) = rpc::receive(&stream)?;
            rpc::send(&stream, &report, &[])
        });
    }
}

/// Reads the argument of `--metrics`: an address with a port, or a port of this host's loopback.
pub fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    let port = text
        .parse()
        .map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    port.or_else(|_| text.parse())
        .map_err(|_| format!("{text:?} is no address: write IP:PORT, or PORT for 127.0.0.1"))
}

/// Binds the socket on which metrics are served.
pub async fn metrics_listener(address: SocketAddr) -> Result<Listener, Failure> {
    let bound = Listener::bind(address, None).await;
    bound.map_err(|error| {
        let refused = Refused::tcp(address, &error);
        Failure::job(format_args!("cannot serve metrics at {address}: {refused}"))
    })
}

/// Serves the metrics of the shim with this name. Never ends.
pub async fn serve_metrics(listener: Listener, name: ShimName, reporter: Reporter) {
    let read = move || {
        let (name, reporter) = (name.clone(), reporter.clone());
        async move {
            let carrier = reporter.report().await;
            let held = tokio::task::spawn_blocking(move || holder::report(&name.holder()));
            let held = held.await.map_err(|error| error.to_string())?;
            let held = held.map_err(|error| error.to_string())?;
            Ok(metrics(&StatusReport::new(held, Some(carrier))))
        }
    };
    listener.serve_metrics(read).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_host() {
        let read = |text| metrics_address(text).map(|address| address.to_string());
        assert_eq!(read("9100"), Ok("127.0.0.1:9100".into()));
        assert_eq!(read("10.0.0.1:9100"), Ok("10.0.0.1:9100".into()));
        assert_eq!(read("[::1]:9100"), Ok("[::1]:9100".into()));
        assert!(read("host:9100").is_err() && read("99999").is_err());
    }
}
