//! Tests of the services with a gRPC client over TCP.

use std::path::PathBuf;

use hawser_kernel::rpc::RpcError;
use hawser_proto::Message;
use hawser_proto::control_plane::{
    ASEntrySignedBody, PathSegment, SEGMENTS, SegmentsRequest, SegmentsResponse,
    StaticInfoExtension,
};
use hawser_proto::crypto::HeaderAndBodyInternal;
use hawser_proto::daemon::{
    AS, ASRequest, DRKEYS, INTERFACES, NOTIFY_INTERFACE_DOWN, NotifyInterfaceDownRequest, PATHS,
    PORT_RANGE, Path as PathMessage, PathsRequest, SERVICES,
};
use hawser_proto::well_known::Empty;
use hawser_rpc::{Client, Code};
use hawser_topology::{AsDir, LinkState, Shape};
use proptest::prelude::*;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;
use crate::live::call;
use crate::plane::Plane;
use crate::testing::{Lab, client, ia};

/// A control service that runs until it is dropped.
struct Running {
    daemon: Client,
    control: SocketAddr,
    socket: PathBuf,
    task: JoinHandle<Result<(), ControlError>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(lab: &Lab, isd_as: &str) -> Running {
    let control = lab.control(isd_as).await.unwrap();
    Running {
        daemon: client(control.status.daemon),
        control: control.status.control[0],
        socket: lab.dir(ia(isd_as)).control_socket(),
        task: tokio::spawn(control.run(std::future::pending())),
    }
}

impl Running {
    async fn paths(&self, dst: &str) -> Result<Vec<PathMessage>, Code> {
        let request = PathsRequest {
            destination_isd_as: ia(dst).to_u64(),
            refresh: true,
            ..PathsRequest::default()
        };
        match self.daemon.call(PATHS, &request).await {
            Ok(response) => Ok(response.paths),
            Err(error) => Err(error.code),
        }
    }

