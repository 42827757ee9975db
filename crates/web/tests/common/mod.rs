//! A server on loopback, with a model of a kernel.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hawser_coordinator::{
    Access, Actor, Configurations, Coordinator, FailedLinks, LinkCounters, LinkId, LinkUsage, Role,
    User, enforce_locally,
};
use hawser_fuzz::{Answered, Description};
use hawser_http::{Listener, Token};
use hawser_limit::{EnforceError, Enforcer, NamedLink};
use hawser_topology::IsdAsn;
use hawser_web::{App, AppOptions, router, sample};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longest wait for anything, also on a machine that is very busy.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// A kernel that does what it is told, on whose links some traffic flows.
#[derive(Default)]
pub struct Kernel {
    pub in_force: watch::Sender<Vec<NamedLink<LinkId>>>,
    carried: Mutex<BTreeMap<LinkId, (u64, f64)>>,
}

impl Kernel {
    /// Waits until the limit of a link to the user AS is in force.
    pub async fn until(&self, link: u64, egress: Option<u64>) {
        let is_it = |links: &Vec<NamedLink<LinkId>>| {
            let mut links = links.iter();
            let rate = |one: &NamedLink<LinkId>| one.limits.egress.map(|limit| limit.rate);
            links.any(|one| one.name == LinkId(link) && rate(one) == egress)
        };
        let mut in_force = self.in_force.subscribe();
        let waited = timeout(PATIENCE, in_force.wait_for(is_it)).await;
        if waited.is_err() {
            panic!("never {egress:?} at {link}: {:?}", *self.in_force.borrow());
        }
    }
}

impl Enforcer<LinkId> for Kernel {
    fn enforce(&self, links: &[NamedLink<LinkId>]) -> Result<FailedLinks, EnforceError> {
        self.in_force.send_replace(links.to_vec());
        Ok(FailedLinks::new())
    }

    fn usage(&self) -> Result<Vec<LinkUsage>, EnforceError> {
        let mut carried = self.carried.lock().unwrap();
        let links = self.in_force.borrow();
        let usage = links.iter().map(|one| {
            let (bytes, phase) = carried.entry(one.name).or_insert((0, one.name.0 as f64));
            *phase += 0.09;
            let limit = one.limits.egress.map_or(20_000_000, |limit| limit.rate) as f64;
            // Some links run into their limit, others do not.
            let share = (0.75 + 0.45 * phase.sin() + 0.1 * (7.3 * *phase).sin()).clamp(0.02, 1.0);
            *bytes += (limit * share / 8.0) as u64;
            let counters = |bytes: u64| LinkCounters {
                bytes,
                packets: bytes / 1400,
                drops: bytes / 300_000,
                backlog: if share > 0.99 { 12_000 } else { 0 },
            };
            LinkUsage {
                link: one.name,
                egress: Some(counters(*bytes)),
                ingress: Some(counters(*bytes / 3)),
            }
        });
        Ok(usage.collect())
    }

    fn reset(&self) -> Result<(), EnforceError> {
        unreachable!("limits outlast the service")
    }
}

