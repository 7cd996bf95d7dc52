// How many columns the terminal behind standard output has.
#pragma once

namespace assay::cli {

/// Of the terminal; without one, what COLUMNS says, else 100.
[[nodiscard]] unsigned terminal_columns();
/// Standard output is a terminal and the user has not asked for no colour (NO_COLOR).
[[nodiscard]] bool wants_colour();

}  // namespace assay::cli
