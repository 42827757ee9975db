//! Requests about torrents, of the shapes that known clients send, and what these read of the answers.

use hawser_transmission::{Change, Files, Parts, Source, State};
use serde_json::json;

use self::memory::{Memory, ask, call, fail};

mod memory;

const HASH: &str = "000102030405060708090a0b0c0d0e0f10111213";

/// Names between blanks.
fn words(names: &str) -> Vec<&str> {
    names.split(' ').collect()
}

#[test]
fn transmission_remote_lists_torrents() {
    let mut client = Memory::sample();
    // -l of 3.00 and, in the new form, of 4.1.
    let fields = words(
        "error errorString eta id isFinished leftUntilDone name peersGettingFromUs \
         peersSendingToUs rateDownload rateUpload sizeWhenDone status uploadRatio",
    );
    let listed = call(&mut client, "torrent-get", json!({ "fields": fields }));
    let expected = json!([
        {
            "error": 0, "errorString": "", "eta": 90, "id": 1, "isFinished": false,
            "leftUntilDone": 1_500_000, "name": "data set", "peersGettingFromUs": 1,
            "peersSendingToUs": 1, "rateDownload": 16_000, "rateUpload": 8_000,
            "sizeWhenDone": 3_000_000, "status": 4, "uploadRatio": 0.5,
        },
        {
            "error": 3, "errorString": "no room", "eta": -1, "id": 2, "isFinished": false,
            "leftUntilDone": 0, "name": "magnet", "peersGettingFromUs": 0, "peersSendingToUs": 0,
            "rateDownload": 0, "rateUpload": 0, "sizeWhenDone": 0, "status": 0,
            "uploadRatio": -1.0,
        },
    ]);
    assert_eq!(listed, json!({ "torrents": expected }));
    assert_eq!(client.parts.get(), Parts::NONE);
    let request = json!({
        "id": 3, "jsonrpc": "2.0", "method": "torrent_get", "params": {
            "fields": ["added_date", "error_string", "is_finished", "left_until_done"], "ids": [1],
        },
    });
    let row = json!({
        "added_date": 1_700_000_100, "error_string": "", "is_finished": false,
        "left_until_done": 1_500_000,
    });
    let expected = json!({"jsonrpc": "2.0", "id": 3, "result": {"torrents": [row]}});
    assert_eq!(ask(&mut client, &request), expected);
}

#[test]
fn transmission_remote_shows_details_of_a_torrent() {
    let mut client = Memory::sample();
    // -t 1 -i
    let fields = words(
        "activityDate addedDate bandwidthPriority comment corruptEver creator dateCreated \
         desiredAvailable doneDate downloadDir downloadedEver downloadLimit downloadLimited \
         error errorString eta group hashString haveUnchecked haveValid honorsSessionLimits \
         id isFinished isPrivate labels leftUntilDone magnetLink name peersConnected \
         peersGettingFromUs peersSendingToUs peer-limit percentDone pieceCount pieceSize \
         rateDownload rateUpload recheckProgress secondsDownloading secondsSeeding \
         seedIdleMode seedIdleLimit seedRatioMode seedRatioLimit sizeWhenDone source \
         startDate status totalSize uploadedEver uploadLimit uploadLimited webseeds \
         webseedsSendingToUs",
    );
    let torrent = call(
        &mut client,
        "torrent-get",
        json!({"fields": fields, "ids": [1]}),
    );
    let torrent = &torrent["torrents"][0];
    for field in fields {
        assert!(torrent.get(field).is_some(), "{field}");
    }
    assert_eq!(torrent["hashString"], HASH);
    assert_eq!(torrent["percentDone"], 0.5);
    assert_eq!(torrent["comment"], "measured \"today\"");
    assert_eq!(torrent["labels"], json!(["linux", "sets"]));
    assert_eq!(torrent["downloadLimit"], 500);
    assert_eq!(client.parts.get(), Parts::TEXTS);
    // -if, -ip, -ic, -it
    let fields = words(
        "id name files priorities wanted fileStats peers pieces pieceCount trackerStats \
         trackers trackerList availability",
    );
    let lists = call(
        &mut client,
        "torrent-get",
        json!({"fields": fields, "ids": HASH}),
    );
    let lists = &lists["torrents"][0];
    assert_eq!(lists["files"][1]["name"], "data set/b");
    assert_eq!(lists["files"][0]["bytesCompleted"], 1_500_000);
    assert_eq!(lists["files"][0]["end_piece"], 3);
    assert_eq!(lists["priorities"], json!([1, 1]));
    assert_eq!(lists["wanted"], json!([1, 0]));
    assert_eq!(lists["fileStats"][1]["wanted"], false);
    assert_eq!(lists["pieces"], "gA==");
    assert_eq!(lists["availability"], json!([-1, 2, 1, 0]));
    let peer = &lists["peers"][0];
    assert_eq!(
        (&peer["address"], &peer["port"]),
        (&json!("1-ff00:0:110,10.0.0.1"), &json!(6881))
    );
    assert_eq!(
        (&peer["flagStr"], &peer["isUTP"]),
        (&json!("D?E"), &json!(false))
    );
    let tracker = &lists["trackerStats"][0];
    assert_eq!(tracker["host"], "tracker.example.org:6969");
    assert_eq!(tracker["lastAnnounceResult"], "Success");
    assert_eq!(tracker["downloadCount"], -1);
    assert_eq!(lists["trackers"][0]["sitename"], "example");
    assert_eq!(
        lists["trackerList"],
        "udp://tracker.example.org:6969/announce\n"
    );
    assert!(!client.parts.get().contains(Parts::TEXTS));
}