/// The answer to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The description of the API says that the request is answered so.
    fn assert_described(&self, first: &str) {
        let description = Description::read(hawser_web::description());
        let (method, path) = first.split_once(' ').unwrap();
        let answered = Answered {
            method,
            path,
            status: self.status,
            content_type: self.header("content-type"),
            body: self.body.as_bytes(),
        };
        let asks = self.header("www-authenticate") == Some("Bearer");
        assert_eq!(asks, self.status == 401, "{first}: {self:?}");
        let described = description.check(&answered);
        described.unwrap_or_else(|error| panic!("{first}: {error}: {self:?}"));
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// A server on loopback: an attachment point with two links, the first one alice's.
pub struct Server {
    pub address: SocketAddr,
    pub coordinator: Coordinator,
    pub kernel: Arc<Kernel>,
    pub folder: TempDir,
    tokens: BTreeMap<String, Token>,
    _tasks: JoinSet<()>,
}

pub const HERE: &str = "1-ff00:0:110";

impl Server {
    pub async fn start() -> Self {
        Self::with_connections(256).await
    }

    pub async fn with_connections(connections: usize) -> Self {
        Self::with(connections, AppOptions::default(), false).await
    }

    /// Behind a proxy that serves the page at this address.
    pub async fn behind(origin: &str) -> Self {
        let options = AppOptions {
            proxy: Some(origin.parse().unwrap()),
            ..AppOptions::default()
        };
        Self::with(256, options, false).await
    }

    /// That also makes the archives of ASes.
    pub async fn with_archives() -> Self {
        Self::with(256, AppOptions::default(), true).await
    }

    async fn with(connections: usize, options: AppOptions, has_archives: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let program = Actor::program();
        let add = |name: &str, role| coordinator.add_user(&program, name, role).unwrap();
        let mut tokens = BTreeMap::new();
        let mut user = |name: &str, role| -> User {
            let (user, token) = add(name, role);
            tokens.insert(name.to_owned(), token);
            user
        };
        user("root", Role::Admin);
        let alice = user("alice", Role::User);
        user("bob", Role::User);
        user("eve", Role::Reader);
        let here: IsdAsn = HERE.parse().unwrap();
        let new = json!({
            "isd_as": HERE, "label": "Zurich", "addresses": ["10.0.0.1"],
            "place": { "latitude": 47.38, "longitude": 8.54 },
        });
        let new = serde_json::from_value(new).unwrap();
        coordinator.add_attachment_point(&program, new).unwrap();
        for (index, (label, latitude, longitude)) in
            [("Data lab", 48.14, 11.58), ("Telescope", 45.46, 9.19)]
                .into_iter()
                .enumerate()
        {
            let isd_as = format!("1-ff00:0:11{}", index + 1);
            let owner = (index == 0).then_some(alice.id);
            let new = json!({
                "isd_as": isd_as, "label": label, "owner": owner,
                "addresses": [format!("10.0.0.{}", index + 2)],
                "place": { "latitude": latitude, "longitude": longitude },
            });
            let new = serde_json::from_value(new).unwrap();
            coordinator.add_user_as(&program, new).unwrap();
            let maximum = json!({ "egress": 10_000_000, "ingress": 10_000_000 });
            let link = json!({
                "attachment_point": HERE, "user_as": isd_as, "maximum": maximum,
                "limit": { "egress": 4_000_000, "ingress": 2_000_000 },
            });
            let link = serde_json::from_value(link).unwrap();
            coordinator.add_link(&program, link).unwrap();
        }
        let kernel = Arc::new(Kernel::default());
        let options = AppOptions {
            title: "Link limits".into(),
            ..options
        };
        let app = match has_archives {
            false => App::new(coordinator.clone(), options),
            true => {
                let access = Access {
                    url: "https://coordinator.example".to_owned(),
                    ca: None,
                };
                let made = Configurations::open(coordinator.clone(), folder.path(), access);
                App::with_configurations(made.unwrap(), options)
            }
        };
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None);
        let listener = listener.await.unwrap().with_connections(connections);
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(listener.serve(router(app.clone())));
        tasks.spawn(sample(app));
        tasks.spawn(enforce_locally(coordinator.clone(), here, kernel.clone()));
        Self {
            address,
            coordinator,
            kernel,
            folder,
            tokens,
            _tasks: tasks,
        }
    }

    pub fn token(&self, user: &str) -> &str {
        self.tokens[user].reveal()
    }

    /// The answer to a request with these lines of head.
    pub async fn ask(&self, first: &str, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "{first} HTTP/1.1\r\nHost: {}\r\n{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let answer = Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        };
        answer.assert_described(first);
        answer
    }

    /// The status of the answer to a request of a user, whatever its body is.
    pub async fn status_of(&self, user: &str, first: &str) -> u16 {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "{first} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.address,
            self.token(user)
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let head = String::from_utf8_lossy(&answer[..16]).into_owned();
        head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// The answer to a request of a user.
    pub async fn of(&self, user: &str, first: &str, body: &str) -> Answer {
        let head = format!("Authorization: Bearer {}\r\n", self.token(user));
        self.ask(first, &head, body).await
    }
}
