//! The rules of the house, as far as a program can check them.

use std::path::{Path, PathBuf};

const PURE: [(&str, &[&str]); 5] = [
    ("transcript", &["jiff", "schemars", "serde", "serde_json"]),
    ("backends", &["memchr", "serde", "serde_json", "transcript"]),
    (
        "session",
        &["backends", "schemars", "serde", "serde_json", "thiserror", "transcript", "uuid"],
    ),
    ("formats", &["base64", "schemars", "serde", "serde_json", "transcript"]),
    (
        "render",
        &[
            "maud",
            "pulldown-cmark",
            "serde",
            "serde_json",
            "similar",
            "syntect",
            "transcript",
            "two-face",
            "unicode-general-category",
            "vte",
        ],
    ),
];

/// Crates of the workspace that each crate may depend on.
const LAYERS: [(&str, &[&str]); 8] = [
    ("transcript", &[]),
    ("backends", &["transcript"]),
    ("session", &["backends", "transcript"]),
    ("formats", &["transcript"]),
    ("render", &["transcript"]),
    ("store", &["transcript"]),
    ("tools", &["backends", "transcript"]),
    ("server", &["backends", "formats", "render", "session", "store", "tools", "transcript"]),
];

/// Ways to the world that a pure crate has no business with.
const IMPURE: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant::now",
    "tokio",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn every_file_starts_with_a_module_comment() {
    let files = rust_files(&root().join("crates"));
    assert!(files.len() > 40, "the search has lost its way");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//! "), "{} has no module comment", file.display());
    }
}

/// The page shows their words as they are, so that a backtick would be a backtick.
#[test]
fn errors_that_people_read_have_no_backticks() {
    let crates = root().join("crates");
    let mut files = rust_files(&crates.join("backends/src"));
    files.retain(|it| it.ends_with("failure.rs"));
    assert!(files.len() > 3, "the search has lost its way");
    for folder in ["server/src/agents", "server/src/session", "tools/src/mcp", "tools/src/built_in"]
    {
        files.extend(rust_files(&crates.join(folder)));
    }
    files.retain(|it| !it.components().any(|it| it.as_os_str() == "tests"));
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut code = text.lines().filter(|it| !it.trim_start().starts_with("//"));
        assert_eq!(code.find(|it| it.contains('`')), None, "in {}", file.display());
    }
}

#[test]
fn pure_crates_stay_pure() {
    for (name, allowed) in PURE {
        let folder = root().join("crates").join(name);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let used = manifest["dependencies"].as_table().unwrap().iter();
        // What is optional is for those who test or describe.
        let used = used.filter(|(_, it)| it.get("optional").is_none());
        for (dependency, _) in used {
            assert!(allowed.contains(&dependency.as_str()), "{name} depends on {dependency}");
        }
        for file in rust_files(&folder.join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let impure = IMPURE.iter().find(|word| text.contains(**word));
            assert_eq!(impure, None, "in {}", file.display());
        }
    }
}

#[test]
fn every_file_of_the_page_is_served() {
    let files = |folder: &str| {
        let entries = std::fs::read_dir(root().join("web").join(folder)).unwrap();
        entries.map(|it| it.unwrap().file_name().into_string().unwrap())
    };
    for module in files("script") {
        assert!(render::assets().iter().any(|it| it.name == module), "{module} is not listed");
    }
    for file in files("style") {
        let layer = format!("@layer {} {{", file.trim_end_matches(".css"));
        assert!(render::stylesheet().contains(&layer), "{file} is not listed");
    }
}

#[test]
fn crates_depend_only_on_lower_layers() {
    let mut found = std::fs::read_dir(root().join("crates")).unwrap().count();
    for (name, allowed) in LAYERS {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
        let used = manifest["dependencies"].as_table().unwrap().keys();
        let of_workspace = used.filter(|used| LAYERS.iter().any(|(name, _)| name == used));
        for dependency in of_workspace {
            assert!(allowed.contains(&dependency.as_str()), "{name} depends on {dependency}");
        }
        found -= 1;
    }
    assert_eq!(found, 0, "a crate is missing in LAYERS");
}

/// `is_`, `has_` and `may_` ask and change nothing: they take no `&mut self`, and return a bool.
#[test]
fn predicates_ask_and_commands_act() {
    let mut n_predicates = 0;
    for file in rust_files(&root().join("crates")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for (at, _) in text.match_indices("fn ") {
            let signature = &text[at + 3..];
            let Some(end) = signature.find(['{', ';']) else { continue };
            let signature: String = signature[..end].split_whitespace().collect();
            if !["is_", "has_", "may_"].iter().any(|it| signature.starts_with(it)) {
                continue;
            }
            n_predicates += 1;
            let is_right = !signature.contains("(&mutself") && signature.contains("bool");
            assert!(is_right, "{}: {signature}", file.display());
        }
    }
    assert!(n_predicates > 200, "the search has lost its way: {n_predicates}");
}
