use super::*;

fn isd_as(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

fn asked(src: &str, core: bool, dst: &str) -> Vec<String> {
    questions(isd_as(src), core, isd_as(dst))
        .iter()
        .map(|Question { src, dst }| format!("{src} {dst}"))
        .collect()
}

#[test]
fn all_kinds_of_segments_are_asked_for() {
    assert_eq!(
        asked("1-ff00:0:111", false, "2-ff00:0:222"),
        [
            "1-ff00:0:111 1-0",
            "1-0 2-0",
            "1-0 2-ff00:0:222",
            "2-0 2-ff00:0:222"
        ]
    );
    assert_eq!(
        asked("1-ff00:0:110", true, "2-ff00:0:222"),
        [
            "1-ff00:0:110 2-ff00:0:222",
            "1-ff00:0:110 2-0",
            "2-0 2-ff00:0:222"
        ]
    );
}

#[test]
fn nothing_is_asked_twice() {
    assert_eq!(
        asked("1-ff00:0:111", false, "1-ff00:0:112"),
        ["1-ff00:0:111 1-0", "1-0 1-0", "1-0 1-ff00:0:112"]
    );
}

#[test]
fn a_refusal_says_less_than_silence() {
    let service = || crate::service::Service::Control("127.0.0.1:1".into());
    let refused = SourceError::Refused {
        service: service(),
        question: "Segments",
        message: "no".into(),
    };
    let away = SourceError::Unreachable { service: service() };
    assert_eq!(worse(None, refused.clone()), refused);
    assert_eq!(worse(Some(refused.clone()), away.clone()), away);
    assert_eq!(worse(Some(away.clone()), refused), away);
}

#[test]
fn a_folder_without_what_is_needed_is_named() {
    let folder = std::env::temp_dir().join(format!("hawser-standalone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let said = || Standalone::open(&folder).err().unwrap().to_string();
    let missing = said();
    assert!(missing.contains("topology.json"), "{missing}");
    let file = folder.join("topology.json");
    std::fs::write(&file, r#"{"isd_as": "1-ff00:0:110", "mtu": 1472}"#).unwrap();
    let lonely = said();
    assert!(lonely.ends_with("lists no control service: there is nobody to ask for paths"));
    std::fs::remove_dir_all(&folder).unwrap();
}
