//! SPAKE2 (RFC 9382) with P-256, SHA-256, HKDF and HMAC: two sides that know the same password agree
//! on keys; a side that does not know it can try one password in each exchange.
//!
//! Arithmetic on the curve takes the same time for all secrets.

use p256::elliptic_curve::group::Group;
use p256::elliptic_curve::sec1::ToEncodedPoint;
use p256::{ProjectivePoint, PublicKey, Scalar};
use ring::hmac;
use sha2::{Digest, Sha256};

/// Bytes of an element: a point of the curve P-256, uncompressed (SEC 1, 2.3.3).
pub const ELEMENT: usize = 65;

/// The element M of P-256 (RFC 9382, 6), compressed.
const M: [u8; 33] = [
    0x02, 0x88, 0x6e, 0x2f, 0x97, 0xac, 0xe4, 0x6e, 0x55, 0xba, 0x9d, 0xd7, 0x24, 0x25, 0x79, 0xf2,
    0x99, 0x3b, 0x64, 0xe1, 0x6e, 0xf3, 0xdc, 0xab, 0x95, 0xaf, 0xd4, 0x97, 0x33, 0x3d, 0x8f, 0xa1,
    0x2f,
];
/// The element N of P-256.
const N: [u8; 33] = [
    0x03, 0xd8, 0xbb, 0xd6, 0xc6, 0x39, 0xc6, 0x29, 0x37, 0xb0, 0x4d, 0x99, 0x7f, 0x38, 0xc3, 0x77,
    0x07, 0x19, 0xc6, 0x29, 0xd7, 0x01, 0x4d, 0x49, 0xa2, 0x4b, 0x4f, 0x98, 0xba, 0xa1, 0x29, 0x2b,
    0x49,
];

/// The side of the exchange; they differ in nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    A,
    B,
}

/// What a side keeps until the element of the other one arrives.
pub(crate) struct Pending {
    role: Role,
    password: Scalar,
    secret: Scalar,
    element: [u8; ELEMENT],
}

/// What both sides have in common if they know the same password.
pub(crate) struct Agreed {
    /// TT of the RFC.
    pub(crate) transcript: Vec<u8>,
    /// The keys with which A and B confirm.
    pub(crate) confirm: [hmac::Key; 2],
}

/// The number, modulo the order of the group, that `bytes` are in big-endian. It is uniform when they
/// are.
pub(crate) fn scalar(bytes: &[u8; 64]) -> Scalar {
    let shift = Scalar::from(u128::MAX) + Scalar::ONE;
    let (chunks, _) = bytes.as_chunks::<16>();
    chunks.iter().fold(Scalar::ZERO, |sum, chunk| {
        sum * shift + Scalar::from(u128::from_be_bytes(*chunk))
    })
}

/// A point that this file names.
fn constant(bytes: &[u8; 33]) -> ProjectivePoint {
    match PublicKey::from_sec1_bytes(bytes) {
        Ok(point) => point.to_projective(),
        Err(_) => unreachable!("M and N are points of the curve"),
    }
}

pub(crate) fn encode(point: &ProjectivePoint) -> [u8; ELEMENT] {
    let mut bytes = [0; ELEMENT];
    // Only the identity is shorter. It is refused, in whatever form.
    let encoded = point.to_affine().to_encoded_point(false);
    bytes[..encoded.len()].copy_from_slice(encoded.as_bytes());
    bytes
}

/// Decodes an element; `None` when it is not a point of the curve, uncompressed.
pub(crate) fn decode(element: &[u8]) -> Option<ProjectivePoint> {
    if element.len() != ELEMENT {
        return None;
    }
    Some(PublicKey::from_sec1_bytes(element).ok()?.to_projective())
}

impl Pending {
    /// Begins with `password` and `secret`, which is random and used once.
    pub(crate) fn new(role: Role, password: Scalar, secret: Scalar) -> Self {
        let blind = match role {
            Role::A => constant(&M),
            Role::B => constant(&N),
        };
        Self {
            role,
            password,
            secret,
            element: encode(&(ProjectivePoint::GENERATOR * secret + blind * password)),
        }
    }

    /// The element for the other side.
    pub(crate) fn element(&self) -> [u8; ELEMENT] {
        self.element
    }