    async fn live(&self, request: Request) -> Result<Reply, RpcError> {
        let socket = self.socket.clone();
        tokio::task::spawn_blocking(move || call(&socket, &request))
            .await
            .unwrap()
    }
}

/// The interfaces of a path as `4#1 2#2 …`, for ASes `1-ff00:0:x`.
fn short(path: &PathMessage) -> String {
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
    // A host can send over them now.
    for path in paths {
        let router = path.interface.unwrap().address.unwrap().address;
        assert_eq!(router, "10.0.1.254:30042");
        let ids: Vec<_> = path.interfaces.iter().map(|i| i.id).collect();
        let crossed = hawser_packet::path::interface_ids(&path.raw).unwrap();
        assert_eq!(crossed.into_iter().map(u64::from).collect::<Vec<_>>(), ids);
        let expiry = hawser_packet::path::expiry(&path.raw).unwrap();
        assert!(expiry > crate::shared::now());
        assert_eq!(
            path.expiration.unwrap().seconds,
            i64::try_from(expiry).unwrap()
        );
    }
}

#[tokio::test]
async fn the_daemon_describes_its_as() {
    let lab = Lab::two_isds();
    let running = run(&lab, "1-ff00:0:110").await;
    let daemon = &running.daemon;

    let local = daemon.call(AS, &ASRequest::default()).await.unwrap();
    assert_eq!(
        (local.isd_as, local.core),
        (ia("1-ff00:0:110").to_u64(), true)
    );
    assert_eq!(local.mtu, 1472);
    let other = ia("1-ff00:0:112").to_u64();
    let other = daemon.call(AS, &ASRequest { isd_as: other }).await.unwrap();
    assert_eq!((other.core, other.mtu), (false, 1400));
    let unknown = ia("9-ff00:0:112").to_u64();
    let error = daemon.call(AS, &ASRequest { isd_as: unknown }).await;
    let error = error.unwrap_err();
    assert_eq!(error.code, Code::NotFound);

    let interfaces = daemon.call(INTERFACES, &Empty {}).await.unwrap();
    let addresses: Vec<_> = interfaces
        .interfaces
        .into_iter()
        .map(|(id, interface)| (id, interface.address.unwrap().address))
        .collect();
    let at = |port| format!("10.0.1.254:{port}");
    assert_eq!(
        addresses,
        [
            (1, at(30042)),
            (2, at(30043)),
            (5, at(30042)),
            (6, at(30043))
        ]
    );

    let services = daemon.call(SERVICES, &Empty {}).await.unwrap().services;
    assert_eq!(services["control"].services[0].uri, "10.0.1.254:30252");

    let range = daemon.call(PORT_RANGE, &Empty {}).await.unwrap();
    let ports = (range.dispatched_port_start, range.dispatched_port_end);
    assert_eq!(ports, (31000, 32767));

    let down = NotifyInterfaceDownRequest {
        isd_as: local.isd_as,
        id: 1,
    };
    assert!(daemon.call(NOTIFY_INTERFACE_DOWN, &down).await.is_ok());
}

#[tokio::test]
async fn refusals_have_the_right_code() {
    let lab = Lab::two_isds();
    let running = run(&lab, "1-ff00:0:110").await;
    assert_eq!(
        running.paths("0-0").await.err(),
        Some(Code::InvalidArgument)
    );
    assert_eq!(running.paths("3-0").await.err(), Some(Code::NotFound));
    assert_eq!(
        running.paths("2-ff00:0:999").await.err(),
        Some(Code::NotFound)
    );
    let daemon = &running.daemon;
    let foreign = PathsRequest {
        source_isd_as: ia("1-ff00:0:120").to_u64(),
        destination_isd_as: ia("1-ff00:0:111").to_u64(),
        ..PathsRequest::default()
    };
    let error = daemon.call(PATHS, &foreign).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    let text = error.message;
    assert!(text.contains("1-ff00:0:110, not in 1-ff00:0:120"), "{text}");
    let hidden = PathsRequest {
        destination_isd_as: ia("1-ff00:0:111").to_u64(),
        hidden: true,
        ..PathsRequest::default()
    };
    let error = daemon.call(PATHS, &hidden).await.unwrap_err();
    assert_eq!(error.code, Code::Unimplemented);
    for method in DRKEYS {
        let error = daemon.call(method, &Empty {}).await.unwrap_err();
        assert_eq!(error.code, Code::Unimplemented);
        assert_eq!(error.message, "this network has no DRKeys");
    }
}

fn body(segment: &PathSegment, at: usize) -> ASEntrySignedBody {
    let signed = segment.as_entries[at].signed.as_ref().unwrap();
    let inner = HeaderAndBodyInternal::decode(signed.header_and_body.as_slice()).unwrap();
    ASEntrySignedBody::decode(inner.body.as_slice()).unwrap()
}

fn info(body: ASEntrySignedBody) -> StaticInfoExtension {
    body.extensions.unwrap().static_info.unwrap()
}

/// The answer to a request by Connect, over HTTP/1.
async fn by_connect(at: SocketAddr, request: &SegmentsRequest) -> SegmentsResponse {
    let (mut stream, body) = (
        TcpStream::connect(at).await.unwrap(),
        request.encode_to_vec(),
    );
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nConnect-Protocol-Version: 1\r\n\
         Content-Type: application/proto\r\nContent-Length: {}\r\n\r\n",
        SEGMENTS.path(),
        body.len()
    );
    let request = [head.as_bytes(), &body].concat();
    stream.write_all(&request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    SegmentsResponse::decode(&answer[end.unwrap() + 4..]).unwrap()
}

#[tokio::test]
async fn segments_are_looked_up_by_grpc_and_connect() {
    let lab = Lab::two_isds();
    let running = run(&lab, "1-ff00:0:114").await;
    let grpc = client(running.control);
    let request = SegmentsRequest {
        src_isd_as: ia("1-ff00:0:114").to_u64(),
        dst_isd_as: ia("2-ff00:0:212").to_u64(),
    };
    let found = grpc.call(SEGMENTS, &request).await.unwrap();
    let same = by_connect(running.control, &request).await;
    assert_eq!(found, same);
    let counts: Vec<_> = found
        .segments
        .iter()
        .map(|(&kind, s)| (kind, s.segments.len()))
        .collect();
    assert_eq!(counts, [(1, 3), (2, 1), (3, 6)]);

    // 210#5 211#1, 211#2 212#1, with peering entries at 211 and 212.
    let down = &found.segments[&2].segments[0];
    let bodies = [0, 1, 2].map(|at| body(down, at));
    assert_eq!(bodies[0].isd_as, ia("2-ff00:0:210").to_u64());
    assert_eq!(bodies[0].next_isd_as, ia("2-ff00:0:211").to_u64());
    assert_eq!(bodies[2].next_isd_as, 0);
    assert_eq!(bodies[1].hop_entry.as_ref().unwrap().ingress_mtu, 1472);
    let peer = &bodies[1].peer_entries[0];
    assert_eq!(peer.peer_isd_as, ia("1-ff00:0:112").to_u64());
    let ingress = peer.hop_field.as_ref().unwrap().ingress;
    assert_eq!((peer.peer_interface, ingress), (9, 9));
    let own = info(bodies[1].clone());
    assert_eq!(own.latency.unwrap().inter[&9], 3000);
    let bandwidth = own.bandwidth.unwrap().inter;
    assert_eq!(bandwidth[&9], 2000);
    assert!(!bandwidth.contains_key(&2), "it has no limit");
    assert_eq!(own.internal_hops[&1], 0);
    // From one router of the AS to the other.
    let core = found.segments[&3].segments.iter().map(|s| body(s, 1));
    assert!(
        core.into_iter()
            .all(|b| b.isd_as == ia("1-ff00:0:120").to_u64())
    );
    let up = found.segments[&1].segments.iter().map(|s| body(s, 0));
    let egress = |b: &ASEntrySignedBody| b.hop_entry.clone()?.hop_field.map(|hop| hop.egress);
    let first = info(
        up.into_iter()
            .find(|b| egress(b) == Some(5) && b.isd_as == ia("1-ff00:0:110").to_u64())
            .unwrap(),
    );
    assert_eq!(first.note, "one");
    let hops = (first.internal_hops[&1], first.internal_hops[&6]);
    assert_eq!(hops, (0, 1));

    let wrong = SegmentsRequest {
        src_isd_as: ia("1-ff00:0:113").to_u64(),
        dst_isd_as: ia("2-ff00:0:212").to_u64(),
    };
    let error = grpc.call(SEGMENTS, &wrong).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
}

#[tokio::test]
async fn links_go_down_and_up_at_run_time() {
    let lab = Lab::ready("fig7a");
    let running = run(&lab, "1-ff00:0:4").await;
    assert_eq!(running.paths("1-ff00:0:1").await.unwrap().len(), 3);
    let shape = Shape {
        rate: Some(5_000_000),
        ..Shape::default()
    };
    // The link A - B, identified by its end in B.
    let set = |up| Request::SetLink {
        a: (ia("1-ff00:0:2"), 1),
        up,
        shape,
    };
    assert_eq!(running.live(set(false)).await.unwrap(), Reply::Done);
    let left = running.paths("1-ff00:0:1").await.unwrap();
    assert_eq!(
        left.iter().map(short).collect::<Vec<_>>(),
        ["4#3 7#2 7#1 6#2 6#1 5#2 5#1 1#2"]
    );
    let Reply::Status(status) = running.live(Request::Status).await.unwrap() else {
        panic!("no status");
    };
    assert_eq!(status.isd_as, ia("1-ff00:0:4"));
    assert_eq!(status.control, [running.control]);
    assert_eq!(status.down, [(ia("1-ff00:0:1"), 1)]);
    assert_eq!(running.live(set(true)).await.unwrap(), Reply::Done);
    let again = running.paths("1-ff00:0:1").await.unwrap();
    assert_eq!(again.len(), 3);
    assert_eq!(again[0].bandwidth, [100_000, 0, 5000]);

    let unknown = Request::SetLink {
        a: (ia("1-ff00:0:2"), 77),
        up: false,
        shape,
    };
    let Reply::Error { message } = running.live(unknown).await.unwrap() else {
        panic!("an unknown link was accepted");
    };
    assert!(message.contains("1-ff00:0:2#77"), "{message}");
}

#[tokio::test]
async fn files_are_read_again_on_request() {
    let lab = Lab::ready("fig4");
    let running = run(&lab, "1-ff00:0:110").await;
    let count = async || running.paths("1-ff00:0:111").await.unwrap().len();
    assert_eq!(count().await, 2);
    let file = lab.folder.path().join("network.json");
    let mut network = lab.network.clone();
    network.links.pop();
    network.write_json(&file).unwrap();
    assert_eq!(count().await, 2);
    assert_eq!(running.live(Request::Reload).await.unwrap(), Reply::Done);
    assert_eq!(count().await, 1);
    std::fs::write(&file, "{").unwrap();
    let Reply::Error { message } = running.live(Request::Reload).await.unwrap() else {
        panic!("a damaged network was taken over");
    };
    assert!(message.contains("network.json"), "{message}");
    assert_eq!(count().await, 1);
}

#[tokio::test]
async fn reading_the_network_holds_up_no_other_task() {
    let lab = Lab::ready("fig4");
    let file = lab.folder.path().join("network.json");
    let network = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    let running = run(&lab, "1-ff00:0:110").await;
    // The network is readable only once this task has run on while a request reads it.
    let (went_on, waiting) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        let in_time = waiting.recv_timeout(Duration::from_secs(10)).is_ok();
        std::fs::write(&file, network).unwrap();
        in_time
    });
    let other = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        went_on.send(()).unwrap();
    };
    let (paths, ()) = tokio::join!(running.paths("1-ff00:0:111"), other);
    assert!(!paths.unwrap().is_empty());
    assert!(writer.join().unwrap());
}

