use std::time::Duration;

use hawser_topology::Network;
use proptest::prelude::*;

use super::*;
use crate::testing::{TWO_ISDS, ia, plane};

const NOW: u64 = 2_000_000_000;

fn of(isd_as: &str) -> Plane {
    plane(&Network::parse(TWO_ISDS).unwrap(), ia(isd_as))
}

fn request(page_size: i32, page_token: &str) -> ListSegmentsRequest {
    ListSegmentsRequest {
        src_isd_as: ia("1-ff00:0:114").to_u64(),
        dst_isd_as: ia("2-ff00:0:212").to_u64(),
        page_size,
        page_token: page_token.to_owned(),
    }
}

#[test]
fn routers_are_listed_with_their_interfaces() {
    let plane = of("1-ff00:0:110");
    let list = |asked: Option<&str>| {
        let isd_as = asked.map(|asked| ia(asked).to_u64());
        let answer = list_underlays(&plane, &ListUnderlaysRequest { isd_as });
        let routers = answer.udp.unwrap().routers.into_iter();
        let routers = routers.map(|r| (r.isd_as, r.address, r.interfaces));
        routers.collect::<Vec<_>>()
    };
    let own = ia("1-ff00:0:110").to_u64();
    let both = [
        (own, "10.0.1.254:30042".to_owned(), vec![1, 5]),
        (own, "10.0.1.254:30043".to_owned(), vec![2, 6]),
    ];
    for asked in [None, Some("0-0"), Some("1-0"), Some("1-ff00:0:110")] {
        assert_eq!(list(asked), both);
    }
    assert_eq!(list(Some("2-ff00:0:210")), []);
}

#[test]
fn pages_make_up_the_whole_list() {
    let mut plane = of("1-ff00:0:114");
    let whole = list_segments(&mut plane, &request(0, ""), NOW).unwrap();
    let counts = |answer: &ListSegmentsResponse| {
        [
            &answer.up_segments,
            &answer.core_segments,
            &answer.down_segments,
        ]
        .map(Vec::len)
    };
    assert_eq!(counts(&whole), [3, 6, 1]);
    assert_eq!(whole.next_page_token, "");
    for size in 1..=11 {
        let mut joined = ListSegmentsResponse::default();
        let mut token = String::new();
        loop {
            let page = list_segments(&mut plane, &request(size, &token), NOW).unwrap();
            let count = counts(&page).iter().sum::<usize>();
            token = page.next_page_token;
            let full = count == usize::try_from(size).unwrap();
            assert!(full || token.is_empty() && count > 0);
            joined.up_segments.extend(page.up_segments);
            joined.core_segments.extend(page.core_segments);
            joined.down_segments.extend(page.down_segments);
            if token.is_empty() {
                break;
            }
        }
        assert_eq!(joined, whole);
    }
}

#[test]
fn a_page_of_an_outdated_list_is_refused() {
    let mut plane = of("1-ff00:0:114");
    let first = list_segments(&mut plane, &request(2, ""), NOW).unwrap();
    let token = first.next_page_token;
    assert!(list_segments(&mut plane, &request(2, &token), NOW).is_ok());
    let (shape, wrong) = (plane.beacons.graph.network.links[0].shape, "no page token");
    plane.set_link(0, false, shape);
    for token in [&token, "1", "-", "0-", wrong, "99999999999999999999-1"] {
        let error = list_segments(&mut plane, &request(2, token), NOW).unwrap_err();
        assert!(error.to_string().contains(token), "{error}");
    }
    // Renewed segments also make a token invalid.
    let token = list_segments(&mut plane, &request(2, ""), NOW).unwrap();
    let later = NOW + Duration::from_secs(24 * 3600).as_secs();
    assert!(list_segments(&mut plane, &request(2, &token.next_page_token), later).is_err());

    let error = list_segments(&mut plane, &request(-1, ""), NOW).unwrap_err();
    assert!(matches!(error, PageError::Size(-1)));
    let mut foreign = request(0, "");
    foreign.src_isd_as = ia("1-ff00:0:113").to_u64();
    let error = list_segments(&mut plane, &foreign, NOW).unwrap_err();
    assert!(matches!(error, PageError::Lookup(_)));
}

proptest! {
    #[test]
    fn any_request_is_answered(
        src: u64,
        dst: u64,
        page_size: i32,
        page_token in "\\PC{0,20}|[0-9]{0,20}-[0-9]{0,20}",
    ) {
        let mut plane = of("1-ff00:0:114");
        let mut asked = request(page_size, &page_token);
        let answer = list_segments(&mut plane, &asked, NOW);
        prop_assert!(answer.is_err() || page_size >= 0);
        (asked.src_isd_as, asked.dst_isd_as) = (src, dst);
        let _ = list_segments(&mut plane, &asked, NOW);
    }
}
