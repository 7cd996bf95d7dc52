// The `lode` command: looks into a store and changes it from a shell. Prints its usage without
// arguments. Exit status: 0 done, 1 the key is not there, verify or rebuild found damage that is
// still there or cost entries, the dump to be loaded is bad, 2 wrong usage, 3 the store reported an
// error.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/command/dump_format.h"
#include "engine/lode.h"

namespace {

using lode::Durability;
using lode::Store;

constexpr int exit_done = 0;
constexpr int exit_not_there = 1;
constexpr int exit_usage = 2;
constexpr int exit_error = 3;

constexpr const char* usage_text =
    "usage: lode VERB DIRECTORY [ARGUMENT...]\n"
    "  stat DIR                 counters and what opening found (read-only)\n"
    "  get DIR KEY              print a value\n"
    "  scan DIR [FIRST [LAST]]  print entries with FIRST <= key < LAST, one a line: key TAB value\n"
    "  verify DIR               read everything and check it (read-only)\n"
    "  backup DIR NEW           copy what is in the store into a new one (read-only on DIR)\n"
    "  dump DIR                 print everything as text that load reads (read-only)\n"
    "  load DIR FILE            put the entries of a dump; makes the store if there is none. All "
    "of\n"
    "                           FILE is checked first. With - for FILE, standard input is loaded "
    "in\n"
    "                           batches as it comes: a bad line ends it, and what was loaded "
    "stays\n"
    "  rebuild DIR [--accept-loss] [--index-only]\n"
    "                           make damaged trees whole from their leaves. When leaves or large "
    "values\n"
    "                           are damaged too, says which keys are lost and changes nothing, "
    "unless\n"
    "                           told to go on without them; --index-only reads no large values\n"
    "  put DIR KEY VALUE        store a value durably; makes the store if there is none\n"
    "  erase DIR KEY            erase a key durably\n"
    "  mark DIR NAME            name the present state, durably; stat lists the names\n"
    "  checkpoint DIR           move the log into trees\n"
    "  compact DIR              merge everything into one run\n"
    "Keys and values may contain \\xNN for any byte and \\\\ for a backslash; output is written "
    "the\n"
    "same way. Stores of u64 keys: add --u64 behind the verb; keys are decimal numbers.\n";

int wrong_usage(std::string_view what) {
  std::fprintf(stderr, "lode: %.*s\n%s", static_cast<int>(what.size()), what.data(), usage_text);
  return exit_usage;
}

int report(const lode::Error& error) {
  std::fprintf(stderr, "lode: %s: %s\n", std::string(lode::to_string(error.kind)).c_str(),
               error.what.c_str());
  return exit_error;
}

void print_escaped(std::string_view text) {
  std::string out;
  lode::append_escaped(text, out);
  std::fwrite(out.data(), 1, out.size(), stdout);
}

struct Call {
  std::string verb;
  std::string directory;
  bool u64 = false;
  std::vector<std::string> arguments;  // as given

