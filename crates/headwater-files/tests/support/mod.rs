//! What a piece of work takes, for tests of hostile input in several crates. Linux only.

const MOST_MEMORY: u64 = 256 << 20;
const MOST_SECONDS: u64 = 10;

/// Kilobytes of a line of /proc/self/status, as bytes.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Seconds of processor time of this process; a tick is a hundredth.
fn processor_seconds() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) / 100
}

/// Does something and checks that it takes at most 256 MB and ten seconds of processor time.
pub(crate) fn within_limits<T>(what: &str, act: impl FnOnce() -> T) -> T {
    // Sets the largest use of memory to the present one.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let (memory, seconds) = (status("VmRSS"), processor_seconds());
    let result = act();
    let (memory, seconds) = (status("VmHWM").saturating_sub(memory), processor_seconds() - seconds);
    assert!(memory <= MOST_MEMORY && seconds <= MOST_SECONDS, "{what}: {} MB, {seconds} s", memory >> 20);
    result
}
