//! What the operating system knows about this process.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Whether `poll(2)` finds the descriptor readable right now.
pub fn readable(fd: i32) -> bool {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, no wait.
    let answer = unsafe { libc::poll(&mut poll, 1, 0) };
    assert!(answer >= 0, "poll(2) failed");
    assert_eq!(poll.revents & (libc::POLLNVAL | libc::POLLERR), 0, "a bad descriptor: {fd}");
    poll.revents & libc::POLLIN != 0
}

/// Processor time that the calling thread has used.
pub fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident memory of this process.
pub fn rss_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// The kernel's number of the calling thread.
pub fn tid() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::gettid() }
}

/// Number and name of each thread of this process.
pub fn tasks() -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        // A thread may end while we look.
        if let Ok(name) = std::fs::read_to_string(entry.path().join("comm")) {
            let tid = entry.file_name().to_str().unwrap().parse().unwrap();
            found.push((tid, name.trim_end().to_string()));
        }
    }
    found
}

/// The number of the one thread that has this name.
pub fn task_named(name: &str) -> Option<i32> {
    tasks().into_iter().find(|(_, found)| found == name).map(|(tid, _)| tid)
}

/// Whether a thread of this process sleeps (in a system call, most likely a wait) right now.
pub fn asleep(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    // The state follows the name, which is in parentheses.
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}

/// Runs the body of the test called `name` (its full path in this test binary) in a process of
/// its own: for what is measured or changed process-wide, and for what might hang.
pub fn alone(name: &str, body: impl FnOnce()) {
    const MARK: &str = "SHARDWHEEL_TEST_ALONE";
    if std::env::var_os(MARK).is_some_and(|mark| mark == name) {
        return body();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--include-ignored", "--test-threads=1", "--nocapture"])
        .env(MARK, name)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id() as i32;
    let (over, ended) = mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        let late = ended.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            // SAFETY: our own child, which is not waited for before `over` is dropped.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        late
    });
    let output = child.wait_with_output().unwrap();
    drop(over);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!watchdog.join().unwrap(), "{name} alone hangs:\n{text}\n{errors}");
    assert!(output.status.success(), "{name} alone: {}\n{text}\n{errors}", output.status);
    assert!(text.contains("1 passed"), "no test is called {name}:\n{text}");
}

/// Far more than any of them needs; the longest is the one of 10^8 timers.
const LIMIT: Duration = Duration::from_secs(300);
