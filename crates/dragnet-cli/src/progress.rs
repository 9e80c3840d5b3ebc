//! A line that shows how far a search has come, for whoever watches the terminal.

use std::io::{self, IsTerminal};

use dragnet::{Control, Progress};
use indicatif::{BinaryBytes, HumanCount, ProgressBar, ProgressStyle};

/// The line, on standard error if that is a terminal. It goes away when this does.
pub(crate) struct Line(Option<ProgressBar>);

impl Line {
    pub(crate) fn new() -> Self {
        Self(io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::new_spinner().with_style(style)
        }))
    }

    /// A control that keeps the line up to date.
    pub(crate) fn control(&self) -> Control {
        match self.0.clone() {
            Some(bar) => Control::default().on_progress(move |progress| {
                bar.set_message(describe(progress));
                bar.tick();
            }),
            None => Control::default(),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn describe(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64();
    let rate = progress.states as f64 / seconds.max(1e-6);
    format!(
        "{} states, {}/s, depth {}, frontier {}, {}, {seconds:.1} s",
        HumanCount(progress.states),
        HumanCount(rate as u64),
        HumanCount(progress.depth),
        HumanCount(progress.frontier),
        BinaryBytes(progress.memory_bytes),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_line_tells_states_rate_depth_frontier_memory_and_time() {
        let progress = Progress {
            states: 1_500_000,
            transitions: 4_000_000,
            depth: 23,
            frontier: 12_345,
            memory_bytes: 300 << 20,
            elapsed: Duration::from_millis(1_500),
        };
        assert_eq!(
            describe(&progress),
            "1,500,000 states, 1,000,000/s, depth 23, frontier 12,345, 300.00 MiB, 1.5 s"
        );
    }
}