    /// Takes the other side's element. `names` are those of A and B; the keys depend on them and on
    /// `data`. `None` when `element` is not one that an honest side sends.
    pub(crate) fn finish(self, element: &[u8], names: [&[u8]; 2], data: &[u8]) -> Option<Agreed> {
        let point = decode(element)?;
        let blind = match self.role {
            Role::A => constant(&N),
            Role::B => constant(&M),
        };
        // The cofactor of P-256 is 1.
        let shared = (point - blind * self.password) * self.secret;
        if bool::from(shared.is_identity()) {
            return None;
        }
        let [a, b] = match self.role {
            Role::A => [&self.element[..], element],
            Role::B => [element, &self.element[..]],
        };
        let mut transcript = Vec::new();
        let password = self.password.to_bytes();
        for part in [names[0], names[1], a, b, &encode(&shared), &password] {
            transcript.extend((part.len() as u64).to_le_bytes());
            transcript.extend(part);
        }
        // Ke, which nothing here uses, and Ka (RFC 9382, 4).
        let hash = Sha256::digest(&transcript);
        let keys = derive(&hash[16..], &[b"ConfirmationKeys", data]);
        let (a, b) = keys.split_at(16);
        Some(Agreed {
            transcript,
            confirm: [a, b].map(|key| hmac::Key::new(hmac::HMAC_SHA256, key)),
        })
    }
}

