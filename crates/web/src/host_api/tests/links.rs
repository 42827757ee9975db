//! What machines report of their links.

use super::*;

#[tokio::test]
async fn a_machine_reports_another_address_of_its_own_as_alone() {
    let bed = Bed::new();
    let (own, other) = (bed.secret(USER).await, bed.secret(AP).await);
    let path = format!("/api/host/{}/address", USER.replace(':', "_"));
    let moved = |from: &str, to: &str| json!({"from": from, "to": to});
    let right = moved("198.51.100.1", "198.51.100.7");
    for (secret, body, status) in [
        (&other, &right, 401),
        (&own, &moved("198.51.100.9", "198.51.100.7"), 409),
        (&own, &moved("198.51.100.1", "2001:db8::1"), 409),
        (&own, &moved("198.51.100.1", "224.0.0.1"), 400),
        (&own, &moved("198.51.100.1", "x"), 400),
        (&own, &json!({"from": "198.51.100.1"}), 400),
        (&own, &right, 200),
        // The answer may have been lost.
        (&own, &right, 200),
    ] {
        let answer = bed.post(&path, secret, body).await;
        assert_eq!(answer.status, status, "{body}");
    }
    let state = bed.coordinator.state();
    let expected: Vec<std::net::IpAddr> = vec!["198.51.100.7".parse().unwrap()];
    assert_eq!(state.user_ases[&ia(USER)].addresses, expected);
    let link = &state.links[&bed.link];
    assert_eq!(link.user_as.ip, expected.first().copied());
}

#[tokio::test]
async fn a_machine_reports_the_mtus_of_its_own_links_alone() {
    let bed = Bed::new();
    let (own, other) = (bed.secret(USER).await, bed.secret(AP).await);
    let path = format!("/api/host/{}/mtus", USER.replace(':', "_"));
    let right = json!({"links": [{"interface": 1, "mtu": 1372}, {"interface": 9, "mtu": 1300}]});
    for (secret, body, status) in [
        (&other, &right, 401),
        (&own, &json!({"links": [{"interface": 1}]}), 400),
        (
            &own,
            &json!({"links": [{"interface": 1, "mtu": 65536}]}),
            400,
        ),
        (&own, &json!({"mtus": {}}), 400),
        (&own, &right, 200),
        (&own, &right, 200),
    ] {
        let answer = bed.post(&path, secret, body).await;
        assert_eq!(answer.status, status, "{body}");
    }
    let state = bed.coordinator.state();
    let link = &state.links[&bed.link];
    assert_eq!(link.user_as.interface, Some(1));
    let mtus = (link.user_as.mtu, link.attachment_point.mtu);
    assert_eq!(mtus, (Some(1372), None));
}
