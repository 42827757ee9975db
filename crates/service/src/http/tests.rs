//! The API on loopback, request by request.

mod certificates;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use hawser_fuzz::{Answered, Description};
use hawser_http::{Listener, Tls};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::answer::TEXT_PATHS;
use super::*;
use crate::config::Config;
use crate::event::ServiceEvent;
use crate::service::tests::{Bed, Ends, TOKEN, Told, until};

/// What a plug-in for gfal2 reads of an answer.
const PLUGIN_READS: usize = 99;

/// The description of what a server of the transfers alone answers.
static TEXT: LazyLock<String> =
    LazyLock::new(|| hawser_http::described(describe::Shared::openapi(), [description()]));

/// Serves the transfers alone at any port of the loopback interface. Returns the address.
async fn serve(service: Service, tls: Option<Tls>, may_be_anonymous: bool) -> SocketAddr {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), tls).await;
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    let parts = vec![part(service, may_be_anonymous)];
    tokio::spawn(listener.serve(hawser_http::api(describe::Shared::openapi(), parts)));
    address
}

/// A server on loopback.
struct Api {
    address: SocketAddr,
    service: Service,
    happened: tokio::sync::mpsc::UnboundedReceiver<ServiceEvent>,
    carrier: Arc<Told>,
    bed: Bed,
}

impl Api {
    async fn start(ends: Ends, anonymous: Option<&str>) -> Self {
        let mut bed = Bed::new();
        bed.config.http.anonymous = anonymous.map(Into::into);
        let carrier = Told::new(ends);
        let (service, happened) = bed.service(Arc::clone(&carrier) as _);
        let address = serve(service.clone(), None, anonymous.is_some()).await;
        Self {
            address,
            service,
            happened,
            carrier,
            bed,
        }
    }

    fn run(&self) {
        let service = self.service.clone();
        tokio::spawn(async move { service.run(std::future::pending::<()>()).await });
    }

    /// The status and body of the answer to a request with these lines of head, and a body.
    async fn ask(&self, first: &str, head: &str, body: &str) -> (u16, String) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        exchange(stream, first, head, body).await
    }

    /// The same, as alice.
    async fn alice(&self, first: &str, body: &str) -> (u16, String) {
        self.ask(first, &format!("Authorization: Bearer {TOKEN}\r\n"), body)
            .await
    }

    /// The answer to `GET` of a path of Hercules' monitor.
    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self.alice(&format!("GET {path}"), "").await;
        assert!(answer.1.len() <= PLUGIN_READS, "{answer:?}");
        answer
    }

    async fn json(&self, first: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.alice(first, body).await;
        (status, serde_json::from_str(&body).unwrap())
    }
}

/// The answer of a service.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    first: &str,
    head: &str,
    body: &str,
) -> (u16, String) {
    let (status, kind, body) = exchange_any(stream, first, head, body).await;
    // The description of the API says that the request is answered so.
    let (method, path) = first.split_once(' ').unwrap();
    let described = Description::read(&TEXT).check(&Answered {
        method,
        path,
        status,
        content_type: kind.as_deref(),
        body: body.as_bytes(),
    });
    described.unwrap_or_else(|error| panic!("{first}: {error}: {body}"));
    (status, body)
}

