//! Configurations, services, limits and coordinators for tests.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_bundle::{Bundle, Coordinator, LimitedLink, LinkInfo, Manifest, Role};
use hawser_limit::{EnforceError, Enforcer, FailedLinks, LinkCounters, LinkUsage, NamedLink};
use hawser_topology::{AsTopology, BorderRouter, IsdAsn};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub(crate) const TOKEN: &str = "right";

/// A version of the configuration of a user AS; what the services read differs by `key`.
pub(crate) fn bundle(version: u64, key: &str) -> Bundle {
    let isd_as: IsdAsn = "1-ff00:0:111".parse().unwrap();
    let mut bundle = Bundle::default();
    let router = BorderRouter {
        internal_addr: "127.0.0.1:30042".parse().unwrap(),
        interfaces: [].into(),
    };
    bundle.set_topology(&AsTopology {
        isd_as,
        mtu: 1472,
        core: false,
        dispatched_ports: (31000, 32767),
        control_service: [].into(),
        discovery_service: [].into(),
        border_routers: [("br1".to_owned(), router)].into(),
    });
    bundle.set_manifest(&Manifest::new(isd_as, Role::User, version));
    bundle.insert("keys/master0.key", key).unwrap();
    bundle
}

/// The same with a coordinator.
pub(crate) fn followed(version: u64, key: &str, at: SocketAddr, token: &str) -> Bundle {
    let mut bundle = bundle(version, key);
    let mut manifest = bundle.manifest().unwrap();
    manifest.coordinator = Some(Coordinator {
        url: format!("http://{at}"),
        host: "h1".to_owned(),
        token: token.to_owned(),
        ca: None,
    });
    bundle.set_manifest(&manifest);
    bundle
}

/// The same with a limit of a link.
pub(crate) fn limited(mut bundle: Bundle, rate: u64) -> Bundle {
    let ip = "192.0.2.1".parse().unwrap();
    let link = LimitedLink::new(7, ip, Some(50000), Some(rate), None).unwrap();
    bundle.set_link_info(&LinkInfo([("5".to_owned(), link)].into()));
    bundle
}

/// A program whose services are the test `name` of this test program.
pub(crate) fn program(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join("program");
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\nFAKE_SERVICE=\"$1\" FAKE_DIR=\"$3\" exec {} --exact {name} --nocapture\n",
        exe.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Records the limits that are set, and fails while a test wants that.
#[derive(Default)]
pub(crate) struct FakeLimits {
    pub applied: Mutex<Vec<Vec<NamedLink<String>>>>,
    pub fails: AtomicBool,
    /// The links that fail the next time.
    pub failed: Mutex<FailedLinks<String>>,
    pub resets: Mutex<u32>,
}

impl Enforcer<String> for FakeLimits {
    fn enforce(&self, links: &[NamedLink<String>]) -> Result<FailedLinks<String>, EnforceError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(EnforceError::new("no permission"));
        }
        self.applied.lock().unwrap().push(links.to_vec());
        Ok(std::mem::take(&mut *self.failed.lock().unwrap()))
    }

    fn usage(&self) -> Result<Vec<LinkUsage<String>>, EnforceError> {
        let egress = Some(LinkCounters {
            bytes: 1000,
            packets: 1,
            drops: 0,
            backlog: 0,
        });
        let link = "5".to_owned();
        Ok(vec![LinkUsage {
            link,
            egress,
            ingress: None,
        }])
    }

    fn reset(&self) -> Result<(), EnforceError> {
        *self.resets.lock().unwrap() += 1;
        Ok(())
    }
}

/// What a coordinator has, and has heard.
#[derive(Default)]
pub(crate) struct Known {
    /// The archive, and its tag; `None` for none.
    pub archive: Option<(Vec<u8>, String)>,
    pub segments: Vec<u8>,
    pub deployed: Vec<u64>,
    pub failed: Vec<String>,
    pub usage: Vec<serde_json::Value>,
    pub mtus: Vec<serde_json::Value>,
}

