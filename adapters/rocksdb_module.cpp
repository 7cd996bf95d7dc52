#include "adapters/rocksdb_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "assay_rocksdb.so";

/// Beside the program; for programs in the folders of the build (tests), where the build put it. A
/// program that was copied away must bring its own: the build's may be of another day. A run path
/// would not do: sanitizers stand before dlopen, and the run path of the caller is lost.
std::string module_path() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const bool of_the_build = program.string().starts_with(ASSAY_MODULE_FOLDER "/");
  const fs::path folder = of_the_build ? fs::path(ASSAY_MODULE_FOLDER) : program.parent_path();
  return (folder / kFileName).string();
}

Result<const Driver*> load() {
  const std::string path = module_path();
  // Lazy, as the linker does for every program here: a small part of RocksDB's calls is ever made.
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  void* symbol = library == nullptr ? nullptr : ::dlsym(library, kRocksdbEntrySymbol);
  if (symbol == nullptr) {
    const char* why = ::dlerror();
    return fail(Error(ErrorKind::environment, std::string("cannot load the RocksDB adapter: ") +
                                                  (why == nullptr ? "unknown reason" : why))
                    .at(path)
                    .hint(std::string(kFileName) + " is built with the command and stands beside "
                                                   "it: copy both, or build again"));
  }
  return reinterpret_cast<RocksdbEntry>(symbol)();
}

}  // namespace

Result<const Driver*> load_rocksdb_driver() {
  // Not a shared_ptr to the library: what was loaded is never unloaded, threads may be in it.
  static const Result<const Driver*> loaded = load();
  return loaded;
}

}  // namespace assay
