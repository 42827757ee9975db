//! The services as programs see them: through a gRPC client over TCP.

use super::*;
use crate::testing::{Lab, ia};
use connectrpc::{
    ErrorCode, Protocol,
    client::{ClientConfig, HttpClient},
};
use scion_protobuf::proto::daemon::v1::{DaemonServiceClient, Path, PathsRequest};
use tokio::task::JoinHandle;

/// A control service that runs until it is dropped.
struct Running {
    daemon: DaemonServiceClient<HttpClient>,
    socket: PathBuf,
    task: JoinHandle<Result<(), RunError>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn config(address: SocketAddr) -> ClientConfig {
    ClientConfig::new(format!("http://{address}").parse().unwrap())
}

async fn run(lab: &Lab, isd_as: &str) -> Running {
    let bound = lab.control(isd_as).bind().await.unwrap();
    let daemon = DaemonServiceClient::new(
        HttpClient::plaintext_http2_only(),
        config(bound.daemon_address()).with_protocol(Protocol::Grpc),
    );
    Running {
        daemon,
        socket: lab.dir(ia(isd_as)).control_socket(),
        task: tokio::spawn(bound.run(std::future::pending())),
    }
}

impl Running {
    async fn paths(&self, dst: &str) -> Result<Vec<Path>, ErrorCode> {
        let request = PathsRequest {
            destination_isd_as: ia(dst).to_u64(),
            ..PathsRequest::default()
        };
        match self.daemon.paths(request).await {
            Ok(response) => Ok(response.into_owned().paths),
            Err(error) => Err(error.code),
        }
    }
}

/// The interfaces of a path as `4#1 2#2 …`, for ASes `1-ff00:0:x`.
fn short(path: &Path) -> String {
    path.interfaces
        .iter()
        .map(|i| format!("{:x}#{}", i.isd_as & 0xffff, i.id))
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::test]
async fn fig7a_has_its_three_paths_both_ways() {
    let lab = Lab::ready("fig7a");
    let d = run(&lab, "1-ff00:0:4").await;
    let paths = d.paths("1-ff00:0:1").await.unwrap();
    assert_eq!(
        paths.iter().map(short).collect::<Vec<_>>(),
        [
            "4#1 2#2 2#1 1#1",
            "4#2 3#2 3#1 2#3 2#1 1#1",
            "4#3 7#2 7#1 6#2 6#1 5#2 5#1 1#2",
        ]
    );
    let a = run(&lab, "1-ff00:0:1").await;
    let paths = a.paths("1-ff00:0:4").await.unwrap();
    assert_eq!(
        paths.iter().map(short).collect::<Vec<_>>(),
        [
            "1#1 2#1 2#2 4#1",
            "1#1 2#1 2#3 3#1 3#2 4#2",
            "1#2 5#1 5#2 6#1 6#2 7#1 7#2 4#3",
        ]
    );
}