/// HKDF-SHA256 (RFC 5869) without salt, for one block.
fn derive(secret: &[u8], info: &[&[u8]]) -> [u8; 32] {
    let key = |bytes: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, bytes);
    let extracted = hmac::sign(&key(&[]), secret);
    let mut context = hmac::Context::with_key(&key(extracted.as_ref()));
    info.iter().for_each(|part| context.update(part));
    context.update(&[1]);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.sign().as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appendix B of RFC 9382: names of A and B, w, x, y, pA, pB, and what A and B confirm with.
    const VECTORS: [[&str; 9]; 4] = [
        [
            "server",
            "client",
            "2ee57912099d31560b3a44b1184b9b4866e904c49d12ac5042c97dca461b1a5f",
            "43dd0fd7215bdcb482879fca3220c6a968e66d70b1356cac18bb26c84a78d729",
            "dcb60106f276b02606d8ef0a328c02e4b629f84f89786af5befb0bc75b6e66be",
            "04a56fa807caaa53a4d28dbb9853b9815c61a411118a6fe516a8798434751470f9010153ac33d0d5f2047ffdb1a3e42c9b4e6be662766e1eeb4116988ede5f912c",
            "0406557e482bd03097ad0cbaa5df82115460d951e3451962f1eaf4367a420676d09857ccbc522686c83d1852abfa8ed6e4a1155cf8f1543ceca528afb591a1e0b7",
            "58ad4aa88e0b60d5061eb6b5dd93e80d9c4f00d127c65b3b35b1b5281fee38f0",
            "d3e2e547f1ae04f2dbdbf0fc4b79f8ecff2dff314b5d32fe9fcef2fb26dc459b",
        ],
        [
            "",
            "client",
            "0548d8729f730589e579b0475a582c1608138ddf7054b73b5381c7e883e2efae",
            "403abbe3b1b4b9ba17e3032849759d723939a27a27b9d921c500edde18ed654b",
            "903023b6598908936ea7c929bd761af6039577a9c3f9581064187c3049d87065",
            "04a897b769e681c62ac1c2357319a3d363f610839c4477720d24cbe32f5fd85f44fb92ba966578c1b712be6962498834078262caa5b441ecfa9d4a9485720e918a",
            "04e0f816fd1c35e22065d5556215c097e799390d16661c386e0ecc84593974a61b881a8c82327687d0501862970c64565560cb5671f696048050ca66ca5f8cc7fc",
            "47d29e6666af1b7dd450d571233085d7a9866e4d49d2645e2df975489521232b",
            "3313c5cefc361d27fb16847a91c2a73b766ffa90a4839122a9b70a2f6bd1d6df",
        ],
        [
            "server",
            "",
            "626e0cdc7b14c9db3e52a0b1b3a768c98e37852d5db30febe0497b14eae8c254",
            "07adb3db6bc623d3399726bfdbfd3d15a58ea776ab8a308b00392621291f9633",
            "b6a4fc8dbb629d4ba51d6f91ed1532cf87adec98f25dd153a75accafafedec16",
            "04f88fb71c99bfffaea370966b7eb99cd4be0ff1a7d335caac4211c4afd855e2e15a873b298503ad8ba1d9cbb9a392d2ba309b48bfd7879aefd0f2cea6009763b0",
            "040c269d6be017dccb15182ac6bfcd9e2a14de019dd587eaf4bdfd353f031101e7cca177f8eb362a6e83e7d5e729c0732e1b528879c086f39ba0f31a9661bd34db",
            "bc9f9bbe99f26d0b2260e6456e05a86196a3307ec6663a18bf6ac825736533b2",
            "c2370e1bf813b086dff0d834e74425a06e6390f48f5411900276dcccc5a297ec",
        ],
        [
            "",
            "",
            "7bf46c454b4c1b25799527d896508afd5fc62ef4ec59db1efb49113063d70cca",
            "8cef65df64bb2d0f83540c53632de911b5b24b3eab6cc74a97609fd659e95473",
            "d7a66f64074a84652d8d623a92e20c9675c61cb5b4f6a0063e4648a2fdc02d53",
            "04a65b367a3f613cf9f0654b1b28a1e3a8a40387956c8ba6063e8658563890f46ca1ef6a676598889fc28de2950ab8120b79a5ef1ea4c9f44bc98f585634b46d66",
            "04589f13218822710d98d8b2123a079041052d9941b9cf88c6617ddb2fcc0494662eea8ba6b64692dc318250030c6af045cb738bc81ba35b043c3dcb46adf6f58d",
            "dfb4db8d48ae5a675963ea5e6c19d98d4ea028d8e898dad96ea19a80ade95dca",
            "d0f0609d1613138d354f7e95f19fb556bf52d751947241e8c7118df5ef0ae175",
        ],
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = (0..hex.len()).step_by(2);
        digits
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    fn number(hex: &str) -> Scalar {
        let mut number = [0; 64];
        number[32..].copy_from_slice(&bytes(hex));
        scalar(&number)
    }

    #[test]
    fn the_exchange_is_that_of_the_rfc() {
        for [name_a, name_b, w, x, y, p_a, p_b, confirm_a, confirm_b] in VECTORS {
            let names = [name_a.as_bytes(), name_b.as_bytes()];
            let a = Pending::new(Role::A, number(w), number(x));
            let b = Pending::new(Role::B, number(w), number(y));
            assert_eq!(a.element()[..], bytes(p_a));
            assert_eq!(b.element()[..], bytes(p_b));
            for agreed in [
                a.finish(&bytes(p_b), names, b"").unwrap(),
                b.finish(&bytes(p_a), names, b"").unwrap(),
            ] {
                let confirm = agreed
                    .confirm
                    .map(|key| hmac::sign(&key, &agreed.transcript));
                assert_eq!(confirm[0].as_ref(), bytes(confirm_a));
                assert_eq!(confirm[1].as_ref(), bytes(confirm_b));
            }
        }
    }

    #[test]
    fn elements_that_no_honest_side_sends_are_refused() {
        let (w, x) = (number(VECTORS[0][2]), number(VECTORS[0][3]));
        let finish = |element: &[u8]| {
            let a = Pending::new(Role::A, w, x);
            a.finish(element, [b"a", b"b"], b"").is_some()
        };
        let good = bytes(VECTORS[0][6]);
        assert!(finish(&good));
        let mut off = good.clone();
        off[64] ^= 1;
        // Cut, off the curve, compressed, the identity in two forms, and the one that leaves it.
        let only_blind = encode(&(constant(&N) * w));
        let shared: [&[u8]; 6] = [&good[..64], &off, &N, &[0], &[0; ELEMENT], &only_blind];
        for element in shared {
            assert!(!finish(element), "{element:02x?}");
        }
    }

    #[test]
    fn numbers_are_taken_modulo_the_order() {
        let mut number = [0; 64];
        number[63] = 5;
        assert_eq!(scalar(&number), Scalar::from(5u64));
        // 2^256 is the product of 2^128 with itself.
        number[31] = 1;
        let half = Scalar::from(1u128 << 127) + Scalar::from(1u128 << 127);
        assert_eq!(scalar(&number), half * half + Scalar::from(5u64));
        assert_eq!(scalar(&[255; 64]) + Scalar::ONE, half * half * half * half);
    }
}
