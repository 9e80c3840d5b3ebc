//! The rooms of the library, in the order in which they may import each other: a room that reaches back fails here, with the
//! offending line.

use std::fs;
use std::path::{Path, PathBuf};

/// Each room may import itself and those before it.
const ROOMS: &[(&str, &[&str])] = &[
    (
        "floor",
        &[
            "coarse_hash",
            "guarded",
            "named",
            "panics",
            "quantity",
            "run",
            "signals",
            "step_guard",
            "sterile",
            "system",
            "tables",
            "trace",
            "weave",
        ],
    ),
    ("options", &["engine", "options"]),
    ("property", &["property"]),
    ("target", &["target", "future", "plain", "process", "rand"]),
    ("verdict", &["verdict"]),
    ("explore", &["explore"]),
    ("driver", &["driver", "check", "catalog"]),
];

/// What `lib.rs` takes from the target for programs to use: the modules that mirror those of `std`, and macros, which Rust
/// exports from the root alone.
const FROM_THE_TARGET: [&str; 10] = [
    "arc",
    "cell",
    "hint",
    "net",
    "sync",
    "thread",
    "time",
    "__join",
    "thread_local",
    "unsize",
];

/// The place of a module's room among the rooms.
fn room_of(module: &str) -> Option<usize> {
    let module = if FROM_THE_TARGET.contains(&module) {
        "target"
    } else {
        module
    };
    ROOMS
        .iter()
        .position(|(_, modules)| modules.contains(&module))
}

/// The modules of the library that a line of code names behind `crate::`.
fn imported<'a>(line: &'a str) -> Vec<&'a str> {
    let code = line.split("//").next().unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut modules = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c == '$' || is_name(c)) {
            continue;
        }
        let rest = &code[at + found.len()..];
        let first_name = |path: &'a str| path.trim().split(|c| !is_name(c)).next();
        match rest.strip_prefix('{') {
            None => modules.extend(first_name(rest)),
            Some(group) => {
                let (group, _) = group.split_once('}').expect("a group stands in one line");
                modules.extend(group.split(',').filter_map(first_name));
            }
        }
    }
    modules
}

/// The lines of a file that import what its room may not.
fn reaching_back(file: &Path, text: &str) -> Vec<String> {
    let first = file.iter().next().and_then(|name| name.to_str());
    let module = first.expect("a file has a name").trim_end_matches(".rs");
    let room =
        room_of(module).unwrap_or_else(|| panic!("`{module}` is in no room: add it to ROOMS"));
    let mut offending = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        // Tests stand at the end of a file, and may use everything.
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            break;
        }
        for name in imported(line) {
            let imports = room_of(name);
            if imports.is_none_or(|imports| imports > room) {
                let (from, to) = (
                    ROOMS[room].0,
                    imports.map_or("the crate's root", |to| ROOMS[to].0),
                );
                offending.push(format!(
                    "{}:{number}: the room `{from}` reaches back to `{to}`: {}",
                    file.display(),
                    line.trim()
                ));
            }
        }
    }
    offending
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the sources are here");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut files = Vec::new();
    for path in paths {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        match path.is_dir() {
            // Modules of tests alone.
            true if ["tests", "reference"].contains(&name) => {}
            true => files.extend(files_below(&path)),
            false if ["lib.rs", "tests.rs", "reference.rs"].contains(&name) => {}
            false => files.push(path),
        }
    }
    files.sort();
    files
}

#[test]
fn no_room_reaches_back() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = files_below(&sources);
    assert!(files.len() > 100, "only {} files were read", files.len());
    let offending = files.iter().flat_map(|path| {
        let text = fs::read_to_string(path).expect("it is text");
        let file = path.strip_prefix(&sources).expect("it is below");
        reaching_back(file, &text)
    });
    let offending: Vec<String> = offending.collect();
    assert!(offending.is_empty(), "{}", offending.join("\n"));
}

#[test]
fn an_import_that_reaches_back_is_named_with_its_line() {
    let text = "use crate::system::System;\nuse crate::explore::breadth;\n";
    assert_eq!(
        reaching_back(Path::new("target/nodes/cell.rs"), text),
        [
            "target/nodes/cell.rs:2: the room `target` reaches back to `explore`: use crate::explore::breadth;"
        ]
    );
    assert!(reaching_back(Path::new("driver/run.rs"), text).is_empty());
    let inline = "    let verdict = crate::verdict::Verdict::new();";
    assert_eq!(reaching_back(Path::new("trace/mod.rs"), inline).len(), 1);
    let through_the_root = "use crate::Check;";
    assert_eq!(
        reaching_back(Path::new("explore/walk.rs"), through_the_root).len(),
        1
    );
}

#[test]
fn comments_macros_and_tests_may_name_everything() {
    let text = "//! See [`Check`](crate::Check).\n$crate::thread::spawn();\n#[cfg(test)]\nuse crate::driver::run;\n";
    assert!(reaching_back(Path::new("system.rs"), text).is_empty());
}
