// How fast lode is beside the other stores: one row a question, every figure a ratio.
//
// Within a row the stores take turns, slice by slice, in a rotating order, so that whatever
// disturbs the machine disturbs all. The threads that read or commit are pinned, the stores' own
// are not. Shown: the median rate of each store, and the median of lode's rate over the other's of
// the round. Keys are 16 random bytes (`--keys u64`: 8). Prints, asserts nothing.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>

#include "harness/bench/lode_speed_rig.h"

namespace assay {
namespace {

constexpr std::string_view kUsage =
    "usage: lode_speed_benchmark [--rows a,b] [--stores a,b] [--entries N] [--value BYTES]\n"
    "                            [--rounds N] [--load-entries N] [--reopen-entries N]\n"
    "                            [--durable-commits N] [--keys bytes|bytes8|u64] [--directory "
    "PATH]\n"
    "rows: get get2 scan range100 reverse durable1 durable16 batch128 load reopen\n"
    "      reopen-clean reader admission admission-pending\n"
    "      (get2 is two threads; its `scale` is the rate over that of one thread)\n";

/// Reads `count` keys of random entries; returns the rate.
double get_slice(const Plan& plan, Session& session, std::uint64_t seed, std::uint64_t count) {
  std::string keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    keys += key_of(mixed(seed + i) % plan.entries, plan.key_bytes());
  }
  std::uint64_t bytes = 0;
  const double seconds = seconds_of(
      [&] {
        for (std::uint64_t i = 0; i < count; ++i) {
          const auto key = std::string_view(keys).substr(i * plan.key_bytes(), plan.key_bytes());
          std::string_view value;
          if (!take(session.get(key, value))) {
            check_failed(__FILE__, __LINE__, "get", "a key that was loaded is missing");
          }
          bytes += value.size();
        }
      },
      Clock::thread_cpu);
  if (bytes != count * plan.value_bytes) {
    check_failed(__FILE__, __LINE__, "get", "a value has another length");
  }
  return static_cast<double>(count) / seconds;
}

class CountingSink final : public ScanSink {
 public:
  bool entry(std::string_view key, std::string_view value) override {
    bytes += key.size() + value.size();
    ++entries;
    return true;
  }
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};

double scan_slice(Session& session, const ScanRange& range) {
  CountingSink sink;
  const double seconds =
      seconds_of([&] { (void)take(session.scan(range, sink)); }, Clock::thread_cpu);
  return static_cast<double>(sink.entries) / seconds;
}

double ranges_slice(const Plan& plan, Session& session, std::uint64_t seed, std::uint64_t count) {
  CountingSink sink;
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    keys.push_back(key_of(mixed(seed + i) % plan.entries, plan.key_bytes()));
  }
  const double seconds = seconds_of(
      [&] {
        for (const std::string& key : keys) {
          const ScanRange range{.first = key, .from_start = false, .limit = 100};
          (void)take(session.scan(range, sink));
        }
      },
      Clock::thread_cpu);
  return static_cast<double>(sink.entries) / seconds;
}

void read_rows(const Plan& plan, const std::set<std::string>& rows) {
  Rigs rigs;
  std::vector<std::unique_ptr<Session>> sessions;
  for (const std::string& name : plan.stores) {
    rigs.push_back(loaded_rig(plan, name));
    sessions.push_back(take(rigs.back()->store->session()));
  }
  const auto session = [&](const Rig& rig) -> Session& {
    for (std::size_t i = 0; i < rigs.size(); ++i) {
      if (rigs[i].get() == &rig) return *sessions[i];
    }
    check_failed(__FILE__, __LINE__, "rig", "a rig of this row");
  };
  const Pinned pinned(0);
  constexpr std::uint64_t gets = 200'000;
  const auto seed = [](int round) { return static_cast<std::uint64_t>(round) << 32; };
  const auto turns = [&](const std::string& row, const auto& slice) {
    if (!rows.contains(row)) return;
    take_turns(plan, rigs, slice);
    show(row, rigs);
  };
  for (auto& each : sessions) (void)get_slice(plan, *each, 1, plan.entries);  // all of it, warm
  turns("get",
        [&](Rig& rig, int round) { return get_slice(plan, session(rig), seed(round), gets); });
  turns("scan", [&](Rig& rig, int) { return scan_slice(session(rig), {}); });
  turns("range100",
        [&](Rig& rig, int round) { return ranges_slice(plan, session(rig), seed(round), 3000); });
  turns("reverse", [&](Rig& rig, int) { return scan_slice(session(rig), {.backward = true}); });
  if (!rows.contains("get2")) return;
  const auto threaded = [&](Rig& rig, int round, unsigned threads) {
    std::vector<std::unique_ptr<Session>> own;
    for (unsigned t = 0; t < threads; ++t) own.push_back(take(rig.store->session()));
    std::vector<double> rates(threads);
    (void)in_threads(threads, [&](unsigned t) {
      rates[t] = get_slice(plan, *own[t], seed(round) + (std::uint64_t{t} << 60), 2 * gets);
    });
    double sum = 0;
    for (const double rate : rates) sum += rate;
    return sum;
  };
  std::vector<std::vector<double>> scales(rigs.size());
  take_turns(plan, rigs, [&](Rig& rig, int round) {
    const double one = threaded(rig, round, 1);
    const double two = threaded(rig, round, 2);
    for (std::size_t i = 0; i < rigs.size(); ++i) {
      if (rigs[i].get() == &rig && round > 0) scales[i].push_back(two / one);
    }
    return two;
  });
  show("get2", rigs);
  for (std::size_t i = 0; i < rigs.size(); ++i) {
    fmt::print("{:<10}  {} x{:.2f}\n", "  scale", rigs[i]->name, median(scales[i]));
  }
}

