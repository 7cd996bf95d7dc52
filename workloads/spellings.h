// How the values of each enumeration are written in declarations and in the canonical form.
#pragma once

#include <string_view>
#include <utility>

#include "workloads/workload.h"

namespace assay {

template <class Enum>
using Spelling = std::pair<std::string_view, Enum>;

inline constexpr Spelling<OpKind> kOpKindNames[] = {
    {"read", OpKind::read},
    {"update", OpKind::update},
    {"insert", OpKind::insert},
    {"erase", OpKind::erase},
    {"scan", OpKind::scan},
    {"reverse_scan", OpKind::reverse_scan},
    {"read_modify_write", OpKind::read_modify_write},
    {"batch", OpKind::batch},
    {"rollback", OpKind::rollback},
};
static_assert(std::size(kOpKindNames) == kOpKinds);

inline constexpr Spelling<KeyKind> kKeyKinds[] = {{"u64", KeyKind::u64}, {"bytes", KeyKind::bytes}};
inline constexpr Spelling<bool> kKeyOrders[] = {{"hashed", true}, {"ordered", false}};
inline constexpr Spelling<bool> kLoadOrders[] = {{"random", true}, {"ascending", false}};
inline constexpr Spelling<ValueSizes> kValueSizes[] = {
    {"fixed", ValueSizes::fixed},
    {"uniform", ValueSizes::uniform},
    {"lognormal", ValueSizes::lognormal},
};
inline constexpr Spelling<DistributionKind> kDistributions[] = {
    {"uniform", DistributionKind::uniform},       {"zipfian", DistributionKind::zipfian},
    {"latest", DistributionKind::latest},         {"sequential", DistributionKind::sequential},
    {"hot-prefix", DistributionKind::hot_prefix}, {"hot-set", DistributionKind::hot_set},
};
inline constexpr Spelling<WarmUpPolicy> kWarmUpPolicies[] = {
    {"none", WarmUpPolicy::none},
    {"fixed", WarmUpPolicy::fixed},
    {"steady", WarmUpPolicy::steady},
};
inline constexpr Spelling<CachePolicy> kCachePolicies[] = {
    {"as-is", CachePolicy::as_is},
    {"warm", CachePolicy::warm},
    {"cold-files", CachePolicy::cold_files},
    {"cold", CachePolicy::cold},
};
inline constexpr Spelling<RestartHow> kRestartHows[] = {
    {"close", RestartHow::close},
    {"kill", RestartHow::kill},
};
inline constexpr Spelling<PhaseKind> kPhaseKinds[] = {
    {"load", PhaseKind::load},       {"run", PhaseKind::run},
    {"restart", PhaseKind::restart}, {"rebuild", PhaseKind::rebuild},
    {"sync", PhaseKind::sync},       {"checkpoint", PhaseKind::checkpoint},
    {"settle", PhaseKind::settle},   {"load-tables", PhaseKind::load_tables},
    {"table", PhaseKind::table},
};
inline constexpr Spelling<TableOperation> kTableOperations[] = {
    {"full-scan", TableOperation::full_scan},
    {"read-columns", TableOperation::read_columns},
    {"checksum", TableOperation::checksum},
    {"group-having", TableOperation::group_having},
    {"dictionary", TableOperation::dictionary},
    {"point-lookup", TableOperation::point_lookup},
    {"range-lookup", TableOperation::range_lookup},
    {"join", TableOperation::join},
    {"update-rollback", TableOperation::update_rollback},
    {"delete-rollback", TableOperation::delete_rollback},
    {"create-index", TableOperation::create_index},
};

/// The spelling of `value`.
template <class Enum, std::size_t N>
[[nodiscard]] constexpr std::string_view spelling_of(const Spelling<Enum> (&names)[N], Enum value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return "";
}

}  // namespace assay
