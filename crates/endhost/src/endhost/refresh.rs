//! The task that keeps paths fresh.

use std::sync::{Arc, Weak};

use sciparse::identifier::isd_asn::IsdAsn;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::inner::Inner;
use crate::freshness::Freshness;
use crate::sync::lock;

/// Asks for paths whenever they are due, as long as the endhost exists. Questions run side by side:
/// one without an answer delays no other.
pub(super) async fn keep_fresh(inner: Weak<Inner>, replan: Arc<Notify>) {
    let mut asking = JoinSet::new();
    loop {
        let Some(inner) = inner.upgrade() else {
            return;
        };
        let (due, next) = lock(&inner.cache).plan();
        for (dst, freshness) in due {
            asking.spawn(ask(Arc::clone(&inner), dst, freshness));
        }
        drop(inner);
        let plan_again = async {
            match next {
                Some(next) => tokio::time::sleep_until(next.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = plan_again => {}
            () = replan.notified() => {}
            Some(_) = asking.join_next() => {}
        }
    }
}

async fn ask(inner: Arc<Inner>, dst: IsdAsn, freshness: Freshness) {
    if let Err(error) = inner.ask(dst, freshness).await {
        tracing::debug!(%dst, %error, "paths not refreshed");
    }
    lock(&inner.cache).done(dst);
}
