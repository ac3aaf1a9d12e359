//! The terminal: taken, and given back as it was, however it ends.

use std::io::{self, Stdout, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::{Position, Rect};
use ratatui::{Frame, Terminal};

/// Whether the terminal is ours, so that it is given back once.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours.
pub(super) struct TopScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl TopScreen {
    /// Takes the terminal. A panic gives it back before it says what it is.
    pub(super) fn take() -> io::Result<TopScreen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        let screen = TopScreen { terminal };
        IS_TAKEN.store(true, Ordering::Release);
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        Ok(screen)
    }

    /// Draws what has changed.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Has the next drawing draw all of it.
    pub(super) fn redraw(&mut self) -> io::Result<()> {
        // Its `clear` asks the terminal where the cursor is, and the answer would be taken for keys.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }
}

impl Drop for TopScreen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Nobody can be told that it failed: whoever could see it is gone.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::AcqRel) {
        let _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
