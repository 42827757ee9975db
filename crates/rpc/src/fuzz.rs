//! Random bytes for everything that reads requests and answers.

use hawser_fuzz::fuzz;
use hawser_proto::Message;
use hawser_proto::daemon::{AS, ASRequest, ASResponse};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request};
use tokio::runtime::Builder;

use crate::client::{check, outcome};
use crate::{Code, Router, RpcError, frame};

/// A service that answers and refuses.
fn router() -> Router {
    Router::new().with_method(AS, async |request: ASRequest| match request.isd_as {
        0 => Err(RpcError::new(Code::NotFound, "there is none")),
        isd_as => Ok(ASResponse {
            isd_as,
            ..ASResponse::default()
        }),
    })
}

fn message() -> Vec<u8> {
    ASRequest { isd_as: 0x1_ff00 }.encode_to_vec()
}

#[test]
fn any_body_of_a_request_is_answered_or_refused() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let router = router();
    let framed = frame::frame(&message()).to_vec();
    for (content_type, valid) in [
        ("application/grpc", [framed.clone(), framed]),
        ("application/proto", [message(), Vec::new()]),
    ] {
        fuzz(&valid, |body| {
            let request = Request::post(AS.path())
                .header(CONTENT_TYPE, content_type)
                .body(Full::new(Bytes::copy_from_slice(body)))
                .unwrap();
            runtime.block_on(async {
                let response = router.respond(request).await;
                let (head, body) = response.into_parts();
                let body = body.collect().await.unwrap();
                let trailers = body.trailers().cloned();
                let body = body.to_bytes();
                if content_type == "application/grpc" {
                    check(head.status.as_u16(), &head.headers).unwrap();
                    // It is an answer or an error, never neither.
                    if let Err(error) = outcome(&head.headers, trailers.as_ref(), &body) {
                        assert!(head.headers.contains_key("grpc-status"), "{error}");
                    }
                } else if head.status.is_success() {
                    ASResponse::decode(body).unwrap();
                } else {
                    let error: serde_json::Value = serde_json::from_slice(&body).unwrap();
                    assert!(error["code"].is_string() && error["message"].is_string());
                }
            });
        });
    }
}

/// Headers from lines `NAME: VALUE`; others are left out.
fn headers(lines: &[u8]) -> HeaderMap {
    let lines = lines.split(|&byte| byte == b'\n');
    let read = lines.filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        Some((name, value))
    });
    read.collect()
}

#[test]
fn any_head_of_a_request_is_answered_or_refused() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let router = router();
    let body = frame::frame(&message());
    let valid = [
        "content-type: application/grpc+proto\ngrpc-timeout: 10S\ngrpc-encoding: identity",
        "content-type: application/proto; a=b\nconnect-timeout-ms: 99\nconnect-protocol-version: 1",
        "content-type: application/grpc\ngrpc-encoding: gzip\nte: trailers",
    ];
    fuzz(&valid.map(|text| text.as_bytes().to_vec()), |lines| {
        let mut request = Request::post(AS.path())
            .body(Full::new(body.clone()))
            .unwrap();
        *request.headers_mut() = headers(lines);
        let response = runtime.block_on(router.respond(request));
        let status = response.status().as_u16();
        assert!([200, 400, 415, 501, 504].contains(&status), "{status}");
    });
}

#[test]
fn any_answer_is_read_or_refused() {
    let framed = String::from_utf8(frame::frame(b"answer").to_vec()).unwrap();
    let valid = [
        format!("content-type: application/grpc\n\n{framed}\n\ngrpc-status: 0"),
        "content-type: application/grpc\ngrpc-status: 5\ngrpc-message: no%20AS\n\n\n\n".to_owned(),
        format!("a: b\n\n{framed}\n\ngrpc-status: 14\ngrpc-message: later"),
    ];
    fuzz(&valid.map(String::into_bytes), |input| {
        let end = |from: usize| {
            let rest = &input[from..];
            rest.windows(2)
                .position(|two| two == b"\n\n")
                .map_or(input.len(), |at| from + at)
        };
        let first = end(0);
        let second = end((first + 2).min(input.len()));
        let body = input.get(first + 2..second).unwrap_or_default();
        let trailers = headers(input.get(second + 2..).unwrap_or_default());
        let (head, body) = (headers(&input[..first]), Bytes::copy_from_slice(body));
        let trailers = Some(&trailers).filter(|trailers| !trailers.is_empty());
        let _ = check(200, &head);
        if let Ok(message) = outcome(&head, trailers, &body) {
            assert_eq!(frame::frame(&message).len(), body.len());
        }
    });
}