/// All replies of the live socket to `bytes`.
async fn replies(socket: &std::path::Path, bytes: &[u8]) -> Vec<Reply> {
    let (read, mut write) = UnixStream::connect(socket).await.unwrap().into_split();
    // The service closes the connection after a line that is too long.
    let _ = write.write_all(bytes).await;
    drop(write);
    let mut lines = BufReader::new(read).lines();
    let mut replies = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        replies.push(serde_json::from_str(&line).unwrap());
    }
    replies
}

#[tokio::test]
async fn a_line_too_long_is_refused_once() {
    let lab = Lab::ready("fig4");
    let running = run(&lab, "1-ff00:0:110").await;
    let mut bytes = vec![b' '; rpc::MAX_LINE];
    bytes.extend(b"\"Status\"\n\"Status\"\n");
    let refused = replies(&running.socket, &bytes).await;
    assert!(
        matches!(refused[..], [] | [Reply::Error { .. }]),
        "{refused:?}"
    );
    let status = replies(&running.socket, &bytes[1000..]).await;
    assert_eq!(status.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn garbage_on_the_live_socket_does_not_stop_the_service(
        lines in prop::collection::vec("[ -~\\PC]{0,40}|\\{\"SetLink\":[0-9a-z{}:\"]{0,9}", 0..5),
        noise in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let lab = Lab::ready("fig4");
            let running = run(&lab, "1-ff00:0:110").await;
            let mut bytes = lines.join("\n").into_bytes();
            bytes.push(b'\n');
            bytes.extend(noise);
            bytes.extend(b"\n\"Status\"\n");
            let count = bytes.iter().filter(|&&b| b == b'\n').count();
            let replies = replies(&running.socket, &bytes).await;
            assert_eq!(replies.len(), count);
            assert!(matches!(replies.last(), Some(Reply::Status(_))));
        });
    }
}

