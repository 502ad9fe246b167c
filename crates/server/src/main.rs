//! The program `callboard`. Everything is in the library, so that tests can use it.

use std::process::ExitCode;

/// Returns memory to the system after peaks, where that of the C library keeps what large pages, imports and
/// password checks have needed. See docs/decisions/050-allocator.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
