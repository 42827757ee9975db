//! The eBPF program that runs for every packet that the device receives. It sends UDP datagrams to
//! one address and port to AF_XDP sockets, and passes everything else to the kernel's stack.

use std::net::{IpAddr, SocketAddr};

/// An instruction (Linux documentation, bpf/standardization/instruction-set): opcode, registers
/// (destination in the low half, source in the high half), offset, constant.
pub(crate) type Instruction = [u8; 8];

// Opcodes.
/// `dst = *(u32 *)(src + offset)`, and likewise of 16 and 8 bits.
const LOAD_32: u8 = 0x61;
const LOAD_16: u8 = 0x69;
const LOAD_8: u8 = 0x71;
/// `dst = constant` of 64 bits, in two instructions.
const LOAD_CONSTANT: u8 = 0x18;
/// `dst = src`, `dst = constant`.
const MOVE: u8 = 0xbf;
const SET: u8 = 0xb7;
/// `dst += constant`, `dst &= constant`.
const ADD: u8 = 0x07;
const AND: u8 = 0x57;
/// `if dst > src goto offset`.
const IF_ABOVE: u8 = 0x2d;
/// `if dst != constant goto offset`, of the low 32 bits, so that the constant's sign does not matter.
const IF_NOT: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// The source register of `LOAD_CONSTANT` by which the constant is the descriptor of a map
/// (`BPF_PSEUDO_MAP_FD`).
const MAP: u8 = 1;
/// `bpf_redirect_map(map, key, flags)`.
const REDIRECT_MAP: i32 = 51;

/// What the program says to do with a packet (`enum xdp_action`).
pub(crate) const PASS: i32 = 2;
#[cfg(test)]
pub(crate) const REDIRECT: i32 = 4;

// Offsets in `struct xdp_md`, the program's argument.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

// Registers: the first five are arguments of calls, 0 is the result.
const R0: u8 = 0;
/// The program's argument.
const R1: u8 = 1;
/// Begin of the packet.
const R2: u8 = 2;
/// End of the packet.
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;

/// Offsets in a packet, from the Ethernet header on.
const ETHER_TYPE: i16 = 12;
const IP: i16 = 14;

const fn instruction(opcode: u8, dst: u8, src: u8, offset: i16, constant: i32) -> Instruction {
    let (offset, constant) = (offset.to_ne_bytes(), constant.to_ne_bytes());
    [
        opcode,
        // Bit fields lie the other way round on big-endian machines.
        if cfg!(target_endian = "little") {
            src << 4 | dst
        } else {
            dst << 4 | src
        },
        offset[0],
        offset[1],
        constant[0],
        constant[1],
        constant[2],
        constant[3],
    ]
}

/// A number of a packet as the program loads it, in the machine's byte order.
fn word16(bytes: [u8; 2]) -> i32 {
    u16::from_ne_bytes(bytes).into()
}

/// The program for datagrams to `local`, in frames of at most `longest` bytes, by the map of AF_XDP
/// sockets `map`, which has one for each receive queue.
pub(crate) fn program(local: SocketAddr, longest: u32, map: i32) -> Vec<Instruction> {
    let mut checks = Checks(Vec::new());
    let port = local.port().to_be_bytes();
    match local.ip() {
        IpAddr::V4(ip) => {
            // Ethernet, IPv4, UDP.
            checks.begin(14 + 20 + 8);
            checks.field(LOAD_16, ETHER_TYPE, word16([0x08, 0x00]));
            // Version 4 and no options, so that UDP has its place.
            checks.field(LOAD_8, IP, 0x45);
            // Neither a first nor a further fragment: the kernel puts them together.
            checks.masked(IP + 6, word16([0x3f, 0xff]), 0);
            checks.field(LOAD_8, IP + 9, 17);
            checks.field(LOAD_32, IP + 16, i32::from_ne_bytes(ip.octets()));
            checks.field(LOAD_16, IP + 20 + 2, word16(port));
        }
        IpAddr::V6(ip) => {
            // Ethernet, IPv6, UDP.
            checks.begin(14 + 40 + 8);
            checks.field(LOAD_16, ETHER_TYPE, word16([0x86, 0xdd]));
            // UDP follows at once: neither options nor fragments.
            checks.field(LOAD_8, IP + 6, 17);
            for (at, word) in (IP + 24..).step_by(4).zip(ip.octets().chunks(4)) {
                let word = [word[0], word[1], word[2], word[3]];
                checks.field(LOAD_32, at, i32::from_ne_bytes(word));
            }
            checks.field(LOAD_16, IP + 40 + 2, word16(port));
        }
    }
    checks.finish(longest, map)
}

/// Conditions for a packet to be taken; the first that does not hold passes it to the kernel.
struct Checks(Vec<Instruction>);

impl Checks {
    /// A jump to the end, whose offset [`Checks::finish`] fills in.
    fn jump(&mut self, opcode: u8, dst: u8, src: u8, constant: i32) {
        self.0.push(instruction(opcode, dst, src, 0, constant));
    }

    /// The packet has at least `headers` bytes: otherwise the verifier allows no access to them.
    fn begin(&mut self, headers: i32) {
        self.0.push(instruction(LOAD_32, R2, R1, DATA, 0));
        self.0.push(instruction(LOAD_32, R3, R1, DATA_END, 0));
        self.0.push(instruction(MOVE, R4, R2, 0, 0));
        self.0.push(instruction(ADD, R4, 0, 0, headers));
        self.jump(IF_ABOVE, R4, R3, 0);
    }

    /// The number at `at` is `expected`.
    fn field(&mut self, load: u8, at: i16, expected: i32) {
        self.0.push(instruction(load, R5, R2, at, 0));
        self.jump(IF_NOT, R5, 0, expected);
    }

    /// The bits `mask` of the 16 bits at `at` are `expected`.
    fn masked(&mut self, at: i16, mask: i32, expected: i32) {
        self.0.push(instruction(LOAD_16, R5, R2, at, 0));
        self.0.push(instruction(AND, R5, 0, 0, mask));
        self.jump(IF_NOT, R5, 0, expected);
    }

    fn finish(mut self, longest: u32, map: i32) -> Vec<Instruction> {
        // Longer frames do not fit a chunk; the socket would drop them.
        self.0.push(instruction(MOVE, R4, R2, 0, 0));
        self.0.push(instruction(ADD, R4, 0, 0, longest as i32));
        self.jump(IF_ABOVE, R3, R4, 0);
        // return bpf_redirect_map(map, rx_queue_index, PASS): to the socket of the queue, or to the
        // kernel if there is none.
        self.0.push(instruction(LOAD_32, R2, R1, RX_QUEUE_INDEX, 0));
        self.0.push(instruction(LOAD_CONSTANT, R1, MAP, 0, map));
        self.0.push(instruction(0, 0, 0, 0, 0));
        self.0.push(instruction(SET, R3, 0, 0, PASS));
        self.0.push(instruction(CALL, 0, 0, 0, REDIRECT_MAP));
        self.0.push(instruction(EXIT, 0, 0, 0, 0));
        // The end of every jump: return PASS.
        let end = self.0.len();
        self.0.push(instruction(SET, R0, 0, 0, PASS));
        self.0.push(instruction(EXIT, 0, 0, 0, 0));
        for (at, one) in self.0.iter_mut().enumerate() {
            if [IF_ABOVE, IF_NOT].contains(&one[0]) {
                // Offsets count from the instruction behind the jump.
                let offset = (end - at - 1) as i16;
                one[2..4].copy_from_slice(&offset.to_ne_bytes());
            }
        }
        self.0
    }
}
