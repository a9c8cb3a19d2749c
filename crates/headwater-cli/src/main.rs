//! The binary; everything is in the library, so that other installers can ship the same command.

fn main() {
    std::process::exit(headwater_cli::run(std::env::args_os()));
}
