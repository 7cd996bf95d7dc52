// Source, build, binary and the libraries that are loaded with it.
#include <link.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "assay_source_state.h"  // written at build time by source_state.cmake
#include "harness/provenance/sha256.h"
#include "harness/provenance/system_files.h"

namespace assay::provenance {
namespace {

using nlohmann::json;

json digest_of(const std::string& path) {
  auto digest = sha256_file(path);
  return digest ? json(*digest) : unknown(digest.error().message());
}

json text_or(std::string_view text, std::string_view why) {
  return text.empty() ? unknown(why) : json(text);
}

int note_library(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  const std::string path = info->dlpi_name;
  // The program itself has no name here, and the kernel's own page (vdso) no file.
  if (!path.empty() && path.front() == '/') static_cast<json*>(data)->push_back(path);
  return 0;
}

}  // namespace

json describe_source() {
  constexpr std::string_view kNoGit = "the source was no git work tree when it was built";
  json source = {{"commit", text_or(ASSAY_SOURCE_COMMIT, kNoGit)},
                 {"dirty", unknown(kNoGit)},
                 {"diff_sha256", unknown(kNoGit)}};
  if (std::string_view(ASSAY_SOURCE_COMMIT).empty()) return source;
  const bool dirty = !std::string_view(ASSAY_SOURCE_DIFF_SHA256).empty();
  source["dirty"] = dirty;
  source["diff_sha256"] = dirty ? ASSAY_SOURCE_DIFF_SHA256 : "none";
  return source;
}

json describe_build() {
  return {{"compiler", ASSAY_BUILD_COMPILER},
          {"flags", ASSAY_BUILD_FLAGS},
          {"type", ASSAY_BUILD_TYPE},
          {"sanitizers",
           std::string_view(ASSAY_BUILD_SANITIZERS).empty() ? "none" : ASSAY_BUILD_SANITIZERS},
          {"assertions",
#ifdef NDEBUG
           "off"
#else
           "on"
#endif
          }};
}

json describe_binary() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return {{"path", unknown(error.message())}, {"sha256", unknown(error.message())}};
  return {{"path", path.string()}, {"sha256", digest_of("/proc/self/exe")}};
}

json describe_libraries() {
  json paths = json::array();
  ::dl_iterate_phdr(&note_library, &paths);
  json libraries = json::object();
  for (const json& path : paths) {
    libraries[path.get<std::string>()] = digest_of(path.get<std::string>());
  }
  return libraries;
}

json describe_process(const std::vector<std::string>& command_line) {
  constexpr std::string_view kPrefixes[] = {
      "ASSAY_", "LD_",  "MALLOC_", "GLIBC_TUNABLES=", "LANG=",         "LC_",
      "TZ=",    "OMP_", "ASAN_",   "TSAN_",           "UBSAN_OPTIONS", "ROCKSDB_"};
  json variables = json::object();
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    for (const std::string_view prefix : kPrefixes) {
      if (text.starts_with(prefix)) {
        variables[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
      }
    }
  }
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  return {{"command_line", command_line},
          {"working_directory", error ? unknown(error.message()) : json(folder.string())},
          {"environment", variables},
          {"user_id", ::getuid()}};
}

}  // namespace assay::provenance
