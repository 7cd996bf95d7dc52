#include "adapters/plugin/plugin_loader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "adapters/plain_name.h"
#include "adapters/plugin.h"
#include "adapters/plugin/crash_note.h"
#include "adapters/plugin/plugin_driver.h"

namespace assay {
namespace {

constexpr const char* kEntrySymbol = "assay_plugin_entry";
using Entry = const assay_plugin* (*)(std::uint32_t);

struct FreeDeleter {
  void operator()(char* text) const { ::free(text); }
};

Error refused(const std::string& path, std::string why) {
  return Error(ErrorKind::bad_input, std::move(why)).at(path);
}

/// An arm is called after the file. The path stands in every record.
Status check_path(const std::string& path) {
  const std::string shown = printable(path);
  if (shown != path) {
    return fail(refused(shown, "the plug-in's path is not printable")
                    .hint("move it: the path must be UTF-8 without control characters"));
  }
  const std::string name = std::filesystem::path(path).stem().string();
  const std::string fault = plain_name_fault(name);
  if (fault.empty()) return {};
  return fail(
      refused(path, fmt::format("an arm cannot be called after the plug-in's file: {}", fault))
          .hint("rename the file: " + plain_name_rule()));
}

/// dlopen's own words for these cases are hard to read, so they are told apart before.
Result<std::string> resolve_file(const std::string& path) {
  const std::unique_ptr<char, FreeDeleter> resolved(::realpath(path.c_str(), nullptr));
  if (resolved == nullptr) {
    return fail(refused(path, fmt::format("cannot load the plug-in: {}", std::strerror(errno)))
                    .hint("--store takes a name that `assay store list` shows, or the path of a "
                          "shared object"));
  }
  std::string absolute = resolved.get();
  struct stat info{};
  if (::stat(absolute.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(refused(path, "cannot load the plug-in: not a regular file"));
  }
  const int file = ::open(absolute.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return fail(refused(path, fmt::format("cannot read the plug-in: {}", std::strerror(errno))));
  }
  std::array<char, 4> magic{};
  const ssize_t count = ::read(file, magic.data(), magic.size());
  ::close(file);
  if (count != 4 || std::memcmp(magic.data(), "\177ELF", 4) != 0) {
    return fail(refused(path, "cannot load the plug-in: not a shared object (no ELF header)")
                    .hint("build it with -shared -fPIC"));
  }
  return absolute;
}

std::string loader_message() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown reason" : text;
}

Result<std::unique_ptr<const Driver>> load(const std::string& path, const std::string& absolute) {
  void* library = nullptr;
  {
    // The note of a crash shows the path: the store's own name is not known yet.
    const CallMark mark(path.c_str(), "its constructors");
    library = ::dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return fail(refused(path, fmt::format("cannot load the plug-in: {}", loader_message())));
  }
  void* symbol = ::dlsym(library, kEntrySymbol);
  if (symbol == nullptr) {
    return fail(refused(path, fmt::format("not a plug-in: it exports no {}", kEntrySymbol))
                    .hint("adapters/plugin.h declares the function to define, as extern \"C\""));
  }
  const assay_plugin* given = nullptr;
  {
    const CallMark mark(path.c_str(), kEntrySymbol);
    given = reinterpret_cast<Entry>(symbol)(ASSAY_PLUGIN_ABI);
  }
  if (given == nullptr) {
    return fail(
        refused(path, fmt::format("{}({}) returned NULL: the plug-in does not serve plug-in "
                                  "ABI {}",
                                  kEntrySymbol, ASSAY_PLUGIN_ABI, ASSAY_PLUGIN_ABI))
            .hint("rebuild it against this assay's adapters/plugin.h"));
  }
  Result<assay_plugin> table = check_table(*given, path);
  if (!table) return std::unexpected(std::move(table).error());
  return make_plugin_driver(*table, path);
}

}  // namespace

Result<const Driver*> load_plugin(const std::string& path) {
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, std::unique_ptr<const Driver>>;
  ASSAY_TRY(check_path(path));
  const Result<std::string> absolute = resolve_file(path);
  if (!absolute) return std::unexpected(absolute.error());
  const std::lock_guard lock(mutex);
  if (const auto known = loaded.find(*absolute); known != loaded.end()) return known->second.get();
  install_crash_notes();
  Result<std::unique_ptr<const Driver>> driver = load(path, *absolute);
  if (!driver) return std::unexpected(std::move(driver).error());
  return loaded.emplace(*absolute, std::move(*driver)).first->second.get();
}

}  // namespace assay
