//! Markdown tables, and numbers in them.

/// What stands where there is nothing to say.
pub const NOTHING: &str = "–";

/// The names of the columns and the line below them: so many columns of words, then columns of numbers.
pub fn head(words: &[&str], numbers: &[&str]) -> String {
    let names = [words, numbers].concat().join(" | ");
    let (left, right) = ("---|".repeat(words.len()), "--:|".repeat(numbers.len()));
    format!("| {names} |\n|{left}{right}")
}

/// A row.
pub fn row(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// A number with a comma between each three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_in_groups_of_three() {
        let numbers = [0, 999, 1_000, 10_340_352];
        assert_eq!(numbers.map(grouped), ["0", "999", "1,000", "10,340,352"]);
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        assert_eq!(
            head(&["what"], &["states", "time"]),
            "| what | states | time |\n|---|--:|--:|"
        );
        assert_eq!(row(&["a".to_owned(), "1".to_owned()]), "| a | 1 |");
    }
}