/// A coordinator of the host `h1`.
#[derive(Clone)]
pub(crate) struct FakeCoordinator {
    pub known: Arc<Mutex<Known>>,
    /// Told of each change of the archive.
    changed: watch::Sender<u64>,
    /// Told when all connections are to be closed.
    cut: watch::Sender<()>,
    /// Told of each answer.
    pub answered: watch::Sender<u64>,
}

impl FakeCoordinator {
    pub fn new() -> Self {
        Self {
            known: Arc::default(),
            changed: watch::Sender::new(0),
            cut: watch::Sender::new(()),
            answered: watch::Sender::new(0),
        }
    }

    pub fn set(&self, bundle: &Bundle) {
        self.set_archive(Some((bundle.pack(), bundle.tag())));
    }

    pub fn set_archive(&self, archive: Option<(Vec<u8>, String)>) {
        self.known.lock().unwrap().archive = archive;
        self.changed.send_modify(|n| *n += 1);
    }

    /// Closes all connections, as a coordinator that is restarted does.
    pub fn cut(&self) {
        self.cut.send_replace(());
    }

    /// Serves until the runtime ends.
    pub fn serve(&self, listener: TcpListener) {
        let this = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let this = this.clone();
                let mut cut = this.cut.subscribe();
                tokio::spawn(async move {
                    let service = service_fn(|request| {
                        let this = this.clone();
                        async move {
                            let answer = this.answer(request).await;
                            this.answered.send_modify(|n| *n += 1);
                            Ok::<_, Infallible>(answer)
                        }
                    });
                    let http = hyper::server::conn::http1::Builder::new();
                    let serving = http.serve_connection(TokioIo::new(stream), service);
                    tokio::select! {
                        _ = serving => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let header = |name: &str| parts.headers.get(name).and_then(|v| v.to_str().ok());
        if header("authorization") != Some(&format!("Bearer {TOKEN}")) {
            return answer(
                StatusCode::UNAUTHORIZED,
                None,
                br#"{"error": "the token is wrong"}"#,
            );
        }
        let body = body.collect().await.unwrap().to_bytes();
        let known = || self.known.lock().unwrap();
        match (parts.method, parts.uri.path()) {
            (Method::GET, "/api/host/h1/config") => {
                let mut changed = self.changed.subscribe();
                loop {
                    let archive = known().archive.clone();
                    match archive {
                        Some((_, tag)) if header("if-none-match") == Some(tag.as_str()) => {}
                        Some((bytes, tag)) => return answer(StatusCode::OK, Some(&tag), &bytes),
                        None => return answer(StatusCode::NO_CONTENT, None, b""),
                    }
                    let wait = tokio::time::timeout(Duration::from_secs(5), changed.changed());
                    if wait.await.is_err() {
                        return answer(StatusCode::NOT_MODIFIED, None, b"");
                    }
                }
            }
            (Method::GET, "/api/host/h1/segments") => match known().segments.clone() {
                empty if empty.is_empty() => {
                    answer(StatusCode::INTERNAL_SERVER_ERROR, None, b"not yet")
                }
                _ if header("if-none-match") == Some("\"s\"") => {
                    answer(StatusCode::NOT_MODIFIED, None, b"")
                }
                bytes => answer(StatusCode::OK, Some("\"s\""), &bytes),
            },
            (Method::POST, "/api/host/h1/deployed_config_version") => {
                let report: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let version = report["version"].as_u64().unwrap();
                match report["error"].as_str() {
                    None => known().deployed.push(version),
                    Some(error) => known().failed.push(error.to_owned()),
                }
                answer(StatusCode::OK, None, b"")
            }
            (Method::POST, "/api/host/h1/usage") => {
                known().usage.push(serde_json::from_slice(&body).unwrap());
                answer(StatusCode::OK, None, b"")
            }
            (Method::POST, "/api/host/h1/mtus") => {
                known().mtus.push(serde_json::from_slice(&body).unwrap());
                answer(StatusCode::OK, None, b"")
            }
            other => panic!("{other:?}"),
        }
    }
}

fn answer(status: StatusCode, tag: Option<&str>, body: &[u8]) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(body)));
    *response.status_mut() = status;
    if let Some(tag) = tag {
        let tag = tag.parse().unwrap();
        response.headers_mut().insert("etag", tag);
    }
    response
}
