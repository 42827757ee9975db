//! The description of the API is whole, and has the methods of its paths.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Method, Request};
use hawser_coordinator::Coordinator;
use hawser_fuzz::Description;
use tower::ServiceExt;

use super::*;
use crate::app::AppOptions;

#[test]
fn the_description_is_whole() {
    let faults = Description::read(crate::description()).faults();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn each_path_has_the_described_methods_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::open(folder.path()).unwrap();
    let router = router(App::new(coordinator, AppOptions::default()));
    let description = Description::read(crate::description());
    let operations = description.operations();
    let paths: BTreeSet<_> = operations.iter().map(|(path, _)| *path).collect();
    for path in paths {
        for method in ["get", "post", "put", "patch", "delete"] {
            let of = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let request = Request::builder().method(of).uri(path);
            let request = request.body(Body::empty()).unwrap();
            let status = router.clone().oneshot(request).await.unwrap().status();
            let is_answered = status != StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(
                is_answered,
                operations.contains(&(path, method)),
                "{method} {path}: {status}"
            );
        }
    }
}
