// The `lode` command: looks into a store and changes it from a shell. Prints its usage without
// arguments. Exit status: 0 done, 1 the key is not there or verify found damage, 2 wrong usage,
// 3 the store reported an error.
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lode.h"

namespace {

using lode::Durability;
using lode::Store;

constexpr int exit_done = 0;
constexpr int exit_not_there = 1;
constexpr int exit_usage = 2;
constexpr int exit_error = 3;

constexpr std::string_view usage_text =
    "usage: lode VERB DIRECTORY [ARGUMENT...]\n"
    "  stat DIR                 counters and what opening found (read-only)\n"
    "  get DIR KEY              print a value\n"
    "  scan DIR [FIRST [LAST]]  print entries with FIRST <= key < LAST, one a line: key TAB value\n"
    "  verify DIR               read everything and check it (read-only)\n"
    "  backup DIR NEW           copy what is in the store into a new one (read-only on DIR)\n"
    "  put DIR KEY VALUE        store a value durably; makes the store if there is none\n"
    "  erase DIR KEY            erase a key durably\n"
    "  checkpoint DIR           move the log into trees\n"
    "  compact DIR              merge everything into one run\n"
    "Keys and values may contain \\xNN for any byte and \\\\ for a backslash; output is written "
    "the\n"
    "same way. Stores of u64 keys: add --u64 behind the verb; keys are decimal numbers.\n";

int wrong_usage(std::string_view what) {
  std::fprintf(stderr, "lode: %.*s\n%s", static_cast<int>(what.size()), what.data(),
               usage_text.data());
  return exit_usage;
}

int report(const lode::Error& error) {
  std::fprintf(stderr, "lode: %s: %s\n", std::string(lode::to_string(error.kind)).c_str(),
               error.what.c_str());
  return exit_error;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool unescape(std::string_view text, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      out += '\\';
      ++i;
    } else if (i + 3 < text.size() && text[i + 1] == 'x' && hex_digit(text[i + 2]) >= 0 &&
               hex_digit(text[i + 3]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
      i += 3;
    } else {
      return false;
    }
  }
  return true;
}

void print_escaped(std::string_view text) {
  for (const char c : text) {
    if (c == '\\') {
      std::fputs("\\\\", stdout);
    } else if (c < ' ' || c == '\x7f' || static_cast<unsigned char>(c) >= 0x80) {
      std::printf("\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      std::fputc(c, stdout);
    }
  }
}

struct Call {
  std::string verb;
  std::string directory;
  bool u64 = false;
  std::vector<std::string> arguments;  // unescaped

  [[nodiscard]] bool writes() const {
    return verb == "put" || verb == "erase" || verb == "checkpoint" || verb == "compact";
  }
};

bool parse_key(const Call& call, const std::string& text, std::string& key) {
  if (!call.u64) {
    key = text;
    return true;
  }
  std::uint64_t number = 0;
  if (text.empty() || text.size() > 20) return false;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (number > (~std::uint64_t{0} - digit) / 10) return false;
    number = number * 10 + digit;
  }
  key = lode::u64_key(number);
  return true;
}

void print_key(const Call& call, std::string_view key) {
  if (!call.u64 || key.size() != 8) return print_escaped(key);
  std::uint64_t number = 0;
  for (const char c : key) number = number << 8 | static_cast<unsigned char>(c);
  std::printf("%llu", static_cast<unsigned long long>(number));
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
  std::vector<std::string> keys(call.verb == "put" ? 1 : arguments.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!parse_key(call, arguments[i], keys[i]))
      return wrong_usage("not a number: " + arguments[i]);
  }
  if (call.verb == "scan") return scan(store, call, keys);
  if (call.verb == "get") return get(store, keys[0]);
  if (call.verb == "put") return done(store.put(keys[0], arguments[1], Durability::sync));
  return done(store.erase(keys[0], Durability::sync));
}

}  // namespace

int main(int argc, char** argv) {
  struct Verb {
    std::string_view name;
    std::size_t least;
    std::size_t most;
  };
  constexpr Verb verbs[] = {{"stat", 0, 0},       {"get", 1, 1},     {"scan", 0, 2},
                            {"verify", 0, 0},     {"put", 2, 2},     {"erase", 1, 1},
                            {"checkpoint", 0, 0}, {"compact", 0, 0}, {"backup", 1, 1}};
  std::vector<std::string> words(argv + 1, argv + argc);
  Call call;
  if (words.size() > 1 && words[1] == "--u64") {
    call.u64 = true;
    words.erase(words.begin() + 1);
  }
  if (words.size() < 2) return wrong_usage("a verb and a directory are needed");
  call.verb = words[0];
  call.directory = words[1];
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (call.verb == "backup") {  // a path, as it is
      call.arguments.push_back(words[i]);
      continue;
    }
    std::string plain;
    if (!unescape(words[i], plain)) return wrong_usage("a bad escape in: " + words[i]);
    call.arguments.push_back(plain);
  }
  const Verb* found = nullptr;
  for (const Verb& verb : verbs) {
    if (verb.name == call.verb) found = &verb;
  }
  if (found == nullptr) return wrong_usage("unknown verb: " + call.verb);
  if (call.arguments.size() < found->least || call.arguments.size() > found->most) {
    return wrong_usage("wrong number of arguments for " + call.verb);
  }
  lode::Options options;
  options.create = call.verb == "put";
  options.read_only = !call.writes();
  options.key_kind = call.u64 ? lode::KeyKind::u64 : lode::KeyKind::bytes;
  auto store = Store::open(call.directory, options);
  if (!store) return report(store.error());
  const int status = run(**store, call);
  if (status != exit_done) return status;
  const auto closed = (*store)->close();
  return closed ? exit_done : report(closed.error());
}
