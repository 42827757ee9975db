//! Headers that Linux 6.18 has made, and any others.

use proptest::prelude::*;

use super::*;

/// The third packet of a handshake.
pub(crate) const OPENING: [u8; 40] = [
    0x98, 0x7a, 0x00, 0x01, 0x16, 0xd5, 0xe4, 0xfd, 0x7c, 0xe4, 0x7d, 0xa6, 0xa0, 0x10, 0x00, 0x3f,
    0x00, 0x3f, 0x00, 0x00, 0x1e, 0x14, 0x01, 0x01, 0xda, 0x82, 0xc9, 0xc4, 0x62, 0x3c, 0xfe, 0x3a,
    0x12, 0xb8, 0x5b, 0x4d, 0x53, 0x02, 0x8e, 0xa0,
];
/// Data from the client; the mapping began in an earlier packet.
pub(crate) const DATA: [u8; 48] = [
    0x98, 0x7a, 0x00, 0x01, 0x16, 0xd6, 0x25, 0x92, 0x7c, 0xe4, 0x7d, 0xa7, 0xc0, 0x18, 0x00, 0x3f,
    0x3d, 0xb8, 0x00, 0x00, 0x1e, 0x1a, 0x20, 0x0f, 0x8b, 0xf8, 0xb1, 0x7c, 0x94, 0xf2, 0xe6, 0xae,
    0x41, 0x83, 0xd6, 0xc1, 0x05, 0x91, 0x35, 0x05, 0x00, 0x00, 0x17, 0x96, 0x7b, 0x00, 0x01, 0x01,
];
/// An acknowledgement from the server.
const ACKNOWLEDGEMENT: [u8; 32] = [
    0x00, 0x01, 0x98, 0x7a, 0x7c, 0xe4, 0x7d, 0xa7, 0x16, 0xd5, 0xfc, 0x92, 0x80, 0x10, 0x00, 0x3d,
    0x00, 0x28, 0x00, 0x00, 0x1e, 0x0c, 0x20, 0x03, 0x41, 0x83, 0xd6, 0xc1, 0x05, 0x91, 0x35, 0x05,
];
/// Data from the server, which has received none.
const STATUS: [u8; 44] = [
    0x00, 0x01, 0x98, 0x7a, 0x7c, 0xe4, 0x7d, 0xa6, 0x16, 0xd5, 0xe4, 0xfd, 0xb0, 0x18, 0x00, 0x3f,
    0x00, 0x35, 0x00, 0x00, 0x1e, 0x16, 0x20, 0x0d, 0x05, 0x91, 0x1d, 0x70, 0x8b, 0xf8, 0xb1, 0x7c,
    0x94, 0xf2, 0xe6, 0xad, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x01, 0x01,
];
/// The end of the data from the client, without data.
const LAST: [u8; 48] = [
    0xd7, 0xc0, 0x00, 0x01, 0x1c, 0x30, 0x74, 0xed, 0xe3, 0xec, 0xba, 0xe3, 0xc0, 0x10, 0x00, 0x3f,
    0x00, 0x38, 0x00, 0x00, 0x1e, 0x1a, 0x20, 0x1f, 0xe1, 0xab, 0x58, 0x59, 0x19, 0x99, 0xc9, 0x32,
    0x45, 0x70, 0xbf, 0x91, 0xd9, 0x20, 0x08, 0x70, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x01, 0x01,
];
/// The end of the subflow.
const FIN: [u8; 32] = [
    0xd7, 0xc0, 0x00, 0x01, 0x1c, 0x30, 0x74, 0xed, 0xe3, 0xec, 0xba, 0xe3, 0x80, 0x11, 0x00, 0x3f,
    0x00, 0x28, 0x00, 0x00, 0x1e, 0x0c, 0x20, 0x03, 0xe1, 0xab, 0x58, 0x59, 0x19, 0x99, 0xc9, 0x33,
];

/// What a header says, with data acknowledgements by their lower 32 bits; read by other means than
/// the code does.
#[derive(Debug, PartialEq, Eq)]
struct Meaning {
    ports: [u16; 2],
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    window: u16,
    urgent: u16,
    options: Vec<Choice>,
}

