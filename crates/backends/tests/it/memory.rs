//! A program is talked to for days, and one run may take as long. What hears it forgets what is over, and
//! does not keep what is said, whatever that is.
//!
//! The law, for every agent: what is said over and over, each time with ids of its own, makes it remember no
//! more. It is played in two ways: each time in a run of its own, and all of it in one run that does not end.

mod driver;
mod programs;

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

use self::driver::Driver;
use self::programs::{Program, Recording};
use crate::mishaps::{Mishap, mishap};

/// By how many letters what is remembered may differ between two rounds, which are alike but for numbers.
const SLACK: usize = 100;

/// After so many runs all that is bounded is full.
const RUNS: usize = 40;
/// ... and after the first so many turns in one run: what is never ended is given up, and then forgotten.
const TURNS: [usize; 2] = [210, 280];

/// How many lines of a long turn are enough, where much goes wrong.
const SOME: usize = 300;

/// Where a recording or what became of it ends the program, there is nothing to compare.
fn sizes_between_runs(
    program: &Program,
    recording: &Recording,
    answers: usize,
) -> Option<[usize; 2]> {
    let mut driver = Driver::new(program, recording.backend.as_ref()(), answers);
    let mut sizes = [0; 2];
    for (idx, size) in sizes.iter_mut().enumerate() {
        for round in idx * RUNS..(idx + 1) * RUNS {
            driver.play(&recording.said, round);
            driver.stop();
        }
        *size = driver.size();
    }
    (!driver.is_over()).then_some(sizes)
}

fn sizes_within_a_run(program: &Program, said: &[String], answers: usize) -> Option<[usize; 2]> {
    let mut driver = Driver::new(program, program.backend(), answers);
    let mut sizes = [0; 2];
    for round in 0..TURNS[1] {
        driver.play(said, round);
        if let Some(idx) = TURNS.iter().position(|it| *it == round + 1) {
            sizes[idx] = driver.size();
        }
    }
    (!driver.is_over() && driver.runs() == 1).then_some(sizes)
}

/// All that was recorded and does not end the run. Of pieces that follow each other two are enough.
fn one_long_turn(program: &Program) -> Vec<String> {
    let is_piece = |line: &String| line.contains("delta\"") || line.contains("Delta\"");
    let said = program.recordings.iter().map(|it| {
        let mut lines = it.said.clone();
        lines.retain(|it| !(program.ends_run)(it));
        let mut pieces = 0;
        lines.retain(|it| {
            pieces = if is_piece(it) { pieces + 1 } else { 0 };
            pieces < 3
        });
        lines
    });
    let goes_on = |said: &Vec<String>| {
        let mut driver = Driver::new(program, program.backend(), usize::MAX);
        driver.play(said, 0);
        driver.is_running() && !driver.is_over()
    };
    said.filter(goes_on).flatten().collect()
}

#[track_caller]
fn check(what: &str, [before, after]: [usize; 2]) {
    assert!(after <= before + SLACK, "{what}: {before}, then {after}");
}

/// As it was recorded.
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
    let said = one_long_turn(program);
    let sizes = sizes_within_a_run(program, &said, usize::MAX);
    check("one long turn", sizes.expect("a run that does not end"));
}

/// As it never was: a few lines of a recording went wrong, or many of a long turn; and the program may at some
/// time stop answering what it is told.
fn check_mishaps(program: &Program) {
    let odd = || prop::sample::select(program.odd.to_vec()).prop_map(str::to_owned);
    let answers = || prop_oneof![Just(usize::MAX), 1..8usize];
    if program.has_many_runs {
        let few = prop::collection::vec(mishap(400, odd()), 1..8);
        let compared = Cell::new(0);
        let law = |(which, mishaps, answers): (Index, Vec<Mishap>, usize)| {
            let recording = which.get(&program.recordings).with(&mishaps);
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
    let many = prop::collection::vec(mishap(SOME, odd()), SOME / 40..SOME / 10);
    let law = |(from, mishaps, answers): (Index, Vec<Mishap>, usize)| {
        let lines = turn.iter().cycle().skip(from.index(turn.len()));
        let said = after(&mishaps, &lines.take(SOME.min(turn.len())).cloned().collect::<Vec<_>>());
        if let Some(sizes) = sizes_within_a_run(program, &said, answers) {
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
    fn with(&self, mishaps: &[Mishap]) -> Self {
        let (name, backend) = (self.name.clone(), Arc::clone(&self.backend));
        Self { name, said: after(mishaps, &self.said), backend }
    }
}

/// What is left of it.
fn after(mishaps: &[Mishap], said: &[String]) -> Vec<String> {
    let mut said = said.to_vec();
    mishaps.iter().for_each(|it| it.happen_to(&mut said));
    said
}

macro_rules! law_for {
    ($($program:ident),*) => {$(
        mod $program {
            #[test]
            fn forgets_what_is_over() {
                super::check_recordings(&super::programs::$program());
            }

            #[test]
            fn forgets_what_never_ends() {
                super::check_mishaps(&super::programs::$program());
            }
        }
    )*};
}

law_for!(claude, codex, codex_exec, pi, openai);
