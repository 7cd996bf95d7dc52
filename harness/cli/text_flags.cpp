#include "harness/cli/text_flags.h"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace assay::cli {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::string empty_part(const std::string& text) {
  const auto parts = split(text);
  if (text.empty()) return "an empty text was given";
  for (const std::string& part : parts) {
    if (part.empty())
      return fmt::format("'{}' holds an empty name: two commas, or one at an end", text);
  }
  return {};
}

}  // namespace

CLI::Option* add_list_flag(CLI::App& verb, const std::string& names, std::vector<std::string>& into,
                           const std::string& meaning) {
  const auto take = [&into](const CLI::results_t& given) {
    into.clear();
    for (const std::string& one : given) {
      for (std::string& part : split(one)) into.push_back(std::move(part));
    }
    return true;
  };
  const auto default_text = [&into] { return fmt::format("{}", fmt::join(into, ",")); };
  CLI::Option* const option = verb.add_option(names, take, meaning, false, default_text);
  option->type_name("NAME,...")->type_size(1)->expected(1, CLI::detail::expected_max_vector_size);
  option->check(CLI::Validator([](std::string& text) { return empty_part(text); }, ""));
  return option;
}

void refuse_empty_texts(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    // An argument of the command that doctor runs may be empty.
    if (option->get_items_expected_max() == 0 || option->get_name() == "command") continue;
    option->check(CLI::Validator(
        [](std::string& text) {
          return text.empty() ? std::string("an empty text was given") : std::string();
        },
        ""));
  }
  for (CLI::App* const verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) refuse_empty_texts(*verb);
  }
}

}  // namespace assay::cli