#[test]
fn recently_active_torrents_come_with_removed_ones() {
    let mut client = Memory::sample();
    let arguments = json!({"ids": "recently-active", "fields": ["id"]});
    call(
        &mut client,
        "torrent-remove",
        json!({"ids": [2], "delete-local-data": true}),
    );
    let listed = call(&mut client, "torrent-get", arguments);
    assert_eq!(listed, json!({"torrents": [{"id": 1}], "removed": [2]}));
    let listed = call(
        &mut client,
        "torrent-get",
        json!({"ids": [1], "fields": ["id"]}),
    );
    assert_eq!(listed, json!({"torrents": [{"id": 1}]}));
    assert_eq!(client.log, ["remove [2] true"]);
}

#[test]
fn a_table_has_a_row_of_names_and_one_for_each_torrent() {
    let mut client = Memory::sample();
    let fields = json!(["id", "no such field", "downloadDir", "file-count", "id"]);
    let arguments = json!({"fields": fields, "format": "table"});
    let listed = call(&mut client, "torrent-get", arguments);
    let expected = json!([
        ["id", "downloadDir", "file-count"],
        [1, "/srv/data", 2],
        [2, "/srv", 0]
    ]);
    assert_eq!(listed["torrents"], expected);
    let none = json!({"fields": ["no such field"]});
    assert_eq!(
        fail(&mut client, "torrent-get", none),
        "no fields specified"
    );
}

#[test]
fn torrents_are_added_from_links_urls_paths_and_metainfo() {
    let mut client = Memory::sample();
    // transmission-remote --add FILE -w /srv/new -L a,b -p, in base64.
    let added = call(
        &mut client,
        "torrent-add",
        json!({
            "metainfo": "ZGU=\n", "download-dir": "/srv/new", "paused": true, "labels": [" a ", "b"],
            "files-unwanted": [1], "files-wanted": [], "peer-limit": 9, "bandwidthPriority": 1,
        }),
    );
    let hash = "03".repeat(20);
    let expected = json!({"torrent-added": {"id": 3, "name": "metainfo", "hashString": hash}});
    assert_eq!(added, expected);
    let add = &client.added[0];
    assert_eq!(add.source, Source::Metainfo(b"de".to_vec()));
    assert_eq!(add.download_dir.as_deref(), Some("/srv/new"));
    assert_eq!(add.is_paused, Some(true));
    let expected = [
        Change::Priority(hawser_transmission::Priority::High),
        Change::Labels(vec!["a".to_owned(), "b".to_owned()]),
        Change::PeerLimit(9),
        Change::Wanted(Files::Some(vec![1]), false),
    ];
    assert_eq!(add.changes, expected);
    let magnet = "MAGNET:?xt=urn:btih:abc";
    for (name, source) in [
        (magnet, Source::Magnet(magnet.to_owned())),
        ("/srv/x.torrent", Source::Path("/srv/x.torrent".to_owned())),
        (
            &*"AB".repeat(20),
            Source::Magnet(format!("magnet:?xt=urn:btih:{}", "ab".repeat(20))),
        ),
    ] {
        call(
            &mut client,
            "torrent-add",
            json!({"filename": name, "download-dir": ""}),
        );
        assert_eq!(client.added.last().unwrap().source, source);
    }
    let url = json!({"filename": "https://example.org/x", "cookies": "a=b;"});
    call(&mut client, "torrent-add", url);
    let (url, cookies) = ("https://example.org/x".to_owned(), Some("a=b;".to_owned()));
    assert_eq!(
        client.added.last().unwrap().source,
        Source::Url { url, cookies }
    );
    // One that is there already.
    let again = call(&mut client, "torrent-add", json!({"filename": HASH}));
    assert_eq!(again["torrent-duplicate"]["name"], "data set");
    for (arguments, error) in [
        (json!({}), "no filename or metainfo specified"),
        (json!({"metainfo": "*"}), "unrecognized info"),
        (
            json!({"metainfo": "eHg="}),
            "invalid or corrupt torrent file",
        ),
        (
            json!({"filename": "x", "download-dir": "y"}),
            "download directory path is not absolute",
        ),
        (
            json!({"filename": "x", "labels": ["a,b"]}),
            "labels cannot contain comma (,) character",
        ),
        (
            json!({"filename": "x", "labels": [" "]}),
            "labels cannot be empty",
        ),
    ] {
        assert_eq!(fail(&mut client, "torrent-add", arguments), error);
    }
}

