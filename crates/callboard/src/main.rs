//! The program `callboard`. All code is in the library, where tests can use it.

use std::process::ExitCode;

/// Memory allocator of the program. It returns memory to the system after peaks (large pages,
/// imports, password checks), which the allocator of the C library would keep. See
/// docs/decisions/0050-allocator.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match callboard::main() {
        Ok(code) => code,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the error message of the command")]
            {
                eprintln!("callboard: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