#[tokio::test]
async fn a_request_to_stop_stops_the_service_and_removes_the_socket() {
    let lab = Lab::ready("fig4");
    let mut running = run(&lab, "1-ff00:0:110").await;
    assert_eq!(running.live(Request::Stop).await.unwrap(), Reply::Done);
    assert!((&mut running.task).await.unwrap().is_ok());
    assert!(!running.socket.exists());
    let error = running.live(Request::Status).await.unwrap_err();
    assert!(matches!(error, RpcError::Connect { .. }), "{error}");
}

#[tokio::test]
async fn the_shutdown_future_stops_the_service() {
    let lab = Lab::ready("fig4");
    let control = lab.control("1-ff00:0:110").await.unwrap();
    control.run(std::future::ready(())).await.unwrap();
    assert!(!lab.dir(ia("1-ff00:0:110")).control_socket().exists());
}

#[tokio::test]
async fn one_service_runs_per_as_and_replaces_a_killed_ones_socket() {
    let lab = Lab::ready("fig4");
    let socket = lab.dir(ia("1-ff00:0:110")).control_socket();
    // The socket that a killed service leaves behind.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let running = run(&lab, "1-ff00:0:110").await;
    assert!(running.live(Request::Status).await.is_ok());
    let second = lab.control("1-ff00:0:110").await.err().unwrap();
    assert!(matches!(second, ControlError::Runs(_)), "{second}");
    // Two services cannot share an address.
    let dir = lab.dir(ia("1-ff00:0:111"));
    let taken = Control::bind_at(&dir, None, running.control, Vec::new()).await;
    let taken = taken.err().unwrap();
    assert!(
        taken.to_string().contains(&running.control.to_string()),
        "{taken}"
    );
}

