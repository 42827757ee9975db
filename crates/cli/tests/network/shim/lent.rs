//! Connections by MPTCP that carry little, which the holder lends to the carrier: nothing is lost or
//! repeated when a carrier is killed or stands still while it copies, and no descriptor stays behind.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use super::bed::{Bed, CLIENT, Carrier, MAPPED, SERVER, accept, finish, read_all};
use super::both;
use crate::support::{eventually, pause_until};

/// Round trips after which either holder has lent its connection.
const MANY: u32 = 100;
/// Ends of pipes that come with a loan.
const PIPE_ENDS: usize = 4;

/// A program and a server, either of which waits for the other.
struct Dialogue {
    client: TcpStream,
    server: TcpStream,
    next: u32,
}

impl Dialogue {
    fn new(bed: &Bed) -> Self {
        let (listener, port) = bed.server.listen("127.0.0.1");
        let client = bed.client.connect(&format!("{}:{port}", MAPPED[0]));
        let (server, _) = accept(&listener);
        let next = 0;
        Self {
            client,
            server,
            next,
        }
    }

    fn ask(&self) {
        (&self.client).write_all(&self.next.to_be_bytes()).unwrap();
    }

    /// The next question arrives, and its answer.
    fn answer(&mut self) {
        let question = read(&self.server);
        assert_eq!(question, self.next);
        (&self.server)
            .write_all(&(!question).to_be_bytes())
            .unwrap();
        assert_eq!(read(&self.client), !self.next);
        self.next += 1;
    }

    fn round_trips(&mut self) {
        for _ in 0..MANY {
            self.ask();
            self.answer();
        }
    }

    /// Round trips until both carriers copy the connection.
    fn until_lent(&mut self, pipes: [(&Carrier, usize); 2]) {
        eventually("the connection is lent at both hosts", || {
            self.round_trips();
            let is_lent = |(carrier, before)| pipe_ends(carrier) >= before + PIPE_ENDS;
            pipes.into_iter().all(is_lent)
        });
    }

    /// Both ends are closed, in this order; what was sent before has arrived.
    fn end(self) {
        (&self.client).write_all(b"last question").unwrap();
        finish(&self.client);
        assert_eq!(read_all(&self.server), b"last question");
        (&self.server).write_all(b"last answer").unwrap();
        finish(&self.server);
        assert_eq!(read_all(&self.client), b"last answer");
    }
}

fn read(mut stream: &TcpStream) -> u32 {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes).unwrap();
    u32::from_be_bytes(bytes)
}

/// How many ends of pipes a carrier has open.
fn pipe_ends(carrier: &Carrier) -> usize {
    let open = fs::read_dir(format!("/proc/{}/fd", carrier.pid())).unwrap();
    let targets = open.filter_map(|one| fs::read_link(one.ok()?.path()).ok());
    let is_pipe = |target: &std::path::PathBuf| target.to_string_lossy().starts_with("pipe:");
    targets.filter(is_pipe).count()
}

#[test]
fn connections_that_are_lent_outlive_their_carriers() {
    let Some(bed) = Bed::new("shim-lent") else {
        return;
    };
    let (mut server, mut client) = both(&bed);
    let pipes = |server: &Carrier, client: &Carrier| (pipe_ends(server), pipe_ends(client));
    let (of_server, of_client) = pipes(&server, &client);
    let before = [CLIENT, SERVER].map(|isd_as| bed.descriptors(isd_as));
    let mut dialogue = Dialogue::new(&bed);
    dialogue.until_lent([(&server, of_server), (&client, of_client)]);

    // What is asked while there is no carrier is answered once there is one again.
    client.kill();
    dialogue.ask();
    client = bed.use_shim(&server, &[]);
    dialogue.answer();
    dialogue.until_lent([(&server, of_server), (&client, of_client)]);

    // The server's carrier may have the question, or not.
    dialogue.ask();
    server.kill();
    server = bed.serve(&["--expose", "all"]);
    dialogue.answer();
    dialogue.until_lent([(&server, of_server), (&client, of_client)]);

    // A carrier that stands still keeps what it was lent, and what happens meanwhile is not lost.
    pause_until(client.pid(), || dialogue.ask());
    dialogue.answer();
    dialogue.until_lent([(&server, of_server), (&client, of_client)]);
    for isd_as in [CLIENT, SERVER] {
        assert_eq!(bed.failures(isd_as), [""; 0]);
    }

    // The holders pass the ends on, and nothing of the connection is left.
    dialogue.end();
    eventually("the descriptors of the connection are closed", || {
        let now = [CLIENT, SERVER].map(|isd_as| bed.descriptors(isd_as));
        pipes(&server, &client) == (of_server, of_client)
            && now.iter().zip(before).all(|(now, before)| *now <= before)
    });
}

#[test]
fn a_reset_ends_a_connection_that_is_lent() {
    let Some(bed) = Bed::new("shim-lent-reset") else {
        return;
    };
    let (server, client) = both(&bed);
    let pipes = [&server, &client].map(|carrier| (carrier, pipe_ends(carrier)));
    let mut dialogue = Dialogue::new(&bed);
    dialogue.until_lent(pipes);
    let linger = rustix::net::sockopt::set_socket_linger;
    linger(&dialogue.client, Some(std::time::Duration::ZERO)).unwrap();
    drop(dialogue.client);
    let ended = (&dialogue.server).read(&mut [0]);
    assert_eq!(
        ended.map_err(|error| error.kind()),
        Err(ErrorKind::ConnectionReset)
    );
    eventually("nothing is lent any more", || {
        pipes
            .iter()
            .all(|(carrier, before)| pipe_ends(carrier) == *before)
    });
}
