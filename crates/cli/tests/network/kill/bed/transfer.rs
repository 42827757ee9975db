//! A bulk transfer in the lab.

use std::process::{Child, Stdio};

use super::{A, B, Bed};

/// Where the receiver listens, the same at each start.
const LISTEN: &str = "1-ff00:0:111,10.0.2.1:32100";

/// A sender and a receiver that run; both are killed when this is dropped.
pub struct Transfer {
    pub send: Child,
    receive: Child,
}

impl Transfer {
    pub fn start(bed: &Bed) -> Self {
        Self {
            receive: receive(bed),
            send: send(bed),
        }
    }

    pub fn receiver(&self) -> &Child {
        &self.receive
    }

    /// Sends the file again, after the sender has ended.
    pub fn send_again(&mut self, bed: &Bed) {
        self.send = send(bed);
    }

    /// Kills the receiver, and starts it again.
    pub fn restart_receiver(&mut self, bed: &Bed) {
        end(&mut self.receive);
        self.receive = receive(bed);
    }

    /// Waits until the sender has ended, by itself and with success, and compares the files.
    pub fn finish(mut self, bed: &Bed) {
        let status = self.send.wait().unwrap();
        assert!(status.success(), "the sender ended with {status}");
        end(&mut self.receive);
        bed.compare();
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        end(&mut self.send);
        end(&mut self.receive);
    }
}

/// Ends a process that may have ended.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Starts a receiver. It continues what an earlier one began.
fn receive(bed: &Bed) -> Child {
    let into = bed.path("into");
    let args = ["receive", "-o", &into, "--listen", LISTEN, "--allow-any"];
    let mut command = bed.inside(B, &args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Starts a sender, which waits for a receiver that is not there yet.
fn send(bed: &Bed) -> Child {
    let data = bed.path("data");
    let mut command = bed.inside(A, &["send", &data, LISTEN, "--any-server", "--json"]);
    command.stdout(Stdio::null());
    command.spawn().unwrap()
}
