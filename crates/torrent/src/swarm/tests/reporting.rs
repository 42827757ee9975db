//! What is reported of peers, paths and pieces while a torrent is at work.

use super::*;

/// Both sides know through which interfaces the other's connection leads, and what the peer has and does.
async fn both_sides_know(by: SelectBy) {
    let stage = Stage::one_file(400_000, 16 << 10);
    let count = stage.metainfo.pieces.count();
    let net = Net::default();
    let path = net.path(1, mbit(20.0, 1));
    let seed = stage.seed(&net.host(1)).await;
    let (mut served, host) = (seed.progress(), net.host(0));
    let download = stage.download_with(&host, &[1], selected_by(by));
    let mut fetched = download.progress();
    let interfaces = &path.as_ref().interfaces;
    let back: Vec<_> = interfaces.iter().rev().copied().collect();

    let is_known = |progress: &Progress| {
        let mut peers = progress.uploads.peers.iter();
        peers.any(|peer| peer.state.pieces == count && peer.state.serves)
            && progress
                .paths
                .iter()
                .any(|path| !path.interfaces.is_empty())
    };
    let progress = fetched.wait_for(is_known).await.unwrap().clone();
    let peer = &progress.uploads.peers[0].state;
    assert!(
        peer.client
            .as_deref()
            .is_some_and(|it| it.starts_with("hawser")),
        "{peer:?}"
    );
    assert!(peer.is_interesting && !peer.is_interested, "{peer:?}");
    for path in progress
        .paths
        .iter()
        .filter(|path| !path.interfaces.is_empty())
    {
        // A path is reported from the end that knows it.
        assert!(
            path.interfaces == *interfaces || path.interfaces == back,
            "{path:?}"
        );
    }
    let wants = |progress: &crate::SeedProgress| {
        let mut peers = progress.peers.iter();
        peers.any(|peer| peer.state.is_interested && peer.state.is_served)
    };
    served.wait_for(wants).await.unwrap();

    let summary = tokio::time::timeout(PATIENCE, download.wait()).await;
    assert_eq!(summary.expect("it hangs").unwrap().fetched_bytes, 400_000);
    let progress = fetched.borrow();
    assert_eq!(progress.files.pieces.count(), count);
    assert!(progress.files.pieces.has_all(0..count));
    stage.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_and_hops_are_reported_where_the_downloader_chooses() {
    both_sides_know(SelectBy::Downloader).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_and_hops_are_reported_where_the_uploader_chooses() {
    both_sides_know(SelectBy::Uploader).await;
}
