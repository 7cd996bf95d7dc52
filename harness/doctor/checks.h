// What about this machine disturbs a measurement: each item as found, as wanted, why, and how to
// set it. Looking changes nothing and needs no root; what root alone can see is `unknown`.
//
// Everything is read below `system_root`, so that tests can show it another machine. Stateless.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "adapters/result.h"

namespace assay::doctor {

enum class State : std::uint8_t {
  fine,
  differs,  ///< it is not as wanted
  unknown,  ///< it cannot be seen here; `found` says why
};
[[nodiscard]] std::string_view to_string(State state);

/// A value of a file of /proc or /sys that would make an item as wanted.
struct Remedy {
  std::string path;   ///< as the running system sees it
  std::string value;  ///< what to write
};

struct Finding {
  std::string id{};     ///< as plans and --demand name it: "governor"
  std::string title{};  ///< "CPU frequency governor"
  std::string found{};
  std::string wanted{};
  State state = State::unknown;
  std::string why{};  ///< what it does to a measurement
  std::string how{};  ///< what a person does about it; a shell command where there is one
  bool demanded = false;
  std::vector<Remedy> remedies{};  ///< empty where the doctor cannot set it
};

struct Options {
  std::string benchmark_root;  ///< the directory whose file system and device are looked at
  std::string system_root = "/";
  /// How long what others do is watched; 0 leaves these two items unknown.
  std::chrono::milliseconds watch{400};
  std::vector<std::string> demanded;  ///< ids; see check_ids()
};

/// Ids of all items, in the order in which they are shown.
[[nodiscard]] std::vector<std::string> check_ids();
/// The error of the first of `ids` that is none, with the nearest one; nothing when all are.
[[nodiscard]] std::optional<Error> unknown_id(const std::vector<std::string>& ids);
/// True for an item that measuring itself moves (load, CPUs and writers of others): it tells about
/// the machine before a run, and nothing in the middle of one.
[[nodiscard]] bool moves_while_measuring(std::string_view id);
/// True for an item that is `unknown` unless it is watched for a while.
[[nodiscard]] bool needs_watching(std::string_view id);
/// Every item. Takes as long as `watch`.
[[nodiscard]] std::vector<Finding> examine(const Options& options);
/// Items that a plan demands and that are not `fine`.
[[nodiscard]] std::vector<Finding> unmet_demands(const std::vector<Finding>& findings);

/// An array of objects with the members of Finding.
[[nodiscard]] nlohmann::json to_json(const std::vector<Finding>& findings);

}  // namespace assay::doctor
