#include "harness/ledger/merge.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "harness/ledger/durable_file.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/ledger_line.h"
#include "harness/provenance/sha256.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What a first reading tells of a source.
struct Source {
  MergedSource told;
  std::string head;
  std::string first_time;
  std::string last_time;
  bool merged = false;                     ///< holds carried records itself
  std::unordered_set<std::string> hashes;  ///< of its lines, and of those they were before
};

Result<Source> survey(const std::string& path) {
  Source source;
  source.told.path = path;
  std::set<std::string> machines;
  const auto end = scan_ledger(path, [&](LedgerRecord&& record) -> Status {
    if (record.seq == 0) source.first_time = record.time;
    source.last_time = std::max(source.last_time, record.time);
    source.merged = source.merged || !record.source.is_null();
    if (!record.machine.empty()) machines.insert(record.machine);
    source.hashes.insert(record.hash);
    for (const json* level = &record.source; !level->is_null(); level = &level->at("source")) {
      source.hashes.insert(level->at("hash").get<std::string>());
    }
    return {};
  });
  if (!end) return fail(end.error());
  if (end->records == 0) {
    return fail(Error(ErrorKind::bad_input, "this ledger holds no record").at(path));
  }
  source.told.records = end->records;
  source.told.torn = !end->torn.empty();
  source.told.machines.assign(machines.begin(), machines.end());
  source.head = end->head;
  return source;
}

/// The folder of a source as it is seen from that of the new ledger.
std::string folder_from(const std::string& out, const std::string& path) {
  std::error_code ignored;
  const fs::path here = fs::absolute(folder_of(out), ignored).lexically_normal();
  const fs::path there = fs::absolute(folder_of(path), ignored).lexically_normal();
  std::string relative = there.lexically_relative(here).string();
  while (relative.size() > 1 && relative.ends_with('/')) relative.pop_back();
  return relative.empty() ? there.string() : relative;
}

class Merge {
 public:
  Merge(std::vector<Source> sources, const std::string& out, DurableFile& file)
      : sources_(std::move(sources)), out_(out), file_(file) {}

  Result<Merged> run() {
    ASSAY_TRY(write(merge_record()));
    for (std::size_t i = 0; i < sources_.size(); ++i) ASSAY_TRY(carry(i));
    ASSAY_TRY(file_.commit(Existing::refuse));
    Merged merged{seq_, previous_, {}};
    for (Source& source : sources_) merged.sources.push_back(std::move(source.told));
    return merged;
  }

 private:
  LedgerRecord merge_record() const {
    LedgerRecord record;
    record.kind = "merge";
    json sources = json::array();
    for (const Source& source : sources_) {
      record.time = std::max(record.time, source.last_time);
      sources.push_back({{"folder", folder_from(out_, source.told.path)},
                         {"head", source.head},
                         {"machines", source.told.machines},
                         {"records", source.told.records}});
    }
    record.body = {{"sources", std::move(sources)}};
    return record;
  }

  Status write(LedgerRecord record) {
    record.seq = seq_++;
    record.previous = previous_;
    record.schema = kLedgerSchema;
    const std::string line = ledger_line_text(record);
    previous_ = sha256_hex(line);
    return file_.write(line + "\n");
  }

  Status carry(std::size_t number) {
    Source& source = sources_[number];
    std::uint64_t left = source.told.records;  // a run may be appending meanwhile
    source.told.carried = 0;
    const auto end = scan_ledger(
        source.told.path,
        [&](LedgerRecord&& record) -> Status {
          if (left == 0) return {};
          --left;
          if (!carried_.insert(record.hash).second) return {};
          const std::string origin = origin_hash(record);
          if (!origins_.try_emplace(origin, number).second) {
            if (record.source.is_null()) return {};
            return fail(twice(record, sources_[origins_.at(origin)].told.path));
          }
          ++source.told.carried;
          return write(as_carried(std::move(record), number));
        },
        BodyForm::as_written);
    if (!end) return fail(end.error());
    if (left > 0) {
      return fail(Error(ErrorKind::ledger, "the ledger became shorter while it was read")
                      .at(source.told.path));
    }
    return {};
  }

  static LedgerRecord as_carried(LedgerRecord record, std::size_t number) {
    json source = {{"hash", record.hash},
                   {"ledger", number},
                   {"machine", record.machine},
                   {"previous", record.previous},
                   {"schema", record.schema},
                   {"seq", record.seq},
                   {"source", std::move(record.source)}};
    record.source = std::move(source);
    return record;
  }

  [[nodiscard]] Error twice(const LedgerRecord& record, const std::string& other) const {
    Error error(ErrorKind::bad_input,
                fmt::format("record {:.12}... came here through another merge than into {}",
                            origin_hash(record), other));
    error.at(out_).hint("merge the ledgers that those two were merged from");
    return error;
  }

  std::vector<Source> sources_;
  const std::string& out_;
  DurableFile& file_;
  std::uint64_t seq_ = 0;
  std::string previous_ = genesis_hash();
  std::unordered_set<std::string> carried_;     ///< hashes that lines had in their source
  std::map<std::string, std::size_t> origins_;  ///< hashes at first writing -> source
};

/// One ledger that holds every record of all others.
const Source* holder_of_all(const std::vector<Source>& sources) {
  for (const Source& one : sources) {
    const bool all = std::all_of(sources.begin(), sources.end(), [&](const Source& other) {
      return one.hashes.contains(other.head);
    });
    if (all) return &one;
  }
  return nullptr;
}

}  // namespace

Result<Merged> merge_ledgers(const std::vector<std::string>& paths, const std::string& out) {
  std::error_code ignored;
  if (fs::exists(out, ignored)) {
    return fail(Error(ErrorKind::bad_input, "this file is there already")
                    .at(out)
                    .hint("a merge makes a new ledger and never writes over one"));
  }
  if (paths.size() < 2) return fail(ErrorKind::bad_input, "a merge takes at least two ledgers");
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    auto source = survey(path);
    if (!source) return fail(source.error());
    sources.push_back(std::move(*source));
  }
  if (const Source* all = holder_of_all(sources); all != nullptr) {
    return fail(Error(ErrorKind::bad_input,
                      "no merge is needed: this ledger holds every record of the others")
                    .at(all->told.path));
  }
  std::stable_sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
    return std::tuple(!a.merged, a.first_time, a.head) <
           std::tuple(!b.merged, b.first_time, b.head);
  });
  auto file = DurableFile::create(out);
  if (!file) return fail(file.error());
  return Merge(std::move(sources), out, *file).run();
}

}  // namespace assay
