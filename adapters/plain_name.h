// Which names a declaration may give to an experiment, an arm, a workload, a phase or a role: files
// and folders are called after them, and tables show them whole.
//
// Letters and digits of ASCII, '-', '_' and '.', no '.' in front, at most kPlainNameLettersMax:
// with what is put before and after it ("0001-", "-again", ".json", the name of a temporary file) a
// name stays far below the 255 bytes of a file name. Stateless; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

inline constexpr std::size_t kPlainNameLettersMax = 64;

/// What is wrong with `text` as a name, such as "'a b' is no name"; empty when it is one. A long
/// text is cut.
[[nodiscard]] std::string plain_name_fault(std::string_view text);

/// The rule in words, to hint at.
[[nodiscard]] std::string plain_name_rule();

}  // namespace assay
