use std::path::Path;

use proptest::prelude::*;

use super::super::{Addresses, Local, Map, MapFile};
use super::*;

/// An entry as Shila's documentation and tests have it.
fn routing(port: &str, address: &str) -> String {
    format!(
        r#"  {{
    "key"  : 	{{ "ip" : "10.7.0.9", "port" : "{port}" }},
    "flow" : 	{{ "address"  : "{address}",
      "path" : {{ "elements" : [ {{ "element" : {{}} }} ] }}
    }}
  }}"#
    )
}

#[test]
fn a_routing_file_of_shila_is_read_as_it_is() {
    let text = format!(
        "[\n{},\n{}\n]\n",
        routing("60000", "17-ffaa:1:d87,127.0.0.1:60000"),
        routing("60001", "19-ffaa:1:d88,127.0.0.1:60001")
    );
    let file = MapFile::parse(Path::new("routing.json"), &text).unwrap();
    let (map, problems) = Map::new(file.entries(), &Addresses::default(), &Local::default());
    assert_eq!(problems, []);
    for (destination, shim) in [
        ("10.7.0.9:60000", Some("17-ffaa:1:d87,127.0.0.1:31800")),
        ("10.7.0.9:60001", Some("19-ffaa:1:d88,127.0.0.1:31800")),
        ("10.7.0.9:60002", None),
        ("10.7.0.8:60000", None),
    ] {
        let found = map.lookup(destination.parse().unwrap());
        assert_eq!(found.map(|route| route.shim.to_string()).as_deref(), shim);
    }
    let lines: Vec<usize> = file.entries().iter().map(|entry| entry.line).collect();
    assert_eq!(lines, [2, 8]);
    // Go reads names in any case.
    let upper = r#"[{"Key": {"IP": "10.7.0.9", "Port": "1"}, "Flow": {"Address": "1-ff00:0:4,10.0.0.1:1"}}]"#;
    assert_eq!(parse(upper).0.len(), 1);
}

#[test]
fn each_error_names_its_line_and_the_remedy() {
    let good = routing("1", "1-ff00:0:4,10.0.0.1:1");
    for (text, line, part) in [
        ("{}".to_owned(), 1, "a list of entries is expected"),
        ("[\n{".to_owned(), 2, "a list of entries is expected"),
        ("[\n{\n\"key\": 1}]".to_owned(), 3, "write {\"key\""),
        (format!("[{good},\n{{\"key\": {{}}, \"flow\": {{}}}}]"), 7, "missing field `ip`"),
        (format!("[{good},\n{good}]"), 7, "and to 1-ff00:0:4,10.0.0.1 in line 1"),
        (good.replace("10.7.0.9", "db.example"), 1, "is not an IP address"),
        (good.replace("10.7.0.9", "127.0.0.1"), 1, "loopback"),
        (good.replace("\"1\"", "\"x\""), 1, "`x` is not a TCP port"),
        (good.replace("\"1\"", "1"), 2, "a string"),
        (good.replace("1-ff00:0:4,", ""), 1, "write ISD-AS,HOST:PORT"),
        (good.replace("element\" : {}", "element\" : \"1-2#3\""), 1, "a path in the file is not supported yet"),
        (good.replace("\"path\"", "\"mtu\""), 4, "unknown field `mtu`"),
        (
            r#"[{"key": {"ip": "10.7.0.9", "port": "1"}, "flow": {"dst": {"ip": "10.0.0.1", "port": "1"}}}]"#.to_owned(),
            1,
            "an address without an AS, is not supported yet",
        ),
    ] {
        let text = if text.starts_with(['[', '{']) { text } else { format!("[{text}]") };
        let error = MapFile::parse(Path::new("routing.json"), &text).unwrap_err().to_string();
        let start = format!("routing.json:{line}: ");
        assert!(error.starts_with(&start) && error.contains(part), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
        parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_values_are_read_without_panic(ip in "\\PC*", port in "\\PC*", address in "\\PC*|1-ff00:0:4,[0-9.:]*", path in "[\\[\\]{}\"a:,1]*") {
        let text = serde_json::json!([{"key": {"ip": ip, "port": port}, "flow": {"address": address}}]);
        parse(&text.to_string());
        let good = routing("1", "1-ff00:0:4,10.0.0.1:1");
        parse(&format!("[{}]", good.replace("{ \"elements\" : [ { \"element\" : {} } ] }", &path)));
    }
}