/// An option.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Signal {
        data_ack: Option<u32>,
        /// Data sequence number and whether it has 64 bits, subflow sequence number, length.
        mapping: Option<(u64, bool, u32, u16)>,
        data_fin: bool,
    },
    Other(Vec<u8>),
}

/// The number in some bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

impl Meaning {
    fn of(header: &[u8]) -> Self {
        let field = |at: usize, length: usize| number(&header[at..at + length]);
        assert_eq!(header.len() as u64, (field(12, 1) >> 4) * 4);
        let (mut options, mut at) = (Vec::new(), 20);
        while at < header.len() {
            if header[at] == 1 {
                at += 1;
                continue;
            }
            let option = &header[at..][..header[at + 1].into()];
            options.push(Choice::of(option));
            at += option.len();
        }
        Self {
            ports: [field(0, 2) as u16, field(2, 2) as u16],
            sequence: field(4, 4) as u32,
            acknowledgement: field(8, 4) as u32,
            flags: header[13],
            window: field(14, 2) as u16,
            urgent: field(18, 2) as u16,
            options,
        }
    }
}

impl Choice {
    fn of(option: &[u8]) -> Self {
        let &[30, _, 0x20, flags, ref numbers @ ..] = option else {
            return Self::Other(option.to_vec());
        };
        let mut rest = numbers;
        let mut take = |length: usize| {
            let (taken, behind) = rest.split_at(length);
            rest = behind;
            number(taken)
        };
        let data_ack = match flags & 3 {
            1 => Some(take(4) as u32),
            3 => Some(take(8) as u32),
            _ => None,
        };
        let mapping = (flags & 4 != 0).then(|| {
            let is_long = flags & 8 != 0;
            let sequence = take(if is_long { 8 } else { 4 });
            (sequence, is_long, take(4) as u32, take(2) as u16)
        });
        Self::Signal {
            data_ack,
            mapping,
            data_fin: flags & 16 != 0,
        }
    }
}

/// The compact form of a header, which has one.
fn compact(header: &[u8], sender: Role) -> Vec<u8> {
    Compact::encode(header, sender).unwrap().bytes().to_vec()
}

/// The header with the flags and options given.
fn with(header: &[u8], flags: u8, options: &[u8]) -> Vec<u8> {
    let mut header = [&header[..20], options].concat();
    header[12] = (header.len() * 4) as u8;
    header[13] = flags;
    header
}

#[test]
fn headers_of_linux_are_small_and_the_same_again() {
    for (header, sender, size) in [
        (&DATA[..], Role::Client, 31),
        (&ACKNOWLEDGEMENT, Role::Server, 17),
        (&STATUS, Role::Server, 31),
        (&LAST, Role::Client, 31),
        (&FIN, Role::Client, 17),
    ] {
        let bytes = compact(header, sender);
        assert_eq!(bytes.len(), size);
        let segment = [&bytes[..], b"data"].concat();
        let (again, data) = Header::decode(&segment, sender).unwrap();
        assert_eq!(data, b"data");
        assert_eq!(Meaning::of(again.bytes()), Meaning::of(header));
        assert_eq!(again.bytes()[16..18], [0, 0]);
    }
    assert_eq!(DATA.len() - compact(&DATA, Role::Client).len(), SAVED);
}

#[test]
fn the_bytes_are_those_of_the_protocol() {
    let expected = [
        // PSH, a data acknowledgement, a mapping; the client's port.
        vec![0x0e, 0x98, 0x7a],
        // Sequence number and acknowledgement; window.
        vec![0x16, 0xd6, 0x25, 0x92, 0x7c, 0xe4, 0x7d, 0xa7, 0x00, 0x3f],
        // Data acknowledgement; data and subflow sequence number, length.
        vec![0x94, 0xf2, 0xe6, 0xae],
        vec![0x41, 0x83, 0xd6, 0xc1, 0x05, 0x91, 0x35, 0x05],
        vec![0x00, 0x00, 0x17, 0x96, 0x7b, 0x00],
    ];
    assert_eq!(compact(&DATA, Role::Client), expected.concat());
    assert_eq!(compact(&LAST, Role::Client)[0], 0x16);
    assert_eq!(compact(&FIN, Role::Client)[0], 0x03);
}

