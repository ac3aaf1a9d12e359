//! Steps on what threads share, for explorers: at each the thread that runs passes the baton to another one,
//! chosen by a seed. Nothing happens outside an exploration. Only tests have it.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Who may run, and by what chance the next one is chosen.
struct Stage {
    state: Mutex<Turn>,
    passed: Condvar,
}

struct Turn {
    current: usize,
    running: Vec<bool>,
    chance: u64,
}

impl Turn {
    /// A number below `end`, which is not 0: the next of the generator SplitMix64.
    fn below(&mut self, end: usize) -> usize {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.chance;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((u128::from(word ^ (word >> 31)) * end as u128) >> 64).unwrap_or(0)
    }
}

thread_local! {
    static ACTOR: RefCell<Option<(Arc<Stage>, usize)>> = const { RefCell::new(None) };
    /// Critical sections that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Between two steps: somebody else may go on. Does nothing outside an exploration.
pub(crate) fn point() {
    if DEPTH.get() == 0 {
        let actor = ACTOR.with_borrow(Clone::clone);
        if let Some((stage, me)) = actor {
            stage.pass(me);
        }
    }
}

/// A critical section begins.
pub(crate) fn enter() {
    DEPTH.set(DEPTH.get() + 1);
}

/// A critical section has ended.
pub(crate) fn leave() {
    DEPTH.set(DEPTH.get() - 1);
}

impl Stage {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn choose(&self, turn: &mut Turn) {
        let running: Vec<usize> = (0..turn.running.len()).filter(|&actor| turn.running[actor]).collect();
        if let Some(&next) = running.get(turn.below(running.len().max(1))) {
            turn.current = next;
        }
        self.passed.notify_all();
    }

    fn wait(&self, me: usize, mut turn: MutexGuard<'_, Turn>) {
        while turn.current != me {
            turn = self.passed.wait(turn).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn pass(&self, me: usize) {
        let mut turn = self.turn();
        self.choose(&mut turn);
        self.wait(me, turn);
    }
}

/// Says that an actor has ended, also when it panics.
struct Exit(Arc<Stage>, usize);

impl Drop for Exit {
    fn drop(&mut self) {
        ACTOR.set(None);
        let mut turn = self.0.turn();
        turn.running[self.1] = false;
        self.0.choose(&mut turn);
    }
}

/// Runs the actors in the interleaving of this seed. Gives what each has left.
pub(crate) fn play<T: Send>(seed: u64, actors: Vec<Box<dyn FnOnce() -> T + Send + '_>>) -> Vec<T> {
    let turn = Turn { current: 0, running: vec![true; actors.len()], chance: seed };
    let stage = Arc::new(Stage { state: Mutex::new(turn), passed: Condvar::new() });
    std::thread::scope(|scope| {
        let threads: Vec<_> = actors
            .into_iter()
            .enumerate()
            .map(|(me, actor)| {
                let stage = Arc::clone(&stage);
                scope.spawn(move || {
                    let _exit = Exit(Arc::clone(&stage), me);
                    stage.wait(me, stage.turn());
                    ACTOR.set(Some((stage, me)));
                    actor()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no actor panics")).collect()
    })
}