  [[nodiscard]] lode::KeyKind keys() const {
    return u64 ? lode::KeyKind::u64 : lode::KeyKind::bytes;
  }
  [[nodiscard]] bool writes() const {
    return verb == "put" || verb == "erase" || verb == "mark" || verb == "checkpoint" ||
           verb == "compact";
  }
};

void print_key(const Call& call, std::string_view key) {
  std::string out;
  lode::append_key(call.keys(), key, out);
  std::fwrite(out.data(), 1, out.size(), stdout);
}

int stat(Store& store) {
  const lode::RecoveryReport& recovery = store.recovery();
  std::printf("version %s\nlog method %s\nroot generation %llu%s\nreplayed commits %llu\n",
              std::string(lode::version()).c_str(),
              std::string(lode::to_string(store.log_method())).c_str(),
              static_cast<unsigned long long>(recovery.root_generation),
              recovery.root_fallback ? " (the other root is damaged)" : "",
              static_cast<unsigned long long>(recovery.replayed_commits));
  if (recovery.log_cut) std::printf("log cut: %s\n", recovery.cut_reason.c_str());
  for (const lode::Marker& marker : store.markers()) {
    std::fputs("marker ", stdout);
    print_escaped(marker.name);
    std::printf(" %llu\n", static_cast<unsigned long long>(marker.sequence));
  }
  for (const auto& [name, value] : store.statistics())
    std::printf("%s %.0f\n", name.c_str(), value);
  return exit_done;
}

int scan(Store& store, const Call& call, std::span<const std::string> range) {
  lode::Cursor cursor = store.snapshot().cursor();
  if (range.empty()) {
    cursor.seek_first();
  } else {
    cursor.seek(range[0]);
  }
  for (; cursor.valid() && (range.size() < 2 || cursor.key() < range[1]); cursor.next()) {
    const auto value = cursor.value();
    if (!value) return report(value.error());
    print_key(call, cursor.key());
    std::fputc('\t', stdout);
    print_escaped(*value);
    std::fputc('\n', stdout);
  }
  const auto status = cursor.status();
  return status ? exit_done : report(status.error());
}

int get(Store& store, const std::string& key) {
  std::string value;
  const auto found = store.get(key, value);
  if (!found) return report(found.error());
  if (!*found) return exit_not_there;
  print_escaped(value);
  std::fputc('\n', stdout);
  return exit_done;
}

int verify(Store& store) {
  const auto status = store.verify();
  if (status) {
    std::puts("everything checked: no damage");
    return exit_done;
  }
  std::printf("%s\n", status.error().what.c_str());
  return status.error().kind == lode::ErrorKind::corruption ? exit_not_there : exit_error;
}

int backup(Store& store, const std::string& directory) {
  const auto copied = store.snapshot().backup(directory);
  if (!copied) return report(copied.error());
  std::printf("%llu entries up to commit %llu in %s\n",
              static_cast<unsigned long long>(copied->entries),
              static_cast<unsigned long long>(copied->sequence), directory.c_str());
  return exit_done;
}

int dump(Store& store, const Call& call) {
  std::ios::sync_with_stdio(false);
  const auto entries = lode::write_dump(store.snapshot(), call.keys(), std::cout);
  return entries ? exit_done : report(entries.error());
}

int report_load(const lode::Error& error, const lode::LoadReport& loaded) {
  std::fprintf(stderr, "lode: %s; %llu entries were loaded\n", error.what.c_str(),
               static_cast<unsigned long long>(loaded.entries));
  return error.kind == lode::ErrorKind::bad_input ? exit_not_there : exit_error;
}

// A file is read twice: nothing of a bad one gets into the store. Standard input is read once.
int load(const Call& call) {
  const std::string& path = call.arguments[0];
  const bool standard_input = path == "-";
  const std::string name = standard_input ? "standard input" : path;
  std::ifstream file;
  lode::LoadReport loaded;
  if (!standard_input) {
    file.open(path, std::ios::binary);
    if (!file) {
      return report({lode::ErrorKind::not_found, "cannot read " + path});
    }
    const auto checked = lode::check_dump(file, name);
    if (!checked) return report_load(checked.error(), loaded);
    file.close();
    file.open(path, std::ios::binary);
  }
  std::istream& in = standard_input ? std::cin : file;
  lode::DumpReader reader(in, name);
  const auto keys = reader.header();
  if (!keys) return report_load(keys.error(), loaded);
  lode::Options options;
  options.key_kind = *keys;
  auto store = Store::open(call.directory, options);
  if (!store) return report(store.error());
  constexpr std::size_t batch_bytes = std::size_t{1} << 20;
  const auto status = lode::load_dump(**store, reader, batch_bytes, loaded);
  if (!status) return report_load(status.error(), loaded);
  std::printf("%llu entries loaded\n", static_cast<unsigned long long>(loaded.entries));
  const auto closed = (*store)->close();
  return closed ? exit_done : report(closed.error());
}

int rebuild(const Call& call) {
  lode::RebuildPolicy policy;
  for (const std::string& argument : call.arguments) {
    if (argument == "--accept-loss") {
      policy.accept_loss = true;
    } else if (argument == "--index-only") {
      policy.check_values = false;
    } else {
      return wrong_usage("unknown argument of rebuild: " + argument);
    }
  }
  lode::Options options;
  options.key_kind = call.keys();
  const auto rebuilt = Store::rebuild(call.directory, options, policy);
  if (!rebuilt) return report(rebuilt.error());
  std::printf(
      "trees %llu, damaged %llu, rebuilt %llu with %llu entries, of that %llu pages in place\n",
      static_cast<unsigned long long>(rebuilt->trees),
      static_cast<unsigned long long>(rebuilt->damaged_trees),
      static_cast<unsigned long long>(rebuilt->rebuilt_trees),
      static_cast<unsigned long long>(rebuilt->rebuilt_entries),
      static_cast<unsigned long long>(rebuilt->restored_pages));
  if (rebuilt->lost.empty()) return exit_done;
  std::printf("%llu entries are lost, with keys from ... to (or older values show there):\n",
              static_cast<unsigned long long>(rebuilt->lost_entries));
  for (const lode::LostRange& range : rebuilt->lost) {
    print_key(call, range.first);
    std::fputc('\t', stdout);
    print_key(call, range.last);
    std::fputc('\n', stdout);
  }
  if (!policy.accept_loss) std::puts("nothing was changed; --accept-loss goes on without them");
  return exit_not_there;
}

template <class Outcome>
int done(const Outcome& outcome) {
  return outcome ? exit_done : report(outcome.error());
}

int run(Store& store, const Call& call) {
  const auto& arguments = call.arguments;
  if (call.verb == "stat") return stat(store);
  if (call.verb == "verify") return verify(store);
  if (call.verb == "backup") return backup(store, arguments[0]);
  if (call.verb == "checkpoint") return done(store.checkpoint());
  if (call.verb == "compact") return done(store.compact());
  if (call.verb == "dump") return dump(store, call);
  std::vector<std::string> keys(call.verb == "put" ? 1 : arguments.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto kind = call.verb == "mark" ? lode::KeyKind::bytes : call.keys();
    if (!lode::parse_key(kind, arguments[i], keys[i])) {
      return wrong_usage((call.u64 ? "not a number: " : "a bad escape in: ") + arguments[i]);
    }
  }
  if (call.verb == "scan") return scan(store, call, keys);
  if (call.verb == "get") return get(store, keys[0]);
  if (call.verb == "mark") return done(store.mark(keys[0], Durability::sync));
  if (call.verb == "put") {
    std::string value;
    if (!lode::unescape(arguments[1], value)) {
      return wrong_usage("a bad escape in: " + arguments[1]);
    }
    return done(store.put(keys[0], value, Durability::sync));
  }
  return done(store.erase(keys[0], Durability::sync));
}

}  // namespace

