//! ELF files for tests.

/// What is in a made-up ELF file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Elf<'a> {
    pub interpreter: Option<&'a str>,
    pub needed: &'a [&'a str],
    pub rpath: Option<&'a str>,
    pub runpath: Option<&'a str>,
    /// The processor in place of x86-64.
    pub machine: Option<u16>,
}

impl Elf<'_> {
    /// Its bytes: the headers, the dynamic section, and the texts.
    pub fn bytes(&self) -> Vec<u8> {
        /// Where what follows the headers is loaded.
        const BASE: u64 = 0x10000;
        let headers = 64 + 3 * 56;
        let mut texts = vec![0];
        let mut add = |text: &str| {
            let at = texts.len() as u64;
            texts.extend_from_slice(text.as_bytes());
            texts.push(0);
            at
        };
        let mut dynamic: Vec<(u64, u64)> = Vec::new();
        dynamic.extend(self.needed.iter().map(|name| (1, add(name))));
        dynamic.extend(self.rpath.map(|folders| (15, add(folders))));
        dynamic.extend(self.runpath.map(|folders| (29, add(folders))));
        let interpreter = self.interpreter.map(&mut add);
        let size = 16 * (dynamic.len() as u64 + 2);
        dynamic.extend([(5, BASE + headers + size), (0, 0)]);

        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
        bytes.resize(16, 0);
        bytes.extend(3_u16.to_le_bytes());
        bytes.extend(self.machine.unwrap_or(62).to_le_bytes());
        bytes.resize(32, 0);
        bytes.extend(64_u64.to_le_bytes());
        bytes.resize(54, 0);
        bytes.extend(56_u16.to_le_bytes());
        bytes.extend(3_u16.to_le_bytes());
        bytes.resize(64, 0);
        let all = headers + size + texts.len() as u64;
        let in_texts = |at: u64| headers + size + at;
        let segments = [
            (1_u32, 0, all),
            (2, headers, size),
            // Kind 4 is a note.
            match interpreter {
                Some(at) => (3, in_texts(at), 1),
                None => (4, 0, 0),
            },
        ];
        for (kind, offset, size) in segments {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(4_u32.to_le_bytes());
            for number in [offset, BASE + offset, BASE + offset, size, size, 1] {
                bytes.extend(number.to_le_bytes());
            }
        }
        for (tag, value) in dynamic {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(texts);
        bytes
    }
}
