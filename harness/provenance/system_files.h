// Reading one-line files of /proc and /sys below a root that tests can replace. Internal.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::provenance {

[[nodiscard]] nlohmann::json unknown(std::string_view why);

class SystemFiles {
 public:
  explicit SystemFiles(std::string root) : root_(std::move(root)) {}
  /// Path below the root; `path` begins with '/'.
  [[nodiscard]] std::string at(std::string_view path) const;
  /// Whole text without trailing white space; nothing when it cannot be read.
  [[nodiscard]] std::optional<std::string> text(std::string_view path) const;
  [[nodiscard]] std::vector<std::string> lines(std::string_view path) const;
  /// The text, or {"unknown": "cannot read PATH"}.
  [[nodiscard]] nlohmann::json text_or_unknown(std::string_view path) const;
  /// The text as an integer, or unknown.
  [[nodiscard]] nlohmann::json integer_or_unknown(std::string_view path) const;
  /// The choice in brackets of "a [b] c", or the text, or unknown.
  [[nodiscard]] nlohmann::json chosen_or_unknown(std::string_view path) const;
  /// Value of the first line "key<separator>value"; unknown when there is none.
  [[nodiscard]] nlohmann::json field(std::string_view path, std::string_view key,
                                     char separator = ':') const;

 private:
  std::string root_;
};

[[nodiscard]] nlohmann::json describe_os(const SystemFiles& files);
[[nodiscard]] nlohmann::json describe_cpu(const SystemFiles& files);
[[nodiscard]] nlohmann::json describe_memory(const SystemFiles& files);
[[nodiscard]] nlohmann::json describe_cgroup(const SystemFiles& files);
[[nodiscard]] nlohmann::json describe_virtualisation(const SystemFiles& files);
[[nodiscard]] nlohmann::json describe_clock(const SystemFiles& files);
[[nodiscard]] nlohmann::json describe_packages(const SystemFiles& files);
[[nodiscard]] nlohmann::json describe_storage(const SystemFiles& files,
                                              const std::string& benchmark_root,
                                              std::string device_number);
[[nodiscard]] nlohmann::json describe_source();
[[nodiscard]] nlohmann::json describe_build();
[[nodiscard]] nlohmann::json describe_binary();
[[nodiscard]] nlohmann::json describe_libraries();
[[nodiscard]] nlohmann::json describe_process(const std::vector<std::string>& command_line);

}  // namespace assay::provenance