/// The status, kind and body of an answer.
async fn exchange_any(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    first: &str,
    head: &str,
    body: &str,
) -> (u16, Option<String>, String) {
    let host = if head.contains("Host:") {
        ""
    } else {
        "Host: 127.0.0.1:8000\r\n"
    };
    let request = format!(
        "{first} HTTP/1.1\r\n{host}{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let asks = head.to_lowercase().contains("\r\nwww-authenticate: bearer");
    assert_eq!(asks, status == 401, "{first}: {head}");
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let kind = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let kind = kind.map(|(_, kind)| kind.to_owned());
    (status, kind, body.to_owned())
}

#[test]
fn the_description_is_whole() {
    let faults = Description::read(&TEXT).faults();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn each_path_has_the_described_methods_and_no_others() {
    let api = Api::start(Ends::Never, None).await;
    let description = Description::read(&TEXT);
    let operations = description.operations();
    let paths: BTreeSet<_> = operations.iter().map(|(path, _)| *path).collect();
    assert!(TEXT_PATHS.iter().all(|path| paths.contains(path)));
    for path in paths {
        for method in ["get", "post", "put", "patch", "delete"] {
            let is_described = operations.contains(&(path, method)) || TEXT_PATHS.contains(&path);
            let method = method.to_uppercase();
            let path = path.replace("{id}", "1");
            let ask = async |path: &str| {
                let first = format!("{method} {path}");
                let (status, body) = api.ask(&first, "", "").await;
                (status, format!("{first}: {body}"))
            };
            let expected: &[u16] = if is_described { &[200, 401] } else { &[405] };
            let (status, text) = ask(&path).await;
            assert!(expected.contains(&status), "{status}: {text}");
            // The JSON API is below its prefix alone.
            if let Some(without) = path.strip_prefix(PREFIX) {
                let (status, text) = ask(without).await;
                assert_eq!(status, 404, "{text}");
            }
        }
    }
}

fn ok(text: &str) -> (u16, String) {
    (200, text.to_owned())
}

fn bad(text: &str) -> (u16, String) {
    (400, text.to_owned())
}

#[tokio::test]
async fn all_errors_of_the_json_api_are_json_that_names_the_field() {
    let api = Api::start(Ends::Never, None).await;
    let error = async |first: &str, body: &str| {
        let (status, value) = api.json(first, body).await;
        (status, value["error"].as_str().unwrap().to_owned())
    };
    for (first, status) in [
        ("PUT /api/v1/transfers", 405),
        ("POST /api/v1/transfers/1", 405),
        ("DELETE /metrics", 405),
        ("GET /api/v1/transfers/%ff", 400),
        ("GET /api/v1/transfers/none", 404),
        ("GET /api/v1/nothing", 404),
    ] {
        assert_eq!(error(first, "").await.0, status, "{first}");
    }
    let method = api.alice("PUT /api/v1/transfers", "").await;
    assert!(method.1.contains("does not have this method"), "{method:?}");
    let server = "\"server\":\"1-ff00:0:111,10.0.2.1:31000\"";
    for (body, words) in [
        ("{".to_owned(), "it is not JSON"),
        (
            "[]".to_owned(),
            "an object with fields is expected, not a list",
        ),
        (format!("{{{server}}}"), "`source` is missing"),
        (
            format!("{{{server},\"source\":5}}"),
            "`source`: a text is expected, not 5",
        ),
        (
            format!("{{{server},\"source\":\"a\",\"to\":\"b\"}}"),
            "`to` is not known: write one of",
        ),
        (
            "{\"source\":\"a\",\"server\":\"b\"}".to_owned(),
            "`server`: \"b\": ",
        ),
        (
            format!("{{{server},\"source\":\"a\",\"priority\":1000}}"),
            "`priority`: a whole number from -128 to 127 is expected, not 1000",
        ),
        (
            format!("{{{server},\"source\":\"a\",\"destination\":\"/b\"}}"),
            "destination: \"/b\" is absolute: write it relative to the server's folder",
        ),
    ] {
        let (status, text) = error("POST /api/v1/transfers", &body).await;
        assert_eq!(status, 400, "{body}: {text}");
        assert!(text.contains(words), "{body}: {text}");
        assert!(!text.contains("struct"), "{body}: {text}");
    }
    for list in ["[\"a\",\"1-ff00:0:111,10.0.2.1:31000\"]", "[]"] {
        let (status, text) = error("POST /api/v1/transfers", list).await;
        assert_eq!(status, 400, "{list}: {text}");
        assert!(text.contains("not a list"), "{list}: {text}");
    }
    let large = "x".repeat(70_000);
    assert_eq!(error("POST /api/v1/transfers", &large).await.0, 413);
    // What a web page asks, too.
    let page = api
        .ask("GET /api/v1/transfers", "Origin: http://a\r\n", "")
        .await;
    assert_eq!(
        page,
        (
            403,
            "{\"error\":\"Requests from web pages are refused\"}\n".to_owned()
        )
    );
}

/// Changes the configuration of a service.
async fn configure(api: &Api, change: impl FnOnce(&mut Config)) {
    let mut config = api.bed.config.clone();
    change(&mut config);
    api.service.configure(config).await;
}

#[tokio::test]
async fn a_token_that_is_revoked_is_refused_from_then_on() {
    let api = Api::start(Ends::Never, Some("bob")).await;
    // A connection that was opened with the token.
    let mut stream = TcpStream::connect(api.address).await.unwrap();
    let ask = async |stream: &mut TcpStream| {
        let request = format!(
            "GET /stat?file=a HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8(answer.to_vec()).unwrap()
    };
    assert_eq!(ask(&mut stream).await, "HTTP/1.1 200");
    // The rest of the answer.
    let mut rest = Vec::new();
    while !rest.ends_with(b"OK 1 10\n") {
        rest.push(stream.read_u8().await.unwrap());
    }
    configure(&api, |config| {
        config.users.get_mut("alice").unwrap().token_sha256 = Some(hawser_http::TokenHash([7; 32]));
    })
    .await;
    assert_eq!(ask(&mut stream).await, "HTTP/1.1 401");
    assert_eq!(api.alice("GET /api/v1/transfers", "").await.0, 401);
    // And who needed none.
    assert_eq!(api.ask("GET /api/v1/transfers", "", "").await.0, 200);
    configure(&api, |config| config.http.anonymous = None).await;
    assert_eq!(api.ask("GET /api/v1/transfers", "", "").await.0, 401);
}

const DEST: &str = "dest=1-ff00:0:111,[10.0.2.1]:31000";

#[tokio::test]
async fn the_monitors_questions_get_its_answers() {
    let (done, ends) = watch::channel(false);
    let mut api = Api::start(Ends::When(ends), None).await;
    assert_eq!(
        api.get("/server").await,
        ok("OK 1-ff00:0:111,10.0.2.1:31000")
    );
    assert_eq!(api.get("/stat?file=a").await, ok("OK 1 10\n"));
    assert_eq!(api.get("/stat?file=b").await, ok("OK 1 5\n"));
    assert_eq!(api.get("/stat?file=absent").await, ok("OK 0 0\n"));
    assert_eq!(api.get("/stat").await, bad("missing parameter\n"));
    let socket = api.bed.folder.path().join("data/socket");
    let _socket = std::os::unix::net::UnixListener::bind(socket).unwrap();
    let special = bad("File is not a regular file or directory\n");
    assert_eq!(api.get("/stat?file=socket").await, special);

    // As the plug-in writes it, and as `hcp` does.
    let first = format!("/submit?file=a&{DEST}&destfile=x/y");
    assert_eq!(api.get(&first).await, ok("OK 1\n"));
    let absolute = api.bed.folder.path().join("data/b");
    let absolute = absolute.to_str().unwrap().replace('/', "%2F");
    let second = format!("/submit?file={absolute}&{DEST}&destfile=%2Fz&payloadlen=1400");
    assert_eq!(api.get(&second).await, ok("OK 2\n"));
    for missing in ["file=a&destfile=x", &format!("{DEST}&file=a"), ""] {
        let answer = api.get(&format!("/submit?{missing}")).await;
        assert_eq!(answer, bad("Missing parameter\n"));
    }
    for wrong in [
        "file=a&destfile=x&dest=10.0.2.1:31000".to_owned(),
        format!("file=a&destfile=x&{DEST}&payloadlen=many"),
        format!("file=a&destfile=x&{DEST}&priority=1000"),
    ] {
        let answer = api.get(&format!("/submit?{wrong}")).await;
        assert_eq!(answer, bad("parse err\n"));
    }
    let denied = (
        401,
        "Source file does not exist or insufficient permissions\n".to_owned(),
    );
    for source in ["absent", "../in/received", "/etc/passwd"] {
        let path = format!("/submit?file={source}&{DEST}&destfile=x");
        assert_eq!(api.get(&path).await, denied);
    }
    let outside = format!("/submit?file=a&{DEST}&destfile=../x");
    assert_eq!(api.get(&outside).await.0, 400);
    assert_eq!(api.get("/status?id=1").await, ok("OK 0 0 0 0 0\n"));
    assert_eq!(api.get("/status").await, bad("missing parameter\n"));
    assert_eq!(api.get("/status?id=x").await, bad(""));
    assert_eq!(api.get("/status?id=77").await, bad(""));

    api.run();
    until(&mut api.happened, "running").await;
    // The carrier reports at once, the service notes it when it runs next.
    let running = loop {
        let (_, line) = api.get("/status?id=1").await;
        if !line.starts_with("OK 1 1 ") {
            break line;
        }
    };
    let fields: Vec<&str> = running.split_whitespace().collect();
    assert_eq!((&fields[..4], fields[5]), (&["OK", "1", "5", "0"][..], "4"));
    assert_eq!(api.get("/cancel?id=2").await, ok("OK\n"));
    assert_eq!(api.get("/status?id=2").await, ok("OK 3 7 7 0 0\n"));
    assert_eq!(api.get("/cancel?id=2").await, ok("OK\n"));
    assert_eq!(api.get("/cancel").await, bad("missing parameter\n"));
    assert_eq!(api.get("/cancel?id=77").await, bad(""));
    done.send(true).unwrap();
    until(&mut api.happened, "done").await;
    let (_, line) = api.get("/status?id=1").await;
    let fields: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        (&fields[..4], fields[5]),
        (&["OK", "3", "7", "1"][..], "10")
    );
    assert_eq!(api.carrier.begun.load(Ordering::Relaxed), 1);

    let of_bob = api.ask("GET /status?id=1", "Authorization: Bearer bob\r\n", "");
    assert_eq!(of_bob.await, (401, String::new()));
    let of_bob = api.ask("GET /cancel?id=1", "Authorization: Bearer bob\r\n", "");
    assert_eq!(of_bob.await, (401, String::new()));
}

#[tokio::test]
async fn transfers_are_submitted_listed_changed_and_cancelled_as_json() {
    let api = Api::start(Ends::Never, None).await;
    let body = r#"{"source": "a", "server": "1-ff00:0:111,10.0.2.1:31000", "destination": "x/"}"#;
    let (status, job) = api.json("POST /api/v1/transfers", body).await;
    assert_eq!(status, 201, "{job}");
    assert_eq!(job["id"], 1);
    assert_eq!(job["state"], "queued");
    assert_eq!(job["destination"], "x/a");
    let (status, error) = api
        .json("PATCH /api/v1/transfers/1", r#"{"priority": 1}"#)
        .await;
    assert_eq!(
        (status, &error["error"]),
        (
            403,
            &"priority 1 is above 0, the highest that is allowed".into()
        )
    );
    let (status, job) = api
        .json("PATCH /api/v1/transfers/1", r#"{"priority": -2}"#)
        .await;
    assert_eq!((status, &job["priority"]), (200, &(-2).into()));
    let (_, list) = api.json("GET /api/v1/transfers", "").await;
    assert_eq!(list["transfers"].as_array().unwrap().len(), 1);
    assert_eq!(list["transfers"][0], job);
    for (request, body, expected) in [
        ("GET /api/v1/transfers/2", "", 404),
        ("GET /api/v1/transfers/x", "", 404),
        ("GET /api/v1/transfers/-1", "", 404),
        ("GET /api/v1/nothing", "", 404),
        ("POST /api/v1/transfers", "", 400),
        ("POST /api/v1/transfers", r#"{"source": "a"}"#, 400),
        (
            "POST /api/v1/transfers",
            r#"{"source": "a", "server": "there"}"#,
            400,
        ),
        (
            "POST /api/v1/transfers",
            &body.replace("source", "sauce"),
            400,
        ),
        (
            "POST /api/v1/transfers",
            &body.replace("\"a\"", "\"absent\""),
            400,
        ),
        (
            "POST /api/v1/transfers",
            &body.replace("\"a\"", "\"/etc/passwd\""),
            403,
        ),
        ("POST /api/v1/transfers", &body.replace("x/", "../x"), 400),
    ] {
        let (status, error) = api.json(request, body).await;
        assert_eq!(status, expected, "{request} {body}: {error}");
        assert!(error["error"].is_string(), "{error}");
    }
    let huge = format!("{body}{}", " ".repeat(70_000));
    assert_eq!(api.json("POST /api/v1/transfers", &huge).await.0, 413);
    let bob = "Authorization: Bearer bob\r\n";
    assert_eq!(api.ask("GET /api/v1/transfers/1", bob, "").await.0, 404);
    assert_eq!(api.ask("DELETE /api/v1/transfers/1", bob, "").await.0, 404);
    let (_, list) = api.ask("GET /api/v1/transfers", bob, "").await;
    assert_eq!(list, "{\"transfers\":[]}\n");
    let (status, job) = api.json("DELETE /api/v1/transfers/1", "").await;
    assert_eq!((status, &job["state"]), (200, &"cancelled".into()));
    assert_eq!(api.json("DELETE /api/v1/transfers/1", "").await.0, 409);
    for _ in 0..3 {
        assert_eq!(api.json("POST /api/v1/transfers", body).await.0, 201);
    }
    let (status, error) = api.json("POST /api/v1/transfers", body).await;
    assert_eq!(status, 429, "{error}");
    let (status, metrics) = api.ask("GET /metrics", "", "").await;
    assert_eq!(status, 200);
    for line in [
        "hawser_service_jobs{state=\"queued\"} 3",
        "hawser_service_jobs_submitted_total 4",
        "hawser_service_jobs_cancelled_total 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
    }
}

#[tokio::test]
async fn strangers_and_web_pages_are_refused() {
    let api = Api::start(Ends::Never, None).await;
    for head in [
        "",
        "Authorization: Bearer wrong\r\n",
        "Authorization: Basic YTpi\r\n",
        "Authorization: Bearer \r\n",
    ] {
        let (status, body) = api.ask("GET /stat?file=a", head, "").await;
        assert_eq!(status, 401, "{body}");
        assert!(body.ends_with('\n') && body.len() <= PLUGIN_READS);
        let (status, body) = api.ask("GET /api/v1/transfers", head, "").await;
        assert!(status == 401 && body.starts_with("{\"error\":"), "{body}");
    }
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for header in ["Origin: https://example.org", "Sec-Fetch-Site: cross-site"] {
        let head = format!("{token}{header}\r\n");
        assert_eq!(api.ask("GET /stat?file=a", &head, "").await.0, 403);
    }
    let head = format!("{token}Sec-Fetch-Site: none\r\nHost: transfer.example.org\r\n");
    assert_eq!(api.ask("GET /stat?file=a", &head, "").await.0, 200);

    let api = Api::start(Ends::Never, Some("alice")).await;
    for host in [
        "127.0.0.1:8000",
        "localhost",
        "localhost:1",
        "[::1]:8000",
        "[::1]",
    ] {
        let head = format!("Host: {host}\r\n");
        assert_eq!(
            api.ask("GET /stat?file=a", &head, "").await,
            ok("OK 1 10\n")
        );
    }
    for host in [
        "rebound.example.org",
        "rebound.example.org:8000",
        "",
        "localhost.example.org",
    ] {
        let head = format!("Host: {host}\r\n");
        assert_eq!(
            api.ask("GET /stat?file=a", &head, "").await.0,
            403,
            "{host}"
        );
    }
    let wrong = api.ask("GET /stat?file=a", "Authorization: Bearer wrong\r\n", "");
    assert_eq!(wrong.await.0, 401);
}

#[tokio::test]
async fn wrong_tokens_wait_and_valid_ones_do_not() {
    let api = Api::start(Ends::Never, None).await;
    let wrong = async || {
        let head = "Authorization: Bearer wrong\r\n";
        api.ask("GET /api/v1/transfers", head, "").await.0
    };
    for _ in 0..10 {
        assert_eq!(wrong().await, 401);
    }
    assert_eq!(wrong().await, 429);
    // Others behind the same address have done nothing wrong.
    assert_eq!(api.alice("GET /api/v1/transfers", "").await.0, 200);
}
