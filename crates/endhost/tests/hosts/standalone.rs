//! A host without a daemon, with a control service that behaves well or badly.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hawser_endhost::{Bootstrap, Endhost, IsdAsn, PathsError, SourceError};
use hawser_proto::Message;
use hawser_proto::control_plane as pb;
use hawser_proto::crypto::{HeaderAndBodyInternal, SignedMessage};
use hawser_rpc::{Code, Router, RpcError};
use tokio::task::JoinHandle;

use crate::toy::{isd_as, own_ip, serve, unix_now};

const HERE: &str = "1-ff00:0:110";
const THERE: &str = "1-ff00:0:111";
const ROUTER: &str = "127.0.0.1:30042";

/// How the control service answers.
#[derive(Clone)]
enum Conduct {
    /// Answers with the segment over the link, which expires this many seconds from now.
    Answers(u64),
    /// Answers with an invalid segment.
    Invalid,
    Refuses,
    /// Never answers.
    Hangs,
}

struct ToyControl {
    address: SocketAddr,
    conduct: Arc<Mutex<Conduct>>,
    asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// The answer of a control service that behaves like this.
async fn answer(
    conduct: Conduct,
    request: pb::SegmentsRequest,
) -> Result<pb::SegmentsResponse, RpcError> {
    let ends = (request.src_isd_as, request.dst_isd_as);
    let segments = match conduct {
        _ if ends != (isd_as(HERE).to_u64(), isd_as(THERE).to_u64()) => Vec::new(),
        Conduct::Answers(life) => vec![segment(life)],
        Conduct::Invalid => vec![pb::PathSegment {
            segment_info: b"no segment".to_vec(),
            ..Default::default()
        }],
        Conduct::Refuses => return Err(RpcError::new(Code::PermissionDenied, "not for you")),
        Conduct::Hangs => std::future::pending().await,
    };
    let segments = pb::Segments { segments };
    Ok(pb::SegmentsResponse {
        segments: [(pb::SegmentType::Core.into(), segments)].into(),
    })
}

/// The core segment over the link from 111#2 to 110#1, which expires `life` seconds from now.
fn segment(life: u64) -> pb::PathSegment {
    // Hop fields are valid for at least 337 s (SCION header specification, "Hop Field").
    let info = pb::SegmentInformation {
        timestamp: (unix_now() + life - 337) as i64,
        segment_id: 7,
    };
    let entry = |isd_as: IsdAsn, next: IsdAsn, ingress: u64, egress: u64| {
        let body = pb::ASEntrySignedBody {
            isd_as: isd_as.to_u64(),
            next_isd_as: next.to_u64(),
            mtu: 1472,
            hop_entry: Some(pb::HopEntry {
                hop_field: Some(pb::HopField {
                    ingress,
                    egress,
                    exp_time: 0,
                    mac: b"secret".to_vec(),
                }),
                ingress_mtu: 1400,
            }),
            ..Default::default()
        };
        let signed = HeaderAndBodyInternal {
            header: Vec::new(),
            body: body.encode_to_vec(),
        };
        pb::ASEntry {
            signed: Some(SignedMessage {
                header_and_body: signed.encode_to_vec(),
                signature: Vec::new(),
            }),
            ..Default::default()
        }
    };
    let (here, there) = (isd_as(HERE), isd_as(THERE));
    pb::PathSegment {
        segment_info: info.encode_to_vec(),
        as_entries: vec![
            entry(there, here, 0, 2),
            entry(here, IsdAsn::WILDCARD, 1, 0),
        ],
    }
}

impl ToyControl {
    async fn start(conduct: Conduct) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), conduct).await
    }

    async fn start_at(address: SocketAddr, conduct: Conduct) -> Self {
        let conduct = Arc::new(Mutex::new(conduct));
        let asked = Arc::new(AtomicUsize::new(0));
        let (its, counter) = (Arc::clone(&conduct), Arc::clone(&asked));
        let router = Router::new().with_method(pb::SEGMENTS, move |request| {
            counter.fetch_add(1, Ordering::SeqCst);
            answer(its.lock().unwrap().clone(), request)
        });
        let (address, task) = serve(address, router).await;
        Self {
            address,
            conduct,
            asked,
            task,
        }
    }

    fn set(&self, conduct: Conduct) {
        *self.conduct.lock().unwrap() = conduct;
    }
}

impl Drop for ToyControl {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A folder with a topology.json.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, services: &[SocketAddr]) -> Self {
        let name = format!("hawser-standalone-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        let services: Vec<String> = services
            .iter()
            .enumerate()
            .map(|(at, address)| format!(r#""cs{at}": {{"addr": "{address}"}}"#))
            .collect();
        let topology = format!(
            r#"{{"isd_as": "{HERE}", "mtu": 1472, "attributes": ["core"],
                "control_service": {{{}}},
                "border_routers": {{"br": {{"internal_addr": "{ROUTER}", "interfaces": {{"1": {{
                    "underlay": {{"local": "127.0.0.1:50000", "remote": "127.0.0.2:50000"}},
                    "isd_as": "{THERE}", "link_to": "core", "mtu": 1400}}}}}}}}}}"#,
            services.join(",")
        );
        std::fs::write(path.join("topology.json"), topology).unwrap();
        Self(path)
    }

