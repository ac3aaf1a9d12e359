//! The `evenkeel` command.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A huge page takes 2 MiB as soon as one byte of it is used: with them no bound of memory is one. A kernel that knows none has none.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    evenkeel::cli::main()
}
