//! Transfers between two hosts of this process that are allowed by a code.

use hawser_endhost::ScionAddr;
use hawser_keys::{Code, ELEMENT, Exchange, Identity, Side, Trust};

use super::reach::{Bed, LARGE, SMALL, is_refused};
use crate::content::{ScanOptions, Source, scan};
use crate::control::Control;
use crate::protocol::{ErrorCode, Message};
use crate::{Node, ServerEvent};

/// A connection to the server over which nothing was said.
async fn connect(node: &Node, to: ScionAddr) -> Control {
    let path = node.host().paths(to.isd_as).await.unwrap().remove(0);
    let connection = node.quic().connect(to, path).await.unwrap();
    Control::open(connection).await.unwrap()
}

/// What a client shows of `code`.
fn element(code: &Code) -> [u8; ELEMENT] {
    Exchange::start(code, Side::Client).unwrap().1
}

/// Sends a message, and returns the text of the refusal, or `None` for another answer.
async fn refusal(control: &mut Control, message: Message) -> Option<String> {
    control.write(&message).await.unwrap();
    match control.read().await.unwrap() {
        Message::Refuse { text, .. } => Some(text),
        _ => None,
    }
}

#[tokio::test]
async fn one_try_is_spent_by_a_wrong_code_however_many_paths_are_dialed() {
    let bed = Bed::with_links(32, 4).await;
    let [code, wrong] = [(); 2].map(|()| Code::generate().unwrap());
    let mut server = bed.offer(&code).await;
    let node = bed.node().await;
    for left in ["2 more", "one more"] {
        let sending = bed.send(&node, server.address(), SMALL, Trust::Code(wrong.clone()));
        let result = sending.task.await.unwrap();
        assert!(is_refused(&result, left), "{result:?}");
    }
    let sending = bed.send(&node, server.address(), SMALL, Trust::Code(code));
    sending.task.await.unwrap().unwrap();
    server.ended().await.unwrap();
}

