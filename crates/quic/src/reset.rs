//! Stateless resets (RFC 9000, 10.3).

use hawser_endhost::ScionAddr;
use hawser_keys::Identity;
use ring::hmac;

/// The key of stateless resets of an endpoint at `addr`. It is the same after a restart, so that a
/// peer learns at once that its connection is gone; and another one at another address, so that no
/// endpoint ends connections of another (RFC 9000, 21.11).
pub(crate) fn reset_key(identity: &Identity, addr: &ScionAddr) -> hmac::Key {
    let secret = identity.derive(&format!("hawser stateless reset {addr}"));
    hmac::Key::new(hmac::HMAC_SHA256, &secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stateless_resets_are_those_of_one_address_and_key() {
        let identity = Identity::generate().unwrap();
        let token = |identity: &Identity, addr: &str| {
            let key = reset_key(identity, &addr.parse().unwrap());
            hmac::sign(&key, b"id").as_ref().to_vec()
        };
        let ours = token(&identity, "1-ff00:0:110,10.0.0.1:31000");
        let again = Identity::from_pkcs8_pem(&identity.to_pem()).unwrap();
        assert_eq!(token(&again, "1-ff00:0:110,10.0.0.1:31000"), ours);
        assert_ne!(token(&again, "1-ff00:0:110,10.0.0.1:31001"), ours);
        let other = Identity::generate().unwrap();
        assert_ne!(token(&other, "1-ff00:0:110,10.0.0.1:31000"), ours);
    }
}
