// What every flag that takes a text has in common: an empty one is refused. CLI11 hands it on, and
// a verb would take --root "" for a flag that was not given.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace assay::cli {

/// An option for texts separated by commas, given once or repeated. "a,,b" and "a," are refused:
/// CLI11's own delimiter drops what is empty.
CLI::Option* add_list_flag(CLI::App& verb, const std::string& names, std::vector<std::string>& into,
                           const std::string& meaning);

/// Refuses empty texts in every option of the app and of its verbs that people call; once all of
/// them are there.
void refuse_empty_texts(CLI::App& app);

}  // namespace assay::cli
