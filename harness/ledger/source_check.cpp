#include "harness/ledger/source_check.h"

#include <fmt/format.h>

#include "harness/ledger/ledger_line.h"

namespace assay {

using nlohmann::json;

void SourceCheck::find(std::uint64_t line, const char* code, std::string what) {
  into_.findings.push_back({fmt::format("{}:{}", into_.path, line), code, std::move(what)});
}

void SourceCheck::take_merge(const LedgerRecord& record) {
  const auto sources = record.body.find("sources");
  if (sources == record.body.end() || !sources->is_array()) return;
  for (const json& source : *sources) {
    if (source.is_object() && source.contains("head") && source["head"].is_string()) {
      heads_.emplace_back(source["head"].get<std::string>(), record.line);
    }
  }
}

void SourceCheck::take(const LedgerRecord& record) {
  if (record.kind == "merge") take_merge(record);
  LedgerRecord line = record;
  while (!line.source.is_null()) {
    const std::string told = line.source.at("hash").get<std::string>();
    LedgerRecord original = source_line(line);
    if (original.hash != told) {
      find(record.line, "source_changed",
           fmt::format("this record was carried from a ledger where it hashed to {:.12}..., and "
                       "now hashes to {:.12}...: it was changed",
                       told, original.hash));
      return;
    }
    lines_.try_emplace(told, Place{original.seq, record.line});
    links_.push_back({original.previous, {original.seq, record.line}});
    line = std::move(original);
  }
}

void SourceCheck::finish() {
  for (const Link& link : links_) {
    if (link.place.seq == 0 && link.previous == genesis_hash()) continue;
    const auto before = lines_.find(link.previous);
    if (before == lines_.end()) {
      find(link.place.line, "source_gap",
           fmt::format("the record that came before this one in its own ledger ({:.12}...) is not "
                       "here: it was left out",
                       link.previous));
    } else if (before->second.seq + 1 != link.place.seq) {
      find(link.place.line, "source_changed",
           fmt::format("in its own ledger this was record {}, and came behind record {}",
                       link.place.seq, before->second.seq));
    }
  }
  for (const auto& [head, line] : heads_) {
    if (lines_.contains(head)) continue;
    find(line, "source_gap",
         fmt::format("the source that ended in {:.12}... is not whole here: its last record is "
                     "missing",
                     head));
  }
}

}  // namespace assay