#[tokio::test]
async fn a_restarted_service_reads_the_states_of_links() {
    let lab = Lab::ready("fig4");
    let shape = Shape {
        rate: Some(8_000_000),
        ..Shape::default()
    };
    let state = |up| LinkState { up, shape };
    // Link 1 is down at one end; both ends have another rate for link 2.
    for (isd_as, up) in [("1-ff00:0:110", false), ("1-ff00:0:111", true)] {
        let links = [(1, state(up)), (2, state(true))].into();
        lab.dir(ia(isd_as)).write_links(&links).unwrap();
    }
    let running = run(&lab, "1-ff00:0:110").await;
    let paths = running.paths("1-ff00:0:111").await.unwrap();
    assert_eq!(paths.iter().map(short).collect::<Vec<_>>(), ["110#2 111#2"]);
    assert_eq!(paths[0].bandwidth, [8000]);

    std::fs::write(lab.dir(ia("1-ff00:0:111")).path().join("links.json"), "{").unwrap();
    let error = load(&lab.dir(ia("1-ff00:0:110"))).err().unwrap();
    assert!(error.to_string().contains("links.json"), "{error}");
}

/// Reads the control plane of an AS.
fn load(dir: &AsDir) -> Result<Plane, ControlError> {
    source::load(dir, LIFETIME)
}

#[tokio::test]
async fn inconsistent_files_are_refused() {
    let lab = Lab::ready("fig4");
    let dir = lab.dir(ia("1-ff00:0:110"));
    for (seconds, fine) in [(1, false), (86_401, false), (10, true)] {
        let lifetime = Some(Duration::from_secs(seconds));
        let any = "127.0.0.1:0".parse().unwrap();
        let control = Control::bind_at(&dir, lifetime, any, Vec::new()).await;
        match control.err() {
            None => assert!(fine, "{seconds}"),
            Some(ControlError::Lifetime(_)) => assert!(!fine, "{seconds}"),
            Some(error) => panic!("{error}"),
        }
    }
    let nowhere = AsDir::new("1-ff00_0_110");
    assert!(matches!(load(&nowhere).err(), Some(ControlError::NoLab(_))));
    std::fs::remove_dir_all(lab.dir(ia("1-ff00:0:111")).path()).unwrap();
    let error = load(&dir).err().unwrap().to_string();
    assert!(error.contains("master0.key"), "{error}");
    let file = lab.folder.path().join("network.json");
    let other = hawser_topology::Network::ready("fig9").unwrap();
    other.write_json(&file).unwrap();
    assert!(matches!(
        load(&dir).err(),
        Some(ControlError::NotInNetwork(_))
    ));
    std::fs::remove_file(file).unwrap();
    let error = load(&dir).err().unwrap().to_string();
    assert!(error.contains("network.json"), "{error}");
}
