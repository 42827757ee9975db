//! Tests of what may keep redirected connections from a listener.

use hawser_kernel::namespace::{NetNs, is_privileged};

use crate::dropping_chains;
use crate::nftables::{Chain, ChainKind, Hook, Ownership, Socket, Table, replacement};

#[test]
fn chains_that_drop_arriving_packets_are_found() {
    if !is_privileged() {
        eprintln!("skipped: needs root");
        return;
    }
    let has_nft = std::process::Command::new("nft").arg("-v").output().is_ok();
    let job = move || {
        assert_eq!(dropping_chains().unwrap(), []);
        // A chain that accepts.
        let (kind, hook) = (ChainKind::LateFilter, Hook::Input);
        let rules = Vec::new();
        let table = Table {
            chains: [("open", Chain { kind, hook, rules })].into(),
            ..Table::default()
        };
        let requests = replacement("other", Ownership::Free, &table);
        Socket::open().unwrap().commit(&requests).unwrap();
        assert_eq!(dropping_chains().unwrap(), []);
        if !has_nft {
            eprintln!("skipped: needs nft");
            return;
        }
        let add = |what: &str| {
            let added = std::process::Command::new("nft")
                .args(what.split(' '))
                .status();
            assert!(added.unwrap().success(), "{what}");
        };
        add("add table ip filter");
        let hook = "{ type filter hook input priority 0 ; policy drop ; }";
        add(&format!("add chain ip filter INPUT {hook}"));
        let hook = "{ type filter hook forward priority 0 ; policy drop ; }";
        add(&format!("add chain ip filter FORWARD {hook}"));
        let found: Vec<String> = dropping_chains()
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, ["ip filter INPUT"]);
    };
    NetNs::create().unwrap().run(job).unwrap();
}
