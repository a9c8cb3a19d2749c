//! Signals. A file that grows beyond the limit of the system is an error of the write, not the end of the process.
//! Ctrl-C: unfinished files are removed and the process ends; a loop that can save its state is asked to do so first.

use std::io::Write;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static POLLED: AtomicBool = AtomicBool::new(false);
static RESUMABLE: AtomicBool = AtomicBool::new(false);

pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a handler of ours the default one ends the process.
        let _ = ctrlc::set_handler(|| {
            let again = REQUESTED.swap(true, Ordering::SeqCst);
            if again || !POLLED.load(Ordering::SeqCst) {
                headwater_files::discard_unfinished();
                let kept = match RESUMABLE.load(Ordering::SeqCst) {
                    true => "; what is finished is kept, and the same command continues from there",
                    false => "",
                };
                // The end of the terminal is no reason to stay.
                let _ = writeln!(std::io::stderr(), "\ninterrupted{kept}");
                std::process::exit(130);
            }
        });
        #[cfg(unix)]
        {
            // Whether it came is told by the write that failed.
            let seen = std::sync::Arc::new(AtomicBool::new(false));
            let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, seen);
        }
    });
}

/// Says that the command continues where it was interrupted when it is given again.
pub(crate) fn resumable() {
    RESUMABLE.store(true, Ordering::SeqCst);
}

/// While this lives, an interrupt sets [`requested`] instead of ending the process; a second one ends it.
pub(crate) struct Polling;

impl Polling {
    pub(crate) fn new() -> Self {
        POLLED.store(true, Ordering::SeqCst);
        Polling
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        POLLED.store(false, Ordering::SeqCst);
    }
}

/// Whether the user asked to stop.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