#[test]
fn other_headers_have_no_compact_form() {
    let options = &DATA[20..];
    assert!(Compact::encode(&with(&DATA, 0x10, options), Role::Client).is_some());
    assert_eq!(Compact::encode(&OPENING, Role::Client), None);
    // From the wrong side.
    assert_eq!(Compact::encode(&DATA, Role::Server), None);
    // SYN, RST, URG; without ACK.
    for flags in [0x12, 0x14, 0x30, 0x08] {
        let header = with(&DATA, flags, options);
        assert_eq!(Compact::encode(&header, Role::Client), None, "{flags:x}");
    }
    let urgent = |header: &mut Vec<u8>| header[19] = 1;
    let reserved = |header: &mut Vec<u8>| header[12] |= 1;
    let changes: [fn(&mut Vec<u8>); 2] = [urgent, reserved];
    for change in changes {
        let mut header = DATA.to_vec();
        change(&mut header);
        assert_eq!(Compact::encode(&header, Role::Client), None);
    }
    let signal = &options[..26];
    let checksum = |bytes: &[u8]| {
        let mut option = [signal, bytes].concat();
        option[1] += 2;
        option
    };
    let changed = |at: usize, byte: u8| {
        let mut options = options.to_vec();
        options[at] = byte;
        options
    };
    let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    for options in [
        checksum(&[1, 2]),
        // A data sequence number of 32 bits; reserved bits; none of its numbers; a subtype of others.
        vec![30, 14, 0x20, 4, 1, 2, 3, 4, 0, 0, 0, 1, 0, 5, 1, 1],
        changed(2, 0x21),
        changed(3, 0x2f),
        vec![30, 4, 0x20, 0],
        changed(2, 0x30),
        // The end of data that the option does not describe.
        vec![30, 8, 0x20, 0x11, 0, 0, 0, 1],
        // Two of them; others; one that ends too late, and that ends all.
        [
            ACKNOWLEDGEMENT[20..].to_vec(),
            vec![30, 8, 0x20, 1, 0, 0, 0, 1],
        ]
        .concat(),
        [&ACKNOWLEDGEMENT[20..], &sack].concat(),
        sack.to_vec(),
        vec![30, 9, 0x20, 1, 0, 0, 0, 1],
        vec![0; 4],
    ] {
        let header = with(&DATA, 0x10, &options);
        assert_eq!(Compact::encode(&header, Role::Client), None, "{options:x?}");
    }
}

#[test]
fn unknown_flags_and_ends_of_nothing_are_refused() {
    let bytes = compact(&ACKNOWLEDGEMENT, Role::Server);
    assert!(Header::decode(&bytes, Role::Client).is_some());
    for flags in [0x22, 0x12] {
        let mut bytes = bytes.clone();
        bytes[0] = flags;
        assert_eq!(Header::decode(&bytes, Role::Client), None);
    }
    for length in 0..bytes.len() {
        assert_eq!(Header::decode(&bytes[..length], Role::Client), None);
    }
}

#[test]
fn segments_of_a_packet_differ_by_sequence_number_and_flags() {
    let mut compact = Compact::encode(&with(&DATA, 0x99, &DATA[20..]), Role::Client).unwrap();
    for (flags, sequence) in [(0x90, 7_u32), (0x10, 8), (0x19, 9)] {
        let mut segment = with(&DATA, flags, &DATA[20..]);
        segment[4..8].copy_from_slice(&sequence.to_be_bytes());
        compact.set_segment(&segment);
        assert_eq!(Some(compact), Compact::encode(&segment, Role::Client));
    }
}