#[test]
fn torrents_are_started_stopped_and_moved_in_the_queue() {
    let mut client = Memory::sample();
    for (method, logged) in [
        ("torrent-start", "Start"),
        ("torrent-start-now", "StartNow"),
        ("torrent-verify", "Verify"),
        ("torrent-reannounce", "Reannounce"),
        ("queue-move-top", "QueueTop"),
        ("queue-move-up", "QueueUp"),
        ("queue-move-down", "QueueDown"),
        ("queue-move-bottom", "QueueBottom"),
        ("torrent-stop", "Stop"),
    ] {
        assert_eq!(
            call(&mut client, method, json!({"ids": [2, HASH, 2]})),
            json!({})
        );
        assert_eq!(client.log.pop().unwrap(), format!("{logged} [2, 1]"));
        call(&mut client, method, json!({}));
        assert_eq!(client.log.pop().unwrap(), format!("{logged} [1, 2]"));
        call(&mut client, method, json!({"ids": []}));
        assert_eq!(client.log.pop().unwrap(), format!("{logged} []"));
    }
    assert_eq!(client.torrent(1).state, State::Stopped);
    let error = fail(&mut client, "torrent-stop", json!({"ids": null}));
    assert!(error.starts_with("ids must be"));
}

#[test]
fn settings_of_torrents_change() {
    let mut client = Memory::sample();
    // transmission-remote -t 1 -L a -d 100 -G 0 -tr 7, Flood's labels, Sonarr's limits of seeding.
    let changes = json!({
        "ids": [1], "labels": ["a"], "downloadLimit": 100, "downloadLimited": true,
        "files-unwanted": [0], "trackerRemove": [7],
    });
    call(&mut client, "torrent-set", changes);
    let torrent = client.torrent(1);
    assert_eq!(torrent.options.labels, ["a"]);
    assert_eq!(torrent.options.down.kilobytes, 100);
    assert!(!torrent.detail.files[0].is_wanted);
    assert!(torrent.detail.trackers.is_empty());
    client.log.clear();
    let limits = json!({
        "ids": [HASH], "seedRatioLimit": 1.5, "seedRatioMode": 1, "seedIdleLimit": 30,
        "seedIdleMode": 1, "trackerList": "udp://a:1\n\nudp://b:2", "queuePosition": 0,
    });
    call(&mut client, "torrent-set", limits);
    let logged = "change 1 [IdleLimit(30), IdleMode(Own), RatioLimit(1.5), RatioMode(Own), \
                  QueuePosition(0), Trackers([[\"udp://a:1\"], [\"udp://b:2\"]])]";
    assert_eq!(client.log, [logged]);
    call(
        &mut client,
        "torrent-set",
        json!({"ids": 1, "files-wanted": [], "priority-low": []}),
    );
    let logged = "change 1 [Wanted(All, true), FilePriority(All, Low)]";
    assert_eq!(client.log.last().unwrap(), logged);
    for (arguments, error) in [
        (
            json!({"ids": 1, "files-wanted": [2]}),
            "file index out of range",
        ),
        (
            json!({"ids": 1, "trackerRemove": [8]}),
            "error setting announce list",
        ),
        (
            json!({"ids": 1, "trackerAdd": ["x"]}),
            "error setting announce list",
        ),
        (
            json!({"ids": 1, "trackerList": "x"}),
            "Invalid tracker list",
        ),
        (
            json!({"ids": 1, "sequential_download_from_piece": 4}),
            "piece index out of range",
        ),
        (
            json!({"ids": 1, "seedRatioMode": 3}),
            "seed_ratio_mode must be 0, 1 or 2",
        ),
        (
            json!({"ids": 1, "bandwidthPriority": 2}),
            "bandwidth_priority must be -1, 0 or 1",
        ),
        (
            json!({"ids": 1, "downloadLimited": "maybe"}),
            "download_limited must be a boolean",
        ),
    ] {
        assert_eq!(fail(&mut client, "torrent-set", arguments), error);
    }
}

