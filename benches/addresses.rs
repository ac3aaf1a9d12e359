//! What it costs to find an address among 100,000 networks: `cargo bench --bench addresses`.
//!
//! Networks of the sizes that block lists have, made by chance, as v4 and as v6. Addresses are asked for in any order, half of them
//! from inside a network. A figure is the mean of the best of several rounds; the allocator is the one that ships.
//!
//! `cargo bench --bench addresses -- 20000` asks 20,000 times for v4 and tells nothing, for whoever counts instructions.

#![expect(clippy::disallowed_methods, reason = "no test pauses the time of a measurement")]

use std::hint::black_box;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use evenkeel::access::Networks;
use ipnet::IpNet;

const NETWORKS: usize = 100_000;
const ASKED: usize = 200_000;
const ROUNDS: usize = 15;
/// What a lookup may take, in nanoseconds, what it may take to make the structure, and how large that may be.
const MOST: f64 = 200.0;
const BUILD: Duration = Duration::from_millis(200);
const BYTES: usize = 16 << 20;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if let [asked] = numbers[..] {
        Side::new(Family::V4, asked).ask();
        return;
    }
    say("| family | networks | ns for a lookup | to make it | bytes |");
    say("|--|--:|--:|--:|--:|");
    for family in [Family::V4, Family::V6] {
        let side = Side::new(family, ASKED);
        let best = (0..ROUNDS).map(|_| side.ask()).min().unwrap_or_default();
        let mean = best.as_nanos() as f64 / ASKED as f64;
        let (build, bytes) = (side.build, side.networks.bytes());
        say(&format!("| {family:?} | {NETWORKS} | {mean:.0} | {build:.1?} | {bytes} |"));
        if mean > MOST || build > BUILD || bytes > BYTES {
            say(&format!("SHORT: at most {MOST} ns, {BUILD:?} and {BYTES} bytes are asked"));
        }
    }
}

fn say(line: &str) {
    // Whoever has closed our output does not want to read on.
    _ = writeln!(std::io::stdout(), "{line}");
}

#[derive(Clone, Copy, Debug)]
enum Family {
    V4,
    V6,
}

/// Numbers by chance, the same in each run (SplitMix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn address(&mut self, family: Family) -> IpAddr {
        match family {
            Family::V4 => Ipv4Addr::from_bits((self.next() >> 32) as u32).into(),
            // 2000::/3, as all that is given out; close together as allocations are.
            Family::V6 => {
                let (high, low) =
                    (0x2000_0000_0000_0000 | (self.next() >> 3 & 0x0fff_ffff_ffff), self.next());
                Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)).into()
            }
        }
    }

    /// Mostly single addresses, or /64, and the rest wider.
    fn length(&mut self, family: Family) -> u8 {
        let wider = (self.next() % 9) as u8;
        let is_whole = self.next() % 2 == 0;
        match (family, is_whole) {
            (Family::V4, true) => 32,
            (Family::V4, false) => 32 - wider,
            (Family::V6, true) => 64,
            (Family::V6, false) => 64 - 2 * wider,
        }
    }
}

/// One family's networks, and addresses to ask for.
struct Side {
    networks: Networks,
    asked: Vec<IpAddr>,
    build: Duration,
}

impl Side {
    fn new(family: Family, asked: usize) -> Side {
        let mut chance = Chance(1);
        let nets: Vec<IpNet> = (0..NETWORKS)
            .map(|_| {
                let (address, length) = (chance.address(family), chance.length(family));
                IpNet::new(address, length).expect("a length that fits").trunc()
            })
            .collect();
        let (allow, deny) = nets.split_at(NETWORKS / 4);
        let begun = Instant::now();
        let networks = Networks::new(allow, deny);
        let build = begun.elapsed();
        let inside = |chance: &mut Chance| nets[chance.next() as usize % nets.len()].network();
        let address = |number: usize| {
            if number % 2 == 0 { inside(&mut chance) } else { chance.address(family) }
        };
        Side { networks, asked: (0..asked).map(address).collect(), build }
    }

    /// Asks once for each address.
    fn ask(&self) -> Duration {
        let begun = Instant::now();
        for address in &self.asked {
            black_box(self.networks.verdict(*address));
        }
        begun.elapsed()
    }
}
