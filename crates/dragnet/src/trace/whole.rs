//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;

/// Writes `content` as JSON: what was there before stays until the new one is complete.
pub(super) fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let written = File::create(&partial).and_then(|file| {
        let mut out = BufWriter::new(file);
        serde_json::to_writer_pretty(&mut out, content)?;
        out.write_all(b"\n")?;
        out.into_inner()?.sync_all()?;
        fs::rename(&partial, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}
