//! What the process uses of the system. Whatever can't be found out is left out.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// What a process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemUse {
    /// Time on processors.
    pub cpu: Duration,
    /// Bytes of memory that are there for it alone or shared.
    pub resident: Option<u64>,
    /// Open descriptors.
    pub descriptors: Option<u64>,
    /// How many it may have.
    pub descriptors_most: Option<u64>,
}

impl SystemUse {
    /// Asks the system, which may take a while where it counts descriptors one by one.
    #[must_use]
    pub fn read() -> SystemUse {
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = Duration::from_secs(u64::try_from(spent.tv_sec).unwrap_or(0));
        SystemUse {
            cpu: seconds + Duration::from_nanos(u64::try_from(spent.tv_nsec).unwrap_or(0)),
            resident: resident(),
            descriptors: descriptors(),
            descriptors_most: getrlimit(Resource::Nofile).current,
        }
    }
}

fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The size of the folder is how many there are, since Linux 6.2.
fn descriptors() -> Option<u64> {
    const FOLDER: &str = "/proc/self/fd";
    let size = std::fs::metadata(FOLDER).ok()?.len();
    if size > 0 { Some(size) } else { Some(std::fs::read_dir(FOLDER).ok()?.count() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_something() {
        let used = SystemUse::read();
        assert!(used.resident.is_some_and(|bytes| bytes > 100_000), "{used:?}");
        assert!(used.descriptors.is_some_and(|count| count >= 3), "{used:?}");
        assert!(used.cpu > Duration::ZERO);
    }
}