#[tokio::test]
async fn a_server_counts_once_what_is_shown_over_several_connections() {
    let bed = Bed::new(34).await;
    let [code, wrong] = [(); 2].map(|()| Code::generate().unwrap());
    let server = bed.offer(&code).await;
    let (node, to) = (bed.node().await, server.address());
    let [first, second, third, fourth] = [(); 4].map(|()| element(&wrong));
    let confirm = || Message::CodeConfirm([0; 32]);
    let mut control = connect(&node, to).await;
    assert_eq!(refusal(&mut control, Message::Code(first)).await, None);
    let said = refusal(&mut control, confirm()).await.unwrap();
    assert!(said.contains("2 more"), "{said}");
    for _ in 0..3 {
        let mut control = connect(&node, to).await;
        let said = refusal(&mut control, Message::Code(first)).await.unwrap();
        assert!(said.contains("2 more"), "{said}");
    }
    // Shown before another one, and not confirmed.
    let mut control = connect(&node, to).await;
    assert_eq!(refusal(&mut control, Message::Code(second)).await, None);
    assert_eq!(refusal(&mut control, Message::Code(third)).await, None);
    let said = refusal(&mut control, confirm()).await.unwrap();
    assert!(said.contains("one more"), "{said}");
    let mut control = connect(&node, to).await;
    assert_eq!(refusal(&mut control, Message::Code(second)).await, None);
    assert_eq!(refusal(&mut control, Message::Code(fourth)).await, None);
    assert!(refusal(&mut control, Message::Code(second)).await.is_some());
    let sending = bed.send(&node, to, SMALL, Trust::Code(code));
    sending.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_code_whose_answer_was_lost_is_asked_about_before_another_try() {
    let bed = Bed::with_links(36, 4).await;
    let [code, wrong] = [(); 2].map(|()| Code::generate().unwrap());
    let (server, node) = (bed.server().await, bed.node().await);
    let accept = async || {
        let connection = server.quic().accept().await.unwrap();
        let (control, message) = Control::accept(connection).await.unwrap();
        let Message::Code(element) = message.unwrap() else {
            panic!("it shows no code");
        };
        (control, element)
    };
    // Answers with an element, and returns what the client writes then.
    let answer = async |control: &mut Control| {
        let (_, ours) = Exchange::start(&code, Side::Server).unwrap();
        control.write(&Message::Code(ours)).await.unwrap();
        control.read().await.unwrap()
    };
    let sending = bed.send(&node, server.local_addr(), SMALL, Trust::Code(wrong));
    let (mut control, first) = accept().await;
    let Message::CodeConfirm(_) = answer(&mut control).await else {
        panic!("it is not confirmed");
    };
    control.connection().close(0, "lost");
    let (mut control, again) = accept().await;
    assert_eq!(again, first);
    // It was not counted: the client shows a new one, never this one twice.
    let Message::Code(second) = answer(&mut control).await else {
        panic!("no other exchange follows");
    };
    assert_ne!(second, first);
    let Message::CodeConfirm(_) = answer(&mut control).await else {
        panic!("it is not confirmed");
    };
    control.connection().close(0, "lost");
    let (control, again) = accept().await;
    assert_eq!(again, second);
    let counted = Message::refuse(ErrorCode::KEY, "it was counted");
    control.refuse(&counted).await;
    let result = sending.task.await.unwrap();
    assert!(is_refused(&result, "it was counted"), "{result:?}");
}

#[tokio::test]
async fn a_file_that_changed_is_sent_again_by_the_same_code() {
    let bed = Bed::new(38).await;
    let code = Code::generate().unwrap();
    let mut server = bed.offer(&code).await;
    let node = bed.node().await;
    let file = bed.file("file");
    std::fs::write(&file, "as it was listed").unwrap();
    let listed = scan(std::slice::from_ref(&file), ScanOptions::default()).unwrap();
    std::fs::write(&file, "as it is read, and of another length").unwrap();
    let sending = bed.send_content(
        &node,
        server.address(),
        Source::open(listed),
        Trust::Code(code.clone()),
    );
    let sent = sending.task.await.unwrap().unwrap();
    assert!(sent.failed.is_empty(), "{:?}", sent.failed);
    assert!(server.ended().await.unwrap().is_to_be_continued());
    assert!(!server.ended().await.unwrap().is_to_be_continued());
    // The transfer is complete now, and the code with it.
    let sending = bed.send(&node, server.address(), SMALL, Trust::Code(code));
    let result = sending.task.await.unwrap();
    assert!(is_refused(&result, "is complete"), "{result:?}");
}

#[tokio::test]
async fn after_wrong_codes_the_right_one_still_works() {
    let bed = Bed::new(16).await;
    let [code, wrong] = [(); 2].map(|()| Code::generate().unwrap());
    let mut server = bed.offer(&code).await;
    let node = bed.node().await;
    for left in [2, 1] {
        let trust = Trust::Code(wrong.clone());
        let sending = bed.send(&node, server.address(), SMALL, trust);
        let result = sending.task.await.unwrap();
        let said = match left {
            1 => "one more can be tried".to_owned(),
            left => format!("{left} more can be tried"),
        };
        assert!(is_refused(&result, &said), "{result:?}");
    }
    let sending = bed.send(&node, server.address(), SMALL, Trust::Code(code));
    sending.task.await.unwrap().unwrap();
    server.ended().await.unwrap();
}

#[tokio::test]
async fn too_many_wrong_codes_end_the_offer_and_that_is_reported() {
    let bed = Bed::new(18).await;
    let [code, wrong] = [(); 2].map(|()| Code::generate().unwrap());
    let mut server = bed.offer(&code).await;
    let node = bed.node().await;
    for _ in 0..3 {
        let trust = Trust::Code(wrong.clone());
        let sending = bed.send(&node, server.address(), SMALL, trust);
        let result = sending.task.await.unwrap();
        assert!(is_refused(&result, "the code is wrong"), "{result:?}");
    }
    let ended = |event| matches!(event, ServerEvent::OfferEnded).then_some(());
    server.event(ended).await;
    let sending = bed.send(&node, server.address(), SMALL, Trust::Code(code));
    let result = sending.task.await.unwrap();
    assert!(
        is_refused(&result, "too many codes were wrong"),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_sender_that_was_killed_continues_by_the_same_code_and_others_cannot() {
    let bed = Bed::new(20).await;
    let code = Code::generate().unwrap();
    let mut server = bed.offer(&code).await;
    let node = bed.node().await;
    let trust = || Trust::Code(code.clone());
    let mut sending = bed.send(&node, server.address(), LARGE, trust());
    sending.delivers().await;
    sending.task.abort();
    node.close().await;
    drop(node);
    // Another host that has the code.
    let stranger = bed.node_of(Identity::generate().unwrap()).await;
    let sending = bed.send(&stranger, server.address(), SMALL, trust());
    let result = sending.task.await.unwrap();
    assert!(
        is_refused(&result, "another host uses the code"),
        "{result:?}"
    );
    // The same host, started again.
    let node = bed.node().await;
    let sending = bed.send(&node, server.address(), SMALL, trust());
    sending.task.await.unwrap().unwrap();
    while server.ended().await.is_err() {}
    // Its transfer is complete.
    let sending = bed.send(&node, server.address(), SMALL, trust());
    let result = sending.task.await.unwrap();
    assert!(
        is_refused(&result, "the transfer of this code is complete"),
        "{result:?}"
    );
}
