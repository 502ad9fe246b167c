//! The top-level modules of a crate depend on each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::tidy::{root, rust_files};

/// Crates whose top-level modules form no cycle.
const CRATES: [&str; 3] = ["callboard", "runtime", "web"];

#[test]
fn top_level_modules_have_no_cycles() {
    for name in CRATES {
        let uses = uses_of_modules(&root().join("crates").join(name).join("src"));
        assert!(uses.len() > 8, "too few modules found in {name}");
        for module in uses.keys() {
            assert!(!reached_from(module, &uses).contains(module), "{module} is in a cycle");
        }
    }
}

/// Returns the top-level modules of a crate, with the modules that each names as `crate::module`.
fn uses_of_modules(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files(src) {
        let inside = file.strip_prefix(src).unwrap();
        let is_test =
            inside.components().any(|it| it.as_os_str().to_string_lossy().contains("tests"));
        let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let module = first.trim_end_matches(".rs").to_owned();
        if is_test || ["lib", "main"].contains(&module.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code: Vec<&str> =
            text.lines().filter(|it| !it.trim_start().starts_with("//")).collect();
        let used = modules_in(&code.join(" ")).into_iter().filter(|it| *it != module);
        uses.entry(module.clone()).or_default().extend(used);
    }
    uses
}

/// Returns the names that follow `crate::` in code, also in a list such as `crate::{a, b::c}`.
fn modules_in(code: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String {
        text.trim().chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect()
    };
    let mut found = BTreeSet::new();
    for (at, pattern) in code.match_indices("crate::") {
        let rest = &code[at + pattern.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let mut depth = 1;
        let mut item = String::new();
        for letter in list.chars() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => (),
            }
            if depth == 0 || depth == 1 && letter == ',' {
                found.insert(name(&item));
                item.clear();
            } else {
                item.push(letter);
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

fn reached_from(module: &str, uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&String> = uses.get(module).into_iter().flatten().collect();
    while let Some(next) = left.pop() {
        if reached.insert(next.clone()) {
            left.extend(uses.get(next).into_iter().flatten());
        }
    }
    reached
}

#[test]
fn modules_are_found_in_lists_and_paths() {
    let found = modules_in("use crate::{a, b::{c, d}, e::f}; use crate::g::h; crate::i(crate::j)");
    let expected = ["a", "b", "e", "g", "i", "j"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(expected));
}
