//! Random bytes for everything that reads text from outside.

use hawser_fuzz::fuzz;

use crate::{IdentifierError, IsdAsn, PeerAddr, ScionAddr};

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[test]
fn any_isd_as_is_read_or_refused() {
    let valid = ["1-ff00:0:110", "64-559", "0-0", "65535-ffff:ffff:ffff"];
    fuzz(&texts(&valid), |input| {
        let text = String::from_utf8_lossy(input);
        match text.parse::<IsdAsn>() {
            Ok(isd_as) => assert_eq!(isd_as.to_string().parse(), Ok(isd_as)),
            Err(IdentifierError::IsdAsn(refused)) => assert_eq!(refused, text),
            Err(IdentifierError::Isd(part)) => assert!(text.starts_with(&format!("{part}-"))),
            Err(IdentifierError::Asn(part)) => assert!(text.ends_with(&format!("-{part}"))),
        }
    });
}

#[test]
fn any_address_is_read_or_refused() {
    let valid = [
        "1-ff00:0:110,10.0.0.1:6881",
        "1-ff00:0:110,[10.0.0.1]:6881",
        "64-559,[fd00::1]:31000",
    ];
    fuzz(&texts(&valid), |input| {
        let text = String::from_utf8_lossy(input);
        match text.parse::<ScionAddr>() {
            Ok(addr) => assert_eq!(addr.to_string().parse(), Ok(addr)),
            Err(error) => assert!(error.to_string().contains(&*text)),
        }
    });
}

#[test]
fn any_peer_is_read_or_refused() {
    let valid = ["1-ff00:0:110,10.0.0.1:6881", "10.0.0.1:6881", "[fd00::1]:1"];
    fuzz(&texts(&valid), |input| {
        let text = String::from_utf8_lossy(input);
        if let Ok(addr) = text.parse::<PeerAddr>() {
            assert_eq!(addr.to_string().parse(), Ok(addr));
        }
    });
}
