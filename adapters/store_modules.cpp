#include "adapters/store_modules.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace assay {
namespace {

namespace fs = std::filesystem;

struct Module {
  const char* shown;
  const char* file;
  const char* symbol;
  const char* hint;
};

/// Beside the program; for programs in the folders of the build (tests), where the build put it. A
/// program that was copied away must bring its own: the build's may be of another day. A run path
/// would not do: sanitizers stand before dlopen, and the run path of the caller is lost.
std::string module_path(const char* file) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const bool of_the_build = program.string().starts_with(ASSAY_MODULE_FOLDER "/");
  const fs::path folder = of_the_build ? fs::path(ASSAY_MODULE_FOLDER) : program.parent_path();
  return (folder / file).string();
}

Result<const Driver*> load(const Module& module) {
  const std::string path = module_path(module.file);
  // Lazy, as the linker does for every program here: a small part of a library's calls is ever
  // made.
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  void* symbol = library == nullptr ? nullptr : ::dlsym(library, module.symbol);
  if (symbol == nullptr) {
    const char* why = ::dlerror();
    return fail(
        Error(ErrorKind::environment, std::string("cannot load the ") + module.shown +
                                          " adapter: " + (why == nullptr ? "unknown reason" : why))
            .at(path)
            .hint(std::string(module.file) + module.hint));
  }
  return reinterpret_cast<StoreEntry>(symbol)();
}

}  // namespace

// Neither is a shared_ptr to the library: what was loaded is never unloaded, threads may be in it.
Result<const Driver*> load_rocksdb_driver() {
  static const Result<const Driver*> loaded =
      load({"RocksDB", "assay_rocksdb.so", kRocksdbEntrySymbol,
            " is built with the command and stands beside it: copy both, or build again"});
  return loaded;
}

Result<const Driver*> load_postgresql_driver() {
  static const Result<const Driver*> loaded = load(
      {"PostgreSQL", "assay_postgresql.so", kPostgresqlEntrySymbol,
       " is built with the command where the Debian package libpq-dev is installed, stands beside "
       "it and needs libpq5"});
  return loaded;
}

}  // namespace assay