/// Headers of the client, most of which have a compact form.
pub(crate) fn headers() -> impl Strategy<Value = Vec<u8>> {
    let flags =
        prop_oneof![8 => any::<u8>().prop_map(|flags| flags & KEPT_FLAGS | ACK), 1 => any::<u8>()];
    let server_port = prop_oneof![9 => Just(PORT), 1 => any::<u16>()];
    let urgent = prop_oneof![9 => Just(0), 1 => any::<u16>()];
    let numbers = (any::<u16>(), server_port, any::<[u8; 8]>(), any::<u16>());
    (numbers, flags, urgent, options()).prop_map(|(numbers, flags, urgent, mut options)| {
        let (port, server_port, sequences, window) = numbers;
        options.resize(options.len().next_multiple_of(4).min(40), NOP);
        let mut header = port.to_be_bytes().to_vec();
        header.extend(server_port.to_be_bytes());
        header.extend(sequences);
        header.extend([0, 0]);
        header.extend(window.to_be_bytes());
        header.extend([0xab, 0xcd]);
        header.extend(urgent.to_be_bytes());
        with(&header, flags, &options)
    })
}

/// Most often a data sequence signal, behind and before options that stand for nothing.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let signal = (0..32_u8, any::<[u8; 22]>(), 0..4_usize).prop_map(|(flags, numbers, before)| {
        let data_ack = [0, 4, 0, 8][usize::from(flags & 3)];
        let mapping = [0, 10, 0, 14][usize::from(flags >> 2 & 3)];
        let numbers = &numbers[..data_ack + mapping];
        let signal = [30, 4 + numbers.len() as u8, DSS_SUBTYPE, flags];
        [&vec![NOP; before], &signal[..], numbers].concat()
    });
    let others = vec![
        vec![],
        STATUS[20..].to_vec(),
        OPENING[20..].to_vec(),
        vec![5, 10, 0, 0, 0, 1, 0, 0, 0, 2],
    ];
    prop_oneof![4 => signal, 1 => prop::sample::select(others)]
}

proptest! {
    #[test]
    fn a_header_with_a_compact_form_keeps_its_meaning(header in headers(), data: Vec<u8>) {
        if let Some(compact) = Compact::encode(&header, Role::Client) {
            prop_assert!(compact.bytes().len() <= MAX);
            let segment = [compact.bytes(), &data].concat();
            let (again, behind) = Header::decode(&segment, Role::Client).unwrap();
            prop_assert_eq!(behind, data);
            prop_assert_eq!(Meaning::of(again.bytes()), Meaning::of(&header));
            prop_assert_eq!(Compact::encode(again.bytes(), Role::Client), Some(compact));
        }
    }

    #[test]
    fn headers_have_a_compact_form_if_it_can_say_what_they_mean(header in headers()) {
        let meaning = Meaning::of(&header);
        let has_form = meaning.ports[1] == PORT
            && meaning.flags & 0x36 == 0x10
            && meaning.urgent == 0
            && match &meaning.options[..] {
                [] => true,
                [Choice::Signal { data_ack, mapping, data_fin }] => {
                    let is_long = mapping.is_none_or(|(_, is_long, ..)| is_long);
                    let has_any = data_ack.is_some() || mapping.is_some();
                    is_long && has_any && (mapping.is_some() || !data_fin)
                }
                _ => false,
            };
        // Besides, flags of numbers that are not there.
        let compact = Compact::encode(&header, Role::Client);
        prop_assert!(has_form || compact.is_none());
        let is_odd = header[20..].windows(4).any(|option| {
            matches!(option, [30, _, 0x20, flags] if flags & 3 == 2 || flags & 12 == 8)
        });
        prop_assert!(!has_form || is_odd || compact.is_some());
    }

    #[test]
    fn any_bytes_are_refused_or_encoded_as_they_were(bytes: Vec<u8>, is_server: bool) {
        let sender = if is_server { Role::Server } else { Role::Client };
        if let Some((header, data)) = Header::decode(&bytes, sender) {
            let again = Compact::encode(header.bytes(), sender).unwrap();
            prop_assert_eq!(&[again.bytes(), data].concat(), &bytes);
        }
        // Any bytes as a header.
        let _ = Compact::encode(&bytes, sender);
    }
}
