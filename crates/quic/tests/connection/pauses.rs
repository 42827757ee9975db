//! Pauses of this process while connections are set up.

use std::sync::mpsc;
use std::thread;

use super::*;

/// Far longer than a handshake may take.
const PAUSE: Duration = Duration::from_secs(60);

/// By how much the clock advances at once, and the largest number of such steps.
const STEP: Duration = Duration::from_millis(50);
const MAX_STEPS: u32 = 3000;

/// Has virtual time stand still, though nothing else runs, until it is dropped.
fn stop_clock() -> mpsc::Sender<()> {
    let (end, ended) = mpsc::channel();
    tokio::task::spawn_blocking(move || ended.recv());
    end
}

/// Lets everything run for a moment of real time.
async fn run() {
    let moment = || thread::sleep(Duration::from_millis(100));
    tokio::task::spawn_blocking(moment).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_this_process_does_not_count_as_silence_of_the_peer() {
    let _stopped = stop_clock();
    let net = ToyNet::start().await;
    let (a, b) = (net.a.endhost().await, net.b.endhost().await);
    let client = Endpoint::bind(a.clone(), listen(1), Config::default()).unwrap();
    let server = Endpoint::bind(b, listen(2), Config::default()).unwrap();
    let path = a.paths(net.b_as).await.unwrap().remove(0);
    net.conduct.silent.store(true, Ordering::SeqCst);
    let (connecting, peer) = (client.clone(), server.local_addr());
    let connecting = tokio::spawn(async move { connecting.connect(peer, path).await });
    run().await;
    // What the peer sends meanwhile is read after it.
    tokio::time::advance(PAUSE).await;
    run().await;
    net.conduct.silent.store(false, Ordering::SeqCst);
    let connected = async { tokio::join!(connecting, server.accept()) };
    tokio::pin!(connected);
    // What was sent before the pause may be lost, or have been sent only after it: the clock advances in small
    // steps, so that it is sent again.
    let mut steps = 0;
    let (there, here) = loop {
        tokio::select! {
            biased;
            ends = &mut connected => break ends,
            () = run() => tokio::time::advance(STEP).await,
        }
        steps += 1;
        assert!(steps < MAX_STEPS, "not connected in {:?}", STEP * steps);
    };
    there.unwrap().unwrap();
    assert!(here.is_some());
}
