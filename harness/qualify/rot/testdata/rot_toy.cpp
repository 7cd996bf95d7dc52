#include "harness/qualify/rot/testdata/rot_toy.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/qualify/testdata/toy_store.h"

namespace assay::qualify::rot {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A line a file: its name, its size and the FNV-1a hash of its bytes.
std::string sums_of(const std::string& directory) {
  std::map<std::string, std::string> lines;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name == "sums") continue;
    const std::string bytes = content_of(entry.path());
    std::uint64_t hash = 14695981039346656037U;
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
    lines[name] = std::to_string(bytes.size()) + " " + std::to_string(hash);
  }
  std::string text;
  for (const auto& [name, sum] : lines) text += name + " " + sum + "\n";
  return text;
}

class RotToyStore final : public Store {
 public:
  RotToyStore(const std::string& directory, std::unique_ptr<Store> inner, Settings settings)
      : Store(directory), inner_(std::move(inner)), settings_(std::move(settings)) {}

  Result<std::unique_ptr<Session>> session() override { return inner_->session(); }
  Status sync() override { return inner_->sync(); }
  Status checkpoint() override { return inner_->checkpoint(); }
  Status settle() override { return inner_->settle(); }
  Result<Settings> effective_settings() override { return settings_; }
  Status close() override {
    ASSAY_TRY(inner_->close());
    std::ofstream(directory_ + "/sums") << sums_of(directory_);
    return {};
  }

 private:
  std::unique_ptr<Store> inner_;
  Settings settings_;
};

class RotToyDriver final : public Driver {
 public:
  std::string name() const override { return "rot-toy"; }
  std::string version() const override { return "1"; }
  Capabilities capabilities() const override { return toy_driver().capabilities(); }
  std::vector<Setting> settings(DurabilityClass /*durability*/) const override {
    return {{"checksums", "on", "a test chooses", "rot_toy.h", {"on", "off"}},
            {"mistake",
             "none",
             "a test chooses",
             "rot_toy.h",
             {"none", "ignores", "crashes", "hangs"}}};
  }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    const auto settings = resolve_settings(*this, options.durability, options.settings);
    if (!settings) return fail(settings.error());
    const fs::path sums = options.directory + "/sums";
    std::error_code code;
    if (fs::exists(sums, code) && content_of(sums) != sums_of(options.directory)) {
      const std::string& mistake = settings->at("mistake");
      if (mistake == "none") return fail(ErrorKind::store, "a file is not as it was left");
      if (mistake == "crashes") std::abort();
      if (mistake == "hangs")
        for (;;) ::pause();
    }
    fs::remove(sums, code);
    OpenOptions inner = options;
    inner.settings.clear();
    auto store = toy_driver().open(inner);
    if (!store) return fail(store.error());
    return std::make_unique<RotToyStore>(options.directory, std::move(*store), *settings);
  }
};

}  // namespace

const Driver& rot_toy_driver() {
  static const RotToyDriver driver;
  return driver;
}

}  // namespace assay::qualify::rot
