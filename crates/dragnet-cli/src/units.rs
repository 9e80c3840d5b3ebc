//! Memory sizes and durations as people write them.

use std::time::Duration;

use dragnet::engine::Bytes;

/// Reads a size such as `512MiB`; a number alone is bytes.
pub(crate) fn bytes(text: &str) -> Result<Bytes, String> {
    let unit = |unit: &str| match unit {
        "" | "b" => Some(1.0),
        "kib" => Some(1024.0),
        "mib" => Some(1024.0 * 1024.0),
        "gib" => Some(1024.0 * 1024.0 * 1024.0),
        "kb" => Some(1e3),
        "mb" => Some(1e6),
        "gb" => Some(1e9),
        _ => None,
    };
    quantity(text, unit)
        .filter(|&bytes| bytes < u64::MAX as f64)
        .map(|bytes| Bytes(bytes as u64))
        .ok_or_else(|| {
            "write a size such as 512MiB, in KiB, MiB, GiB, KB, MB, GB or plain bytes".to_owned()
        })
}

/// Reads a duration such as `30s`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let unit = |unit: &str| match unit {
        "ms" => Some(1e-3),
        "" | "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    quantity(text, unit)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "write a duration such as 30s, in ms, s, m, h or plain seconds".to_owned())
}

/// A number times what its unit stands for.
fn quantity(text: &str, unit: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, name) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    Some(number * unit(&name.trim().to_ascii_lowercase())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_in_both_families_of_units_and_any_case() {
        assert_eq!(bytes("4096"), Ok(Bytes(4096)));
        assert_eq!(bytes("1KiB"), Ok(Bytes(1024)));
        assert_eq!(bytes("512MiB"), Ok(Bytes(512 << 20)));
        assert_eq!(bytes("512mib"), Ok(Bytes(512 << 20)));
        assert_eq!(bytes("2 GiB"), Ok(Bytes(2 << 30)));
        assert_eq!(bytes("1.5gib"), Ok(Bytes(3 << 29)));
        assert_eq!(bytes("3KB"), Ok(Bytes(3_000)));
        assert_eq!(bytes("3MB"), Ok(Bytes(3_000_000)));
        assert_eq!(bytes("3GB"), Ok(Bytes(3_000_000_000)));
    }

    #[test]
    fn what_is_no_size_is_refused_with_an_example() {
        for text in [
            "",
            "MiB",
            "-1",
            "1e9",
            "inf",
            "nan",
            "1.2.3",
            "5 parsecs",
            "99999999999999999999GiB",
        ] {
            assert!(bytes(text).unwrap_err().contains("512MiB"), "{text}");
        }
    }

    #[test]
    fn durations_go_from_milliseconds_to_hours() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2M"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in ["", "soon", "-1s", "1d", "1e400", "999999999999999999999h"] {
            assert!(duration(text).unwrap_err().contains("30s"), "{text}");
        }
    }
}
