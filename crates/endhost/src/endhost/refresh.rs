//! The task that keeps paths fresh.

use std::sync::{Arc, Weak};

use sciparse::identifier::isd_asn::IsdAsn;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::Inner;
use crate::source::Age;

/// Asks for paths whenever they are due, as long as the endhost exists. Questions do not wait for
/// each other: one that is not answered holds up no other.
pub(super) async fn keep_fresh(inner: Weak<Inner>, replan: Arc<Notify>) {
    let mut asking = JoinSet::new();
    loop {
        let Some(inner) = inner.upgrade() else {
            return;
        };
        let (due, next) = inner.lock().plan();
        for (dst, age) in due {
            asking.spawn(ask(Arc::clone(&inner), dst, age));
        }
        drop(inner);
        let look_again = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = look_again => {}
            () = replan.notified() => {}
            Some(_) = asking.join_next() => {}
        }
    }
}

async fn ask(inner: Arc<Inner>, dst: IsdAsn, age: Age) {
    if let Err(error) = inner.ask(dst, age).await {
        tracing::debug!(%dst, %error, "paths not refreshed");
    }
    inner.lock().done(dst);
}