#[test]
fn an_error_for_one_torrent_does_not_keep_others_from_changing() {
    let mut client = Memory::sample();
    let arguments = json!({"ids": [2, 1], "files-wanted": [1]});
    assert_eq!(
        fail(&mut client, "torrent-set", arguments),
        "file index out of range"
    );
    assert!(client.torrent(1).detail.files[1].is_wanted);
}

#[test]
fn content_is_moved_and_renamed() {
    let mut client = Memory::sample();
    // transmission-remote -t 1 --move /new and --find /old.
    let arguments = json!({"ids": [1], "location": "/new", "move": true});
    call(&mut client, "torrent-set-location", arguments);
    call(
        &mut client,
        "torrent-set-location",
        json!({"ids": [1], "location": "/old"}),
    );
    assert_eq!(
        client.log,
        ["relocate [1] /new true", "relocate [1] /old false"]
    );
    let relative = json!({"ids": [1], "location": "new"});
    let error = fail(&mut client, "torrent-set-location", relative);
    assert_eq!(error, "new location path is not absolute");
    let error = fail(&mut client, "torrent-set-location", json!({"ids": [1]}));
    assert_eq!(error, "no location");
    let arguments = json!({"ids": [1], "path": "data set", "name": "set"});
    let renamed = call(&mut client, "torrent-rename-path", arguments);
    assert_eq!(renamed, json!({"id": 1, "path": "data set", "name": "set"}));
    for (path, name, error) in [
        ("", "x", "invalid path"),
        ("/set", "x", "invalid path"),
        ("set/../x", "x", "invalid path"),
        ("set", "", "invalid name"),
        ("set", "..", "invalid name"),
        ("set", "a/b", "invalid name"),
        ("other", "x", "other is not there"),
    ] {
        let arguments = json!({"ids": [1], "path": path, "name": name});
        assert_eq!(fail(&mut client, "torrent-rename-path", arguments), error);
    }
    let arguments = json!({"path": "set", "name": "x"});
    let error = fail(&mut client, "torrent-rename-path", arguments);
    assert_eq!(error, "torrent-rename-path requires 1 torrent");
}

#[test]
fn fields_of_flood_trguing_and_sonarr_exist() {
    let mut client = Memory::sample();
    let flood = words(
        "hashString downloadDir name haveValid addedDate dateCreated rateDownload rateUpload \
         downloadedEver uploadedEver eta isPrivate error errorString peersGettingFromUs \
         peersSendingToUs status totalSize trackers labels files fileStats peers trackerStats",
    );
    let sonarr = words(
        "id hashString name downloadDir totalSize leftUntilDone isFinished eta status \
         secondsDownloading secondsSeeding errorString uploadedEver downloadedEver \
         seedRatioLimit seedRatioMode seedIdleLimit seedIdleMode file-count labels",
    );
    let trguing = words(
        "activityDate addedDate bandwidthPriority corruptEver dateCreated desiredAvailable \
         doneDate downloadLimit downloadLimited editDate etaIdle file-count group \
         haveUnchecked haveValid honorsSessionLimits isStalled manualAnnounceTime \
         maxConnectedPeers metadataPercentComplete peer-limit peersConnected percentComplete \
         percentDone pieceCount pieceSize queuePosition recheckProgress sizeWhenDone \
         startDate torrentFile trackerStats uploadLimit uploadLimited uploadRatio \
         webseedsSendingToUs comment creator magnetLink peersFrom pieces priorities \
         primary-mime-type trackerList wanted webseeds availability",
    );
    for fields in [flood, sonarr, trguing] {
        let listed = call(&mut client, "torrent-get", json!({ "fields": fields }));
        for torrent in listed["torrents"].as_array().unwrap() {
            for field in &fields {
                assert!(
                    torrent.get(field).is_some_and(|value| !value.is_null()),
                    "{field}"
                );
            }
        }
    }
}
