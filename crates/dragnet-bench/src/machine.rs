//! Where and with what a comparison was made: a table without that is worth nothing.

use std::fs;
use std::process::Command;

/// The line above the tables: date, machine, and the versions of Dragnet, of the crates that it is compared with and of
/// the compiler.
pub fn header(date: Option<String>, others: &[&str]) -> String {
    let date = date
        .or_else(|| first_line_of("date", &["+%F"]))
        .unwrap_or_else(|| "date unknown".to_owned());
    let rustc =
        first_line_of("rustc", &["--version"]).unwrap_or_else(|| "rustc unknown".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut versions = vec![format!("Dragnet {}", env!("CARGO_PKG_VERSION"))];
    versions.extend(others.iter().map(|name| {
        let version = locked_version(&name.to_lowercase());
        format!("{name} {version}")
    }));
    versions.push(rustc);
    let versions = versions.join(", ");
    format!("{date}; {}, {cores} cores; {versions}", processor())
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim().to_owned())
    });
    model.unwrap_or_else(|| "unknown processor".to_owned())
}

fn first_line_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}

/// The version of a dependency that this binary was built with.
fn locked_version(package: &str) -> &'static str {
    const LOCK: &str = include_str!("../../../Cargo.lock");
    LOCK.split("[[package]]")
        .filter_map(|entry| {
            entry
                .trim()
                .strip_prefix(&format!("name = \"{package}\"\n"))
        })
        .find_map(|rest| rest.strip_prefix("version = \"")?.split('"').next())
        .unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_names_date_machine_and_versions() {
        let header = header(Some("2001-02-03".to_owned()), &["Stateright"]);
        assert!(header.starts_with("2001-02-03; "), "{header}");
        assert!(header.contains("Stateright 0.31."), "{header}");
    }
}