/// Commits of `batch` puts each from `threads` threads, every one durable.
void durable_row(const Plan& plan, const std::string& row, unsigned threads, std::uint64_t batch) {
  const std::uint64_t commits = std::max<std::uint64_t>(1, plan.durable_commits / threads);
  const auto rounds = static_cast<std::uint64_t>(plan.rounds) + 1;
  const std::uint64_t entries = commits * threads * batch * rounds;
  Rigs rigs;
  std::vector<std::string> names = plan.stores;
  names.emplace_back("raw-file");
  for (const std::string& name : names) {
    rigs.push_back(open_rig(plan, name, DurabilityClass::power, entries));
  }
  const std::string value(plan.value_bytes, 'v');
  take_turns(plan, rigs, [&](Rig& rig, int round) {
    std::vector<std::unique_ptr<Session>> sessions;
    for (unsigned t = 0; t < threads; ++t) sessions.push_back(take(rig.store->session()));
    const double seconds = in_threads(threads, [&](unsigned t) {
      std::vector<std::string> keys(batch);
      std::vector<Mutation> mutations(batch);
      for (std::uint64_t i = 0; i < commits; ++i) {
        const std::uint64_t first =
            ((static_cast<std::uint64_t>(round) * threads + t) * commits + i) * batch;
        for (std::uint64_t k = 0; k < batch; ++k) {
          keys[k] = key_of(first + k, plan.key_bytes());
          mutations[k] = {Mutation::Kind::put, keys[k], value};
        }
        take(sessions[t]->apply(mutations));
      }
    });
    return static_cast<double>(commits * threads) / seconds;
  });
  show(row, rigs, " commits/s");
}

/// Bytes that this process has had written to storage so far, by the kernel's account.
double written_bytes() {
  std::ifstream account("/proc/self/io");
  std::string name;
  double bytes = 0;
  while (account >> name >> bytes) {
    if (name == "write_bytes:") return bytes;
  }
  return 0;
}

double disk_bytes(const std::string& directory) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return static_cast<double>(bytes);
}

/// Random keys into an empty store, settled and durable at the end. Besides: bytes written and
/// bytes on disk, over those of keys and values.
void load_row(const Plan& plan) {
  Rigs rigs;
  for (const std::string& name : plan.stores) {
    auto rig = std::make_unique<Rig>();
    rig->name = name;
    rigs.push_back(std::move(rig));
  }
  Plan few = plan;
  few.rounds = std::min(plan.rounds, 3);
  const double payload =
      static_cast<double>(plan.load_entries * (plan.key_bytes() + plan.value_bytes));
  std::map<std::string, std::string> space;
  take_turns(few, rigs, [&](Rig& rig, int round) {
    if (round == 0) return 0.0;
    const double before = written_bytes();
    const auto fresh = open_rig(plan, rig.name, DurabilityClass::volatile_, plan.load_entries);
    double loaded = 0;
    const double seconds = seconds_of([&] {
      loaded = seconds_of([&] { load(plan, *take(fresh->store->session()), plan.load_entries); });
      take(fresh->store->checkpoint());
      take(fresh->store->settle());
    });
    space[rig.name] =
        fmt::format("{:.2f} written, {:.2f} on disk, {:.0f} % of the time settling",
                    (written_bytes() - before) / payload,
                    disk_bytes(fresh->scratch->path()) / payload, 100 * (1 - loaded / seconds));
    return static_cast<double>(plan.load_entries) / seconds;
  });
  show("load", rigs);
  for (const auto& [name, line] : space) fmt::print("{:<10}  {}: {}\n", "  payload", name, line);
}

