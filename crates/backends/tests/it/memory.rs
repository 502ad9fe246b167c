//! Bounded memory of backends: a session may last for days, and so may one run.
//!
//! The law for every agent: repeating the same lines with new ids does not increase the size of the
//! backend's state. It is checked with a run for each repetition, and with all repetitions in one
//! run that does not end.

mod driver;
mod programs;

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

use self::driver::Driver;
use self::programs::{Program, Recording};
use crate::corruptions::{Corruption, corruption};

/// Allowed growth of the state between two rounds, in characters.
const SLACK: usize = 100;

/// Number of runs after which all bounded collections are full.
const RUNS: usize = 40;
/// Numbers of turns in one run after which sizes are compared. After the first, all bounded
/// collections are full, and items that never end have been given up.
const TURNS: [usize; 2] = [210, 280];

/// Number of lines of a long turn with corruptions.
const SOME: usize = 300;

/// Returns the sizes of the state after many runs and after twice as many, or `None` if the program
/// was ended.
fn sizes_between_runs(
    program: &Program,
    recording: &Recording,
    answers: usize,
) -> Option<[usize; 2]> {
    let mut driver = Driver::new(program, recording.backend.as_ref()(), answers);
    let mut sizes = [0; 2];
    for (idx, size) in sizes.iter_mut().enumerate() {
        for round in idx * RUNS..(idx + 1) * RUNS {
            driver.play(&recording.output, round);
            driver.stop();
        }
        *size = driver.size();
    }
    (!driver.is_over()).then_some(sizes)
}

fn sizes_within_a_run(program: &Program, output: &[String], answers: usize) -> Option<[usize; 2]> {
    let mut driver = Driver::new(program, program.backend(), answers);
    let mut sizes = [0; 2];
    for round in 0..TURNS[1] {
        driver.play(output, round);
        if let Some(idx) = TURNS.iter().position(|it| *it == round + 1) {
            sizes[idx] = driver.size();
        }
    }
    (!driver.is_over() && driver.runs() == 1).then_some(sizes)
}

/// Returns all recorded lines that do not end the run, with at most two consecutive deltas.
fn one_long_turn(program: &Program) -> Vec<String> {
    let is_piece = |line: &String| line.contains("delta\"") || line.contains("Delta\"");
    let output = program.recordings.iter().map(|it| {
        let mut lines = it.output.clone();
        lines.retain(|it| !(program.ends_run)(it));
        let mut pieces = 0;
        lines.retain(|it| {
            pieces = if is_piece(it) { pieces + 1 } else { 0 };
            pieces < 3
        });
        lines
    });
    let goes_on = |output: &Vec<String>| {
        let mut driver = Driver::new(program, program.backend(), usize::MAX);
        driver.play(output, 0);
        driver.is_running() && !driver.is_over()
    };
    output.filter(goes_on).flatten().collect()
}

#[track_caller]
fn check(what: &str, [before, after]: [usize; 2]) {
    assert!(after <= before + SLACK, "{what}: {before}, then {after}");
}

/// Checks the law for the unchanged recordings.
fn check_recordings(program: &Program) {
    let recordings = program.recordings.iter().filter(|_| program.has_many_runs);
    let mut compared = 0;
    for recording in recordings {
        if let Some(sizes) = sizes_between_runs(program, recording, usize::MAX) {
            check(&recording.name, sizes);
            compared += 1;
        }
    }
    let wanted = if program.has_many_runs { program.recordings.len() * 4 / 5 } else { 0 };
    assert!(compared >= wanted, "{compared} of {}", program.recordings.len());
    let output = one_long_turn(program);
    let sizes = sizes_within_a_run(program, &output, usize::MAX);
    check("one long turn", sizes.expect("a run that does not end"));
}

/// Checks the law for recordings with a few corruptions and a long turn with many, and for programs
/// that stop answering requests at some time.
fn check_mishaps(program: &Program) {
    let odd = || prop::sample::select(program.odd.to_vec()).prop_map(str::to_owned);
    let answers = || prop_oneof![Just(usize::MAX), 1..8usize];
    if program.has_many_runs {
        let few = prop::collection::vec(corruption(400, odd()), 1..8);
        let compared = Cell::new(0);
        let law = |(which, corruptions, answers): (Index, Vec<Corruption>, usize)| {
            let recording = which.get(&program.recordings).with(&corruptions);
            if let Some(sizes) = sizes_between_runs(program, &recording, answers) {
                check(&recording.name, sizes);
                compared.set(compared.get() + 1);
            }
            Ok(())
        };
        runner(40).run(&(any::<Index>(), few, answers()), law).unwrap();
        assert!(compared.get() > 12, "{compared:?}");
    }
    let turn = one_long_turn(program);
    let many = prop::collection::vec(corruption(SOME, odd()), SOME / 40..SOME / 10);
    let law = |(from, corruptions, answers): (Index, Vec<Corruption>, usize)| {
        let lines = turn.iter().cycle().skip(from.index(turn.len()));
        let output =
            after(&corruptions, &lines.take(SOME.min(turn.len())).cloned().collect::<Vec<_>>());
        if let Some(sizes) = sizes_within_a_run(program, &output, answers) {
            check("one long turn", sizes);
        }
        Ok(())
    };
    runner(4).run(&(any::<Index>(), many, answers()), law).unwrap();
}

fn runner(cases: u32) -> TestRunner {
    let config =
        Config { failure_persistence: None, max_shrink_iters: 0, ..Config::with_cases(cases) };
    TestRunner::new(config)
}

impl Recording {
    fn with(&self, corruptions: &[Corruption]) -> Self {
        let (name, backend) = (self.name.clone(), Arc::clone(&self.backend));
        Self { name, output: after(corruptions, &self.output), backend }
    }
}

/// Returns the lines after the corruptions.
fn after(corruptions: &[Corruption], output: &[String]) -> Vec<String> {
    let mut output = output.to_vec();
    corruptions.iter().for_each(|it| it.happen_to(&mut output));
    output
}

macro_rules! law_for {
    ($($program:ident),*) => {$(
        mod $program {
            #[test]
            fn recordings_leave_memory_bounded() {
                super::check_recordings(&super::programs::$program());
            }

            #[test]
            fn mishaps_leave_memory_bounded() {
                super::check_mishaps(&super::programs::$program());
            }
        }
    )*};
}

law_for!(claude, codex, codex_exec, pi, openai);