    async fn host(&self) -> Endhost {
        let wanted = Bootstrap {
            config_dir: Some(self.0.clone()),
            ..Bootstrap::default()
        };
        Endhost::bootstrap(&wanted).await.unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn paths_are_made_of_segments() {
    let control = ToyControl::start(Conduct::Answers(300)).await;
    let folder = Folder::new("made", &[control.address]);
    let host = folder.host().await;
    assert_eq!(host.local_as(), isd_as(HERE));
    let paths = host.paths(isd_as(THERE)).await.unwrap();
    assert_eq!(paths.len(), 1);
    assert_eq!(paths[0].info().to_string(), format!("{HERE} 1>2 {THERE}"));
    assert_eq!(paths[0].next_hop(), Some(ROUTER.parse().unwrap()));
    assert_eq!(paths[0].mtu(), 1400);
    // Answers are cached, unless new ones are requested.
    let asked = control.asked.load(Ordering::SeqCst);
    host.paths(isd_as(THERE)).await.unwrap();
    assert_eq!(control.asked.load(Ordering::SeqCst), asked);
    host.refresh_paths(isd_as(THERE)).await.unwrap();
    assert_eq!(control.asked.load(Ordering::SeqCst), 2 * asked);
}

#[tokio::test]
async fn errors_name_the_control_service() {
    // A port of an address that no other test uses.
    let listener = TcpListener::bind((own_ip(71), 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let folder = Folder::new("wrong", &[address]);
    let host = folder.host().await;
    let error = host.paths(isd_as(THERE)).await.unwrap_err();
    let expected = format!(
        "cannot reach the control service at {address}: start it, or correct `control_service` \
         in topology.json"
    );
    assert_eq!(error.to_string(), expected);
    // The service starts, and sends invalid answers.
    let control = ToyControl::start_at(address, Conduct::Invalid).await;
    let error = host.paths(isd_as(THERE)).await.unwrap_err();
    let invalid = matches!(error, PathsError::Source(SourceError::Invalid { .. }));
    assert!(invalid, "{error}");
    control.set(Conduct::Answers(300));
    assert_eq!(host.paths(isd_as(THERE)).await.unwrap().len(), 1);
    let error = host.paths(isd_as("1-ff00:0:999")).await.unwrap_err();
    let expected = format!(
        "no path to 1-ff00:0:999: the control service at {address} knows none (does the AS exist, \
         are its links up?)"
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn known_paths_outlive_a_control_service_that_fails() {
    // An address that no other test uses: another service is to get its port.
    let control = ToyControl::start_at((own_ip(72), 0).into(), Conduct::Answers(300)).await;
    let folder = Folder::new("fails", &[control.address]);
    let host = folder.host().await;
    let there = isd_as(THERE);
    let known = host.paths(there).await.unwrap();
    for conduct in [Conduct::Invalid, Conduct::Refuses] {
        control.set(conduct);
        assert_eq!(host.refresh_paths(there).await.unwrap(), known);
    }
    let address = control.address;
    drop(control);
    assert_eq!(host.refresh_paths(there).await.unwrap(), known);
    // A service that replaces it is queried.
    let control = ToyControl::start_at(address, Conduct::Answers(600)).await;
    let newer = host.refresh_paths(there).await.unwrap();
    assert!(newer[0].expiry() > known[0].expiry());
    drop(control);
}

#[tokio::test]
async fn another_control_service_answers_in_place_of_a_slow_one() {
    let slow = ToyControl::start(Conduct::Hangs).await;
    let good = ToyControl::start(Conduct::Answers(300)).await;
    let folder = Folder::new("slow", &[slow.address, good.address]);
    let host = folder.host().await;
    assert_eq!(host.paths(isd_as(THERE)).await.unwrap().len(), 1);
    // Afterwards the faster service is queried first.
    let asked = slow.asked.load(Ordering::SeqCst);
    host.refresh_paths(isd_as(THERE)).await.unwrap();
    assert_eq!(slow.asked.load(Ordering::SeqCst), asked);
}

#[tokio::test]
async fn paths_that_live_for_seconds_are_replaced_before_they_expire() {
    let control = ToyControl::start(Conduct::Answers(6)).await;
    let folder = Folder::new("short", &[control.address]);
    let host = folder.host().await;
    let mut watch = host.watch(isd_as(THERE));
    let mut last = watch.wait_for(|paths| !paths.is_empty()).await.unwrap()[0].clone();
    for _ in 0..2 {
        watch.changed().await.unwrap();
        let paths = watch.borrow_and_update().clone();
        assert_eq!(paths.len(), 1, "never without a path");
        assert_eq!(paths[0].fingerprint(), last.fingerprint());
        assert!(paths[0].expiry() > last.expiry());
        last = paths[0].clone();
    }
}
