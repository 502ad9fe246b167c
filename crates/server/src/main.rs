//! The program `callboard`. Everything is in the library, so that tests can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    match server::main() {
        Ok(code) => code,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the last word to whoever started it")]
            {
                eprintln!("callboard: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
