//! How far a run is: a bar on a terminal, a line now and then elsewhere.
use crate::output::say;
use dosimeter_study::TaskId;
use dosimeter_study::plan::{Plan, Task};
use dosimeter_study::run::Watch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a line is written when stderr is no terminal.
const EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct State {
    done: usize,
    reused: usize,
    /// Estimated seconds of what was done here, and of what is still to do.
    worked: f64,
    left: f64,
    spoke: Instant,
    /// The task whose records are counted, and since when.
    counted: Option<(TaskId, Instant)>,
}

/// Set by the first Ctrl-C; a second one ends the process.
#[expect(clippy::exit, reason = "asked to twice")]
pub(crate) fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    // Without a handler Ctrl-C ends the process at once; finished tasks are kept then too.
    let _ = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        say("stopping; finished tasks are kept (Ctrl-C again to stop at once)");
    });
    stop
}

/// Progress of one run.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    tasks: usize,
    start: Instant,
    state: Mutex<State>,
    stop: Arc<AtomicBool>,
}
impl Progress {
    /// Shows progress of `plan` unless `quiet`, and stops on the first Ctrl-C (a second one ends the process).
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let tasks = plan.tasks().count();
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(
                Some(tasks as u64),
                ProgressDrawTarget::stderr_with_hz(8),
            );
            if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {pos}/{len} tasks {msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        let stop = stop_on_interrupt();
        let now = Instant::now();
        Self {
            bar,
            quiet,
            tasks,
            start: now,
            state: Mutex::new(State {
                done: 0,
                reused: 0,
                worked: 0.0,
                left: plan.estimated_seconds(),
                spoke: now,
                counted: None,
            }),
            stop,
        }
    }
    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.quiet && state.done > 0 {
            let reused = if state.reused > 0 {
                format!(", {} of them from an earlier run", state.reused)
            } else {
                String::new()
            };
            let took = words(self.start.elapsed().as_secs_f64());
            say(&format!("{} of {} tasks{reused}, {took}", state.done, self.tasks));
        }
    }
}
impl Watch for Progress {
    fn done(&self, task: &Task, reused: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += 1;
        state.left -= task.estimated_seconds;
        if reused {
            state.reused += 1;
        } else {
            state.worked += task.estimated_seconds;
        }
        let elapsed = self.start.elapsed().as_secs_f64();
        // What is left, at the pace so far: estimates need only be right relative to each other.
        let message = if state.worked > 0.0 {
            let made = (state.done - state.reused) as f64;
            let left = state.left.max(0.0) * elapsed / state.worked;
            format!("{:.1}/s, about {} left", made / elapsed.max(1e-3), words(left))
        } else {
            String::new()
        };
        if let Some(bar) = &self.bar {
            bar.set_position(state.done as u64);
            bar.set_message(message);
        } else if !self.quiet && state.spoke.elapsed() >= EVERY {
            state.spoke = Instant::now();
            say(&format!("{}/{} tasks {message}", state.done, self.tasks));
        }
    }
    fn records(&self, task: &Task, done: usize, of: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let start = match &state.counted {
            Some((id, start)) if *id == task.id => *start,
            _ => {
                state.counted = Some((task.id.clone(), now));
                now
            }
        };
        let seconds = (now - start).as_secs_f64();
        let mut message = format!("{}: {done} of {of} records", task.stage.name());
        if done > 0 && seconds > 0.0 {
            let rate = done as f64 / seconds;
            let left = words((of - done) as f64 / rate);
            message.push_str(&format!(", {rate:.1}/s, about {left} left of this task"));
        }
        if let Some(bar) = &self.bar {
            bar.set_message(message);
        } else if !self.quiet && state.spoke.elapsed() >= EVERY {
            state.spoke = now;
            say(&format!("{}/{} tasks {message}", state.done, self.tasks));
        }
    }
    fn warn(&self, text: &str) {
        let line = format!("warning: {text}");
        match &self.bar {
            Some(bar) => bar.suspend(|| say(&line)),
            None => say(&line),
        }
    }
    fn stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Seconds as people say them.
pub(crate) fn words(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min", (whole + 30) / 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}