/// Opening after the process was killed, with everything in the log. Shown as openings a second.
void reopen_row(const Plan& plan) {
  Rigs rigs;
  const auto open_in = [&](const Rig& rig) {
    OpenOptions options =
        options_for(plan, rig.scratch->path(), DurabilityClass::process, plan.reopen_entries);
    // Room for all of it before the store moves it out of the log.
    const std::string room = std::to_string(4 * options.expected_bytes + (64U << 20));
    if (rig.name == "lode") options.settings["overlay_bytes"] = room;
    if (rig.name == "rocksdb") options.settings["write_buffer_bytes"] = room;
    return take(take(find_driver(rig.name))->open(options));
  };
  for (const std::string& name : plan.stores) {
    auto rig = std::make_unique<Rig>();
    rig->name = name;
    rig->scratch = std::make_unique<TemporaryDirectory>(plan.directory.string());
    rigs.push_back(std::move(rig));
  }
  Plan few = plan;
  few.rounds = std::min(plan.rounds, 3);
  take_turns(few, rigs, [&](Rig& rig, int round) {
    if (round == 0) return 0.0;
    rig.scratch = std::make_unique<TemporaryDirectory>(plan.directory.string());
    const pid_t child = ::fork();
    if (child == 0) {
      const auto store = open_in(rig);
      load(plan, *take(store->session()), plan.reopen_entries);
      (void)::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    std::unique_ptr<Store> store;
    const double seconds = seconds_of([&] { store = open_in(rig); });
    std::string_view value;
    const std::string last = key_of(plan.reopen_entries - 1, plan.key_bytes());
    if (!take(take(store->session())->get(last, value))) {
      check_failed(__FILE__, __LINE__, "reopen", rig.name + " has lost the last entry");
    }
    take(store->close());
    return 1 / seconds;
  });
  show("reopen", rigs, " openings/s");
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

bool parse(int count, char** words, Plan& plan) {
  const std::vector<std::string> known = plan.rows;
  for (int i = 1; i < count; i += 2) {
    const std::string_view flag = words[i];
    if (i + 1 == count) return false;
    const std::string text = words[i + 1];
    const std::uint64_t number = std::strtoull(text.c_str(), nullptr, 10);
    if (flag == "--rows") {
      plan.rows = split(text);
    } else if (flag == "--stores") {
      plan.stores = split(text);
    } else if (flag == "--directory") {
      plan.directory = text;
    } else if (flag == "--keys" && (text == "bytes" || text == "bytes8" || text == "u64")) {
      plan.keys = text == "u64" ? KeyKind::u64 : KeyKind::bytes;
      plan.key_size = text == "bytes" ? 16 : 8;
    } else if (number == 0) {
      return false;
    } else if (flag == "--entries") {
      plan.entries = number;
    } else if (flag == "--value") {
      plan.value_bytes = number;
    } else if (flag == "--rounds") {
      plan.rounds = static_cast<int>(number);
    } else if (flag == "--load-entries") {
      plan.load_entries = number;
    } else if (flag == "--reopen-entries") {
      plan.reopen_entries = number;
    } else if (flag == "--durable-commits") {
      plan.durable_commits = number;
    } else {
      return false;
    }
  }
  return std::all_of(plan.rows.begin(), plan.rows.end(), [&](const std::string& row) {
    return std::find(known.begin(), known.end(), row) != known.end();
  });
}

void run(const Plan& plan) {
  const std::set<std::string> rows(plan.rows.begin(), plan.rows.end());
  fmt::print("{} entries, keys of {} bytes, values of {}, medians of {} rounds\n", plan.entries,
             plan.key_bytes(), plan.value_bytes, plan.rounds);
  (void)std::fflush(stdout);
  if (rows.contains("reopen")) reopen_row(plan);  // first: it forks
  for (const char* row : {"get", "get2", "scan", "range100", "reverse"}) {
    if (!rows.contains(row)) continue;
    read_rows(plan, rows);
    break;
  }
  if (rows.contains("durable1")) durable_row(plan, "durable1", 1, 1);
  if (rows.contains("durable16")) durable_row(plan, "durable16", 16, 1);
  if (rows.contains("batch128")) durable_row(plan, "batch128", 1, 128);
  if (rows.contains("load")) load_row(plan);
  if (rows.contains("reopen-clean")) reopen_clean_row(plan);
  if (rows.contains("reader")) reader_row(plan);
  if (rows.contains("admission")) admission_row(plan);
  if (rows.contains("admission-pending")) admission_pending_row(plan);
}

}  // namespace
}  // namespace assay

int main(int count, char** words) {
  assay::Plan plan;
  if (!assay::parse(count, words, plan)) {
    fmt::print(stderr, "{}", assay::kUsage);
    return 2;
  }
  assay::run(plan);
  return 0;
}