int main(int argc, char** argv) {
  struct Verb {
    std::string_view name;
    std::size_t least;
    std::size_t most;
  };
  constexpr Verb verbs[] = {
      {"stat", 0, 0},  {"get", 1, 1},        {"scan", 0, 2},    {"verify", 0, 0}, {"put", 2, 2},
      {"erase", 1, 1}, {"checkpoint", 0, 0}, {"compact", 0, 0}, {"backup", 1, 1}, {"dump", 0, 0},
      {"load", 1, 1},  {"rebuild", 0, 2},    {"mark", 1, 1}};
  std::vector<std::string> words(argv + 1, argv + argc);
  Call call;
  if (words.size() > 1 && words[1] == "--u64") {
    call.u64 = true;
    words.erase(words.begin() + 1);
  }
  if (words.size() < 2) return wrong_usage("a verb and a directory are needed");
  call.verb = words[0];
  call.directory = words[1];
  call.arguments.assign(words.begin() + 2, words.end());
  const Verb* found = nullptr;
  for (const Verb& verb : verbs) {
    if (verb.name == call.verb) found = &verb;
  }
  if (found == nullptr) return wrong_usage("unknown verb: " + call.verb);
  if (call.arguments.size() < found->least || call.arguments.size() > found->most) {
    return wrong_usage("wrong number of arguments for " + call.verb);
  }
  if (call.verb == "load") return load(call);
  if (call.verb == "rebuild") return rebuild(call);
  lode::Options options;
  options.create = call.verb == "put";
  options.read_only = !call.writes();
  options.key_kind = call.keys();
  auto store = Store::open(call.directory, options);
  if (!store) return report(store.error());
  const int status = run(**store, call);
  if (status != exit_done) return status;
  const auto closed = (*store)->close();
  return closed ? exit_done : report(closed.error());
}
