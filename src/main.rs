//! The `evenkeel` command.

use std::process::ExitCode;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A huge page takes 2 MiB as soon as one byte of it is used: with them no bound of memory is one. A kernel that knows none has none.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // Whoever has rotated the log tells all processes of the service. One that has no log yet, or is a command, is not to end of that.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::default());
    evenkeel::cli::main()
}
