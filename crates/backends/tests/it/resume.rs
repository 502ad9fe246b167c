//! Ids of conversations come from logs, which may be forged, so only UUIDs reach a command line.

use backends::{Launch, Program, ResumeId, claude, codex, pi};
use proptest::prelude::*;

const ID: &str = "0199e09f-40e5-7493-a575-de63127bb063";

/// Texts that a forged file may have instead of an id.
const HOSTILE: [&str; 16] = [
    "",
    "-c",
    "-",
    "--",
    "--settings={\"apiKeyHelper\":\"id\"}",
    "--dangerously-skip-permissions",
    "--debug-file=/tmp/x",
    "../../etc/passwd",
    "/etc/passwd",
    "session.jsonl",
    "0199e09f",
    "0199e09f-40e5-7493-a575-de63127bb063\n",
    " 0199e09f-40e5-7493-a575-de63127bb063",
    "0199e09f-40e5-7493-a575-de63127bb063;id",
    "0199e09f-40e5-7493-a575-de63127bb06\0",
    "-0199e09-40e5-7493-a575-de63127bb063",
];

/// Returns the command line of every program that can resume.
fn programs(launch: &Launch) -> Vec<Program> {
    let exec = codex::Settings { app_server: false, ..codex::Settings::default() };
    vec![
        claude::program(&claude::Settings::default(), launch),
        codex::program(&codex::Settings::default(), launch),
        codex::program(&exec, launch),
        pi::program(&pi::Settings::default(), launch),
    ]
}

fn is_uuid(text: &str) -> bool {
    let place = |(at, it): (usize, u8)| match at {
        8 | 13 | 18 | 23 => it == b'-',
        _ => it.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(place)
}

#[test]
fn hostile_ids_are_refused() {
    for id in HOSTILE {
        assert_eq!(ResumeId::parse(id), None, "{id:?}");
    }
    assert!(ResumeId::parse(ID).is_some() && ResumeId::parse(&ID.to_uppercase()).is_some());
}

/// One changed character makes an id invalid, unless the result is a UUID, too.
#[test]
fn an_id_with_a_single_invalid_character_is_refused() {
    for at in 0..ID.len() {
        for letter in (0..=0x7f_u8).map(char::from).chain(['é', '\u{a0}', '\u{202e}', '０']) {
            let changed = format!("{}{letter}{}", &ID[..at], &ID[at + 1..]);
            let parsed = ResumeId::parse(&changed);
            assert_eq!(parsed.is_some(), is_uuid(&changed), "{changed:?}");
        }
    }
}

#[test]
fn no_program_can_read_the_id_as_an_option() {
    let launch = Launch { resume: ResumeId::parse(ID), ..Launch::default() };
    let [claude, app_server, exec, pi] = programs(&launch).try_into().unwrap();
    assert!(claude.command.contains(&format!("--resume={ID}")));
    assert!(exec.command.ends_with(&["--".to_owned(), ID.to_owned(), "-".to_owned()]));
    assert!(pi.command.windows(2).any(|it| it == ["--session", ID]));
    assert!(!app_server.command.concat().contains(ID), "the id goes through stdin");
}

proptest! {
    #[test]
    fn only_uuids_are_ids(text in "\\PC{0,50}|[0-9a-f-]{30,40}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}") {
        prop_assert_eq!(ResumeId::parse(&text).is_some(), is_uuid(&text));
    }

    /// The workspace is passed only as the working directory of the process.
    #[test]
    fn the_workspace_is_in_no_argument_and_no_variable(name in "[^a]{1,20}") {
        let workspace = format!("aaaaaaaa{name}");
        for program in programs(&Launch { workspace: workspace.clone(), ..Launch::default() }) {
            let env = program.env.iter().flat_map(|(name, value)| [name, value]);
            prop_assert!(program.command.iter().chain(env).all(|it| !it.contains(&workspace)));
        }
    }
}
