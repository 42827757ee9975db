//! Messages that are answered one by one.

use super::*;

/// Exchanges until each side expects an answer, and those that are counted.
const FIRST: usize = 50;
const COUNTED: usize = 400;

#[tokio::test(flavor = "multi_thread")]
async fn answers_carry_the_acknowledgements_of_what_they_answer() {
    let daemon = ToyDaemon::alone(isd_as("1-ff00:0:110")).await;
    let host = daemon.endhost().await;
    let pair = connect(&host, &host, Config::default()).await;
    let (client, server) = &pair.connections;
    let sent = || client.stats().packets_sent + server.stats().packets_sent;
    let answer = async {
        let (mut send, mut receive) = server.accept_bi().await.unwrap();
        for _ in 0..FIRST + COUNTED {
            let byte = receive.read_u8().await.unwrap();
            send.write_u8(byte).await.unwrap();
            send.flush().await.unwrap();
        }
        // A stream that is dropped is reset.
        (send, receive)
    };
    let ask = async {
        let (mut send, mut receive) = client.open_bi().await.unwrap();
        let mut before = 0;
        for number in 0..FIRST + COUNTED {
            if number == FIRST {
                before = sent();
            }
            send.write_u8(number as u8).await.unwrap();
            send.flush().await.unwrap();
            assert_eq!(receive.read_u8().await.unwrap(), number as u8);
        }
        sent() - before
    };
    let (sent, _streams) = tokio::join!(ask, answer);
    println!("{sent} packets in {COUNTED} exchanges");
    // Two each, and some acknowledgements of their own where an answer takes long, as on a busy machine. With
    // one for every other packet they are three.
    assert!(sent >= 2 * COUNTED as u64, "{sent}");
    assert!(sent * 2 < 5 * COUNTED as u64, "{sent}");
}
