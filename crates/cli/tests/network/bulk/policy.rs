//! The policy of a transfer that runs.

use super::*;

#[test]
fn a_file_of_a_policy_that_changes_moves_a_transfer_that_runs() {
    let Some(lab) = As::default().up("fig4", "bulk-policy") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let bed = Bed { lab, folder };
    let mut bytes = vec![0; 8 << 20];
    fastrand::fill(&mut bytes);
    fs::create_dir(bed.path("data")).unwrap();
    fs::write(bed.path("data/file"), &bytes).unwrap();
    // Much is left when the change is seen, also on a busy machine.
    bed.set_rate("8mbit");
    let policy = bed.path("policy.yml");
    let only = |denied: u8| {
        let acl = format!("only: {{acl: ['- {SENDER}#{denied}', '+']}}");
        fs::write(&policy, acl).unwrap();
    };
    let carried = || {
        let status = bed.lab.status();
        let links = status["links"].as_array().unwrap().iter();
        // A busy router may not say its counters in time.
        let counted = links.map(|link| link["a"]["counters"]["tx_bytes"].as_u64());
        counted.map(Option::unwrap_or_default).sum::<u64>()
    };
    only(2);
    let receiver = bed.receive(&["--allow-any"]);
    let mut send = bed.send(&receiver, &["--policy", &policy]);
    let send = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    eventually("some of it has come", || carried() > 256 << 10);
    only(1);
    let output = send.unwrap().wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    assert!(error.contains("is in force now"), "{error}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let paths = report["paths"].as_array().unwrap();
    let used = paths.iter().filter(|path| path["bytes"].as_u64() > Some(0));
    assert_eq!(used.count(), 2, "{report}");
    bed.assert_received();
}
