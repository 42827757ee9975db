//! The shared state of the services of a control plane, and the registration of methods that use
//! it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use connectrpc::{
    ConnectError, Encodable, JsonDeserialize, JsonSerialize, Response, Router, handler_fn,
};
use hawser_topology::{AsDir, IsdAsn, Shape};
use scion_protobuf::buffa::Message;

use crate::error::LookupError;
use crate::plane::Plane;
use crate::{publication, source};

/// The shared state, which is read from the AS's folder on first use.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<State>>);

struct State {
    dir: AsDir,
    source: Source,
    /// Changes of links since the service started, which the files may not contain yet.
    changes: BTreeMap<(IsdAsn, u16), (bool, Shape)>,
    /// `None` until the first use, then the control plane or the reason why it cannot be read.
    plane: Option<Result<Plane, String>>,
}

/// Where the segments come from.
enum Source {
    /// From the keys of all ASes of a lab; they expire after this time.
    Lab(Duration),
    /// From a file, which is replaced from time to time, read when it was this one.
    Published {
        file: PathBuf,
        read: Option<Version>,
    },
}

/// What tells a file from those that replace it: device, inode, size and the time of its last
/// change in nanoseconds.
type Version = (u64, u64, u64, i128);

fn version(file: &Path) -> Option<Version> {
    let meta = file.metadata().ok()?;
    let changed = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    Some((meta.dev(), meta.ino(), meta.size(), changed))
}

impl Shared {
    /// The state of the AS whose folder is `dir`, with segments that expire after `lifetime`.
    pub fn new(dir: AsDir, lifetime: Duration) -> Self {
        Self::of(dir, Source::Lab(lifetime))
    }

    /// The state of the AS whose folder is `dir`, with the segments in `file`.
    pub fn published(dir: AsDir, file: PathBuf) -> Self {
        Self::of(dir, Source::Published { file, read: None })
    }

    fn of(dir: AsDir, source: Source) -> Self {
        Self(Arc::new(Mutex::new(State {
            dir,
            source,
            changes: BTreeMap::new(),
            plane: None,
        })))
    }

    /// Calls `answer` with the control plane, which this reads on the first call, and again when
    /// the file of its segments has been replaced.
    ///
    /// # Errors
    /// When the network cannot be read, or `answer` fails.
    pub fn with<T, E: From<LookupError>>(
        &self,
        answer: impl FnOnce(&mut Plane) -> Result<T, E>,
    ) -> Result<T, E> {
        // A panic in one answer can only leave an incomplete cache, which is harmless.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let mut generation = 0;
        if let Source::Published { file, read } = &mut state.source {
            let found = version(file);
            if found != *read || found.is_none() {
                let before = state.plane.take();
                generation = before.map_or(0, |plane| plane.map_or(0, |p| p.generation + 1));
                *read = found;
            }
        }
        let plane = state.plane.get_or_insert_with(|| {
            let read = match &state.source {
                Source::Lab(lifetime) => source::load(&state.dir, *lifetime),
                Source::Published { file, .. } => publication::load(&state.dir, file, now()),
            };
            let mut plane = read.map_err(|error| {
                tracing::error!("the network cannot be read: {error}");
                error.to_string()
            })?;
            for (a, (up, shape)) in std::mem::take(&mut state.changes) {
                plane.set_link_at(a, up, shape);
            }
            plane.generation = generation;
            Ok(plane)
        });
        match plane {
            Ok(plane) => answer(plane),
            Err(reason) => Err(LookupError::NoNetwork(reason.clone()).into()),
        }
    }

    /// Sets the state and the shape of a link. Returns `false` if the network has no such
    /// interface. Does not read the network; until it has been read, returns `true` for any
    /// interface.
    pub fn set_link(&self, a: (IsdAsn, u16), up: bool, shape: Shape) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(plane)) = &mut state.plane {
            return plane.set_link_at(a, up, shape);
        }
        state.changes.insert(a, (up, shape));
        true
    }
}

/// A gRPC service, for adding its methods to a router.
pub(crate) struct Service<'a> {
    pub router: Router,
    name: &'static str,
    shared: &'a Shared,
}

impl<'a> Service<'a> {
    /// A service without methods.
    pub fn new(router: Router, name: &'static str, shared: &'a Shared) -> Self {
        Self {
            router,
            name,
            shared,
        }
    }

    /// Adds a method whose responses `answer` returns.
    pub fn method<Q, A, B>(
        mut self,
        name: &str,
        answer: fn(&mut Plane, Q) -> Result<B, ConnectError>,
    ) -> Self
    where
        Q: Message + JsonDeserialize + Send + 'static,
        A: Message + JsonSerialize + Send + 'static,
        B: Encodable<A> + Send + 'static,
    {
        let shared = self.shared.clone();
        let handler = handler_fn(move |_, request| {
            let answer = shared.with(|plane| answer(plane, request));
            async move { Response::ok(answer?) }
        });
        self.router = self.router.route(self.name, name, handler);
        self
    }
}

/// The current time, in Unix seconds.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Lab, ia};

    fn later(lab: &Lab, isd_as: &str) -> Shared {
        Shared::new(lab.dir(ia(isd_as)), Duration::from_secs(60))
    }

    #[test]
    fn changes_before_the_first_request_are_in_its_answer() {
        let lab = Lab::ready("fig4");
        let (a, b) = (ia("1-ff00:0:110"), ia("1-ff00:0:111"));
        let shared = later(&lab, "1-ff00:0:110");
        let shape = Shape {
            delay: Duration::from_millis(7),
            ..Shape::default()
        };
        assert!(shared.set_link((a, 1), false, shape));
        // The network does not have this interface.
        assert!(shared.set_link((a, 9), false, shape));
        let down = || {
            shared.with(|plane| {
                let down: Vec<_> = plane.beacons.graph.down().map(|link| link.a.id).collect();
                assert!(plane.paths(a, b, 0).is_ok());
                Ok::<_, LookupError>(down)
            })
        };
        assert_eq!(down(), Ok(vec![1]));
        assert!(shared.set_link((b, 1), true, shape));
        assert!(!shared.set_link((a, 9), true, shape));
        assert_eq!(down(), Ok(vec![]));
    }

    #[test]
    fn a_network_that_cannot_be_read_is_an_error_of_each_request() {
        let lab = Lab::ready("fig4");
        let shared = later(&lab, "1-ff00:0:110");
        std::fs::write(lab.folder.path().join("network.json"), "{").unwrap();
        for _ in 0..2 {
            let answer = shared.with(|_| Ok::<_, LookupError>(()));
            let error = answer.unwrap_err().to_string();
            assert!(error.contains("network.json"), "{error}");
        }
    }
}
