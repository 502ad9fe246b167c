//! Fuzz tests: the import of any text ends, and its result is well formed.

use backends::ProgramKind;
use backends::import::{ConversationFile, SideFile, Tail, detect, read};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::files::File;
use super::laws::check;

/// Damage to a line.
#[derive(Debug, Clone)]
enum Damage {
    Drop,
    Repeat,
    Swap,
    Cut(Index),
    Put(String),
}

fn damage() -> impl Strategy<Value = Damage> {
    let put =
        select(vec!["{}", "null", "[1]", "{\"type\":7}", "\u{0}", "{\"type\":\"user\"}", "]"]);
    prop_oneof![
        Just(Damage::Drop),
        Just(Damage::Repeat),
        Just(Damage::Swap),
        any::<Index>().prop_map(Damage::Cut),
        put.prop_map(|it| Damage::Put(it.to_owned())),
    ]
}

fn damaged(text: &str, damages: &[(Index, Damage)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (at, damage) in damages {
        if lines.is_empty() {
            break;
        }
        let at = at.index(lines.len());
        match damage {
            Damage::Drop => drop(lines.remove(at)),
            Damage::Repeat => lines.insert(at, lines[at].clone()),
            Damage::Swap => lines.swap(0, at),
            Damage::Cut(cut) => {
                let line = &mut lines[at];
                let cut = cut.index(line.len() + 1);
                let cut = (0..=cut).rev().find(|it| line.is_char_boundary(*it)).unwrap();
                line.truncate(cut);
            }
            Damage::Put(put) => lines[at].clone_from(put),
        }
    }
    lines.join("\n") + "\n"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_gives_a_well_formed_import(
        file in any::<Index>(),
        as_kind in select(ProgramKind::ALL.to_vec()),
        is_own_kind in prop::bool::weighted(0.9),
        damages in prop::collection::vec((any::<Index>(), damage()), 1..8),
    ) {
        let files = FILES.with(|it| it.clone());
        let file = file.get(&files);
        let text = damaged(&file.text, &damages);
        let kind = if is_own_kind { file.kind } else { as_kind };
        let sides: Vec<SideFile> = file
            .side_files
            .iter()
            .map(|it| SideFile { name: it.name.clone(), text: damaged(&it.text, &damages) })
            .collect();
        let kept = ConversationFile { kind, text: &text, side_files: &sides, agent: "agent" };
        for tail in [Tail::Open, Tail::LeaveOut, Tail::Close] {
            let imported = read(&kept, tail);
            if let Some(imported) = imported.filter(|_| tail != Tail::Open) {
                check(&imported);
            }
        }
    }

    #[test]
    fn arbitrary_text_is_not_imported(name in ".{0,20}", text in "[\\x20-\\x7e\\n{}\"]{0,200}") {
        detect(&name, &text);
        for kind in ProgramKind::ALL {
            let kept = ConversationFile { kind, text: &text, side_files: &[], agent: "agent" };
            prop_assert!(read(&kept, Tail::Close).is_none());
        }
    }
}

thread_local! {
    static FILES: std::rc::Rc<Vec<File>> = std::rc::Rc::new(File::all());
}
