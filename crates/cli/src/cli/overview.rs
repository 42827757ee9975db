//! What `hawser` alone shows.

/// What people come for, each with a command that begins with it.
pub const OVERVIEW: &str = "\
hawser moves data over every useful path of a SCION network at once.

  Download a torrent         hawser get FILE.torrent --peer ADDR
  Send a file to a host      hawser receive    (there; it says what to run here)
  Run a program over SCION   hawser run -- COMMAND
  Try a network right here   hawser demo
  Find out what is wrong     hawser doctor

All commands: hawser help. One of them: hawser help COMMAND.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_in_it_exists_and_it_fits() {
        let program = Cli::command();
        let commands = OVERVIEW
            .lines()
            .filter_map(|line| line.split_once("  hawser "));
        let mut count = 0;
        for (_, command) in commands {
            let name = command.split(' ').next().unwrap();
            assert!(program.find_subcommand(name).is_some(), "{name}");
            count += 1;
        }
        assert_eq!(count, 5);
        assert!(OVERVIEW.lines().all(|line| line.len() <= 80));
    }
}
