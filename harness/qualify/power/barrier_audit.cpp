#include "harness/qualify/power/barrier_audit.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

namespace assay::qualify::power {
namespace {

std::string readable(const char* symbol) {
  int status = 0;
  char* const plain = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string out = status == 0 && plain != nullptr ? plain : symbol;
  std::free(plain);
  return out;
}

}  // namespace

std::string name_of_address(std::uint64_t address) {
  Dl_info info{};
  void* raw_symbol = nullptr;
  // The address is behind the call; one byte back is in it.
  void* const at = reinterpret_cast<void*>(address - 1);
  if (::dladdr1(at, &info, &raw_symbol, RTLD_DL_SYMENT) == 0 || info.dli_fname == nullptr) {
    return fmt::format("{:#x}", address);
  }
  std::string file = info.dli_fname;
  file = file.substr(file.rfind('/') + 1);
  const auto base = reinterpret_cast<std::uint64_t>(info.dli_fbase);
  std::string name = fmt::format("{}+{:#x}", file, address - 1 - base);
  const auto* const symbol = static_cast<const ElfW(Sym)*>(raw_symbol);
  // The nearest exported symbol says something only where the address is inside of it.
  if (info.dli_sname != nullptr && symbol != nullptr &&
      address - 1 < reinterpret_cast<std::uint64_t>(info.dli_saddr) + symbol->st_size) {
    name += fmt::format(" ({})", readable(info.dli_sname));
  }
  return name;
}

Result<std::vector<SyncSite>> audit_barriers(const Trace& trace, const Acknowledgements& receipts,
                                             const ExplorePlan& plan) {
  std::vector<SyncSite> sites;
  std::map<std::uint64_t, std::size_t> known;
  for (const Event& event : trace.events) {
    if (event.kind != RecordKind::sync_called) continue;
    const std::uint64_t site = sync_site(event);
    const auto [found, fresh] = known.try_emplace(site, sites.size());
    if (fresh) {
      SyncSite next;
      next.site = site;
      next.call = describe(event);
      for (const std::uint64_t address : event.stack)
        next.stack.push_back(name_of_address(address));
      sites.push_back(std::move(next));
    }
    ++sites[found->second].uses;
  }
  for (SyncSite& site : sites) {
    const std::set<std::uint64_t> suppressed{site.site};
    ExplorePlan without = plan;
    without.suppressed = &suppressed;
    without.stop_at_failure = true;
    without.failures_kept = 1;
    const auto found = explore(trace, receipts, without);
    if (!found) return std::unexpected(found.error());
    site.necessary = found->failures != 0;
    site.states = found->checked;
    site.worst = found->worst;
    if (!found->kept_failures.empty() && !found->kept_failures[0].judgement.findings.empty()) {
      site.finding = found->kept_failures[0].judgement.findings[0].text;
    }
    if (plan.stop != nullptr && plan.stop->load()) break;
  }
  return sites;
}

nlohmann::json to_json(const SyncSite& site) {
  return {{"call", site.call},      {"stack", site.stack},
          {"uses", site.uses},      {"necessary", site.necessary},
          {"states", site.states},  {"worst", std::string(to_string(site.worst))},
          {"finding", site.finding}};
}

}  // namespace assay::qualify::power
