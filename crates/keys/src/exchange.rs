//! The exchange that proves to both sides that the other one knows the code.
//!
//! Each side sends its element at once, and its confirmation after it has the other one's: the
//! client first, the server once that one proved right. So neither learns more than whether its own
//! code is the other's, and somebody between them has one try at each.

use ring::hmac;
use sha2::{Digest, Sha512};
use thiserror::Error;

use crate::code::{Code, NoRandom, random};
use crate::spake2::{ELEMENT, Pending, Role, scalar};

/// The label of the TLS exporter whose secret is bound to the exchange; its context is empty.
pub const CODE_EXPORTER: &[u8] = b"EXPORTER-hawser-bulk code";

/// The names of the sides (RFC 9382, 4).
const NAMES: [&[u8]; 2] = [b"client", b"server"];
/// What makes the number of a code differ from those of other uses.
const PASSWORD: &[u8] = b"hawser-bulk/1 code";

/// Which side of a connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// It dialed.
    Client,
    /// It listened.
    Server,
}

/// An exchange that has begun.
pub struct Exchange {
    side: Side,
    pending: Pending,
}

/// What the two sides confirm each other.
pub struct Confirmation {
    own: hmac::Key,
    peer: hmac::Key,
    transcript: Vec<u8>,
}

/// The other side has another code, or another TLS session (possible man-in-the-middle).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the other side has another code, or somebody is in between")]
pub struct WrongCode;

impl Exchange {
    /// Begins the exchange on one side, and returns the element to send in `Code`. It is used for one
    /// connection.
    ///
    /// # Errors
    /// [`NoRandom`] when the system gives no random numbers.
    pub fn start(code: &Code, side: Side) -> Result<(Self, [u8; ELEMENT]), NoRandom> {
        // Codes are random and used once: a slow hash would protect nothing.
        let password = Sha512::new().chain_update(PASSWORD);
        let password = scalar(&password.chain_update(code.as_bytes()).finalize().into());
        let role = match side {
            Side::Client => Role::A,
            Side::Server => Role::B,
        };
        let pending = Pending::new(role, password, scalar(&random()?));
        let element = pending.element();
        Ok((Self { side, pending }, element))
    }

    /// Takes the other side's element, and the secret exported from the TLS session with
    /// [`CODE_EXPORTER`].
    ///
    /// # Errors
    /// [`WrongCode`] when no honest side sends this element.
    pub fn finish(self, element: &[u8], exporter: &[u8; 64]) -> Result<Confirmation, WrongCode> {
        let agreed = self.pending.finish(element, NAMES, exporter);
        let agreed = agreed.ok_or(WrongCode)?;
        let [client, server] = agreed.confirm;
        let (own, peer) = match self.side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        Ok(Confirmation {
            own,
            peer,
            transcript: agreed.transcript,
        })
    }
}

impl Confirmation {
    /// What to send in `CodeConfirm`. A server sends it only after it has verified the client's.
    pub fn mac(&self) -> [u8; 32] {
        let mut mac = [0; 32];
        mac.copy_from_slice(hmac::sign(&self.own, &self.transcript).as_ref());
        mac
    }

    /// Verifies the other side's, in constant time.
    ///
    /// # Errors
    /// [`WrongCode`] when it is another one. The code is not to be used again.
    pub fn verify(&self, mac: &[u8]) -> Result<(), WrongCode> {
        hmac::verify(&self.peer, &self.transcript, mac).map_err(|_| WrongCode)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code() -> Code {
        Code::generate().unwrap()
    }

    /// Runs both sides, and returns whether the client and the server trust the other one.
    fn run(codes: [&Code; 2], exporters: [&[u8; 64]; 2]) -> [bool; 2] {
        let (client, to_server) = Exchange::start(codes[0], Side::Client).unwrap();
        let (server, to_client) = Exchange::start(codes[1], Side::Server).unwrap();
        let client = client.finish(&to_client, exporters[0]).unwrap();
        let server = server.finish(&to_server, exporters[1]).unwrap();
        let trusts = |by: &Confirmation, other: &Confirmation| by.verify(&other.mac()).is_ok();
        [trusts(&client, &server), trusts(&server, &client)]
    }

    #[test]
    fn sides_with_one_code_and_one_session_trust_each_other() {
        let (code, session) = (code(), [7; 64]);
        assert_eq!(run([&code, &code], [&session, &session]), [true, true]);
        let typed = code.to_string().to_uppercase().parse().unwrap();
        assert_eq!(run([&code, &typed], [&session, &session]), [true, true]);
    }

    #[test]
    fn another_code_fails_on_both_sides() {
        let session = [7; 64];
        assert_eq!(
            run([&code(), &code()], [&session, &session]),
            [false, false]
        );
    }

    #[test]
    fn another_session_fails_on_both_sides() {
        let code = code();
        assert_eq!(run([&code, &code], [&[7; 64], &[8; 64]]), [false, false]);
    }

    #[test]
    fn nothing_is_trusted_that_comes_back() {
        let (code, session) = (code(), [7; 64]);
        // The own element, and the own confirmation in an honest exchange.
        for side in [Side::Client, Side::Server] {
            let (own, element) = Exchange::start(&code, side).unwrap();
            let own = own.finish(&element, &session).unwrap();
            assert_eq!(own.verify(&own.mac()), Err(WrongCode));
        }
        // Two clients.
        let (a, of_a) = Exchange::start(&code, Side::Client).unwrap();
        let (b, of_b) = Exchange::start(&code, Side::Client).unwrap();
        let a = a.finish(&of_b, &session).unwrap();
        let b = b.finish(&of_a, &session).unwrap();
        assert_eq!(a.verify(&b.mac()), Err(WrongCode));
    }

    #[test]
    fn a_confirmation_is_of_one_exchange() {
        let (code, session) = (code(), [7; 64]);
        let exchange = || {
            let (client, to_server) = Exchange::start(&code, Side::Client).unwrap();
            let (server, to_client) = Exchange::start(&code, Side::Server).unwrap();
            let client = client.finish(&to_client, &session).unwrap();
            (client, server.finish(&to_server, &session).unwrap())
        };
        let ((client, server), (earlier, _)) = (exchange(), exchange());
        assert_eq!(server.verify(&earlier.mac()), Err(WrongCode));
        let mac = client.mac();
        for at in 0..mac.len() {
            let mut forged = mac;
            forged[at] ^= 1;
            assert_eq!(server.verify(&forged), Err(WrongCode));
        }
        assert_eq!(server.verify(&mac[..31]), Err(WrongCode));
        assert_eq!(server.verify(&[]), Err(WrongCode));
        assert_eq!(server.verify(&mac), Ok(()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(
            element in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..100),
                proptest::collection::vec(any::<u8>(), ELEMENT - 1)
                    .prop_map(|rest| [vec![4], rest].concat()),
            ],
            mac in proptest::collection::vec(any::<u8>(), 0..64),
            server: bool,
        ) {
            let side = if server { Side::Server } else { Side::Client };
            let (exchange, _) = Exchange::start(&Code::generate().unwrap(), side).unwrap();
            if let Ok(confirmation) = exchange.finish(&element, &[0; 64]) {
                prop_assert_eq!(confirmation.verify(&mac), Err(WrongCode));
            }
        }
    }
}
