//! Choices that have names on the command line.

/// Gives the variants of an enum their names: `ALL`, `name`, `Display`, and a `FromStr` that lists the choices and
/// takes aliases too.
macro_rules! named {
    ($type:ident, $refusal:literal, $($variant:ident: $name:literal $(| $alias:literal)*),+ $(,)?) => {
        impl $type {
            /// Every one, in the order in which help texts name them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name $(| $alias)* => Ok(Self::$variant),)+
                    _ => {
                        let names = Self::ALL.map(Self::name).join(", ");
                        Err(format!("{} `{text}`; choose one of {names}", $refusal))
                    }
                }
            }
        }
    };
}

pub(crate) use named;
