// The one file of a `rewrite` store: "map", replaced as a whole through "map.new" and a rename.
//
// A header (magic, number of entries, XXH3 of what follows), then each entry: u32 length of the
// key, u32 length of the value, key, value; little-endian. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "adapters/result.h"

namespace assay {

using RewriteMap = std::map<std::string, std::string, std::less<>>;

struct RewriteCounters {
  std::uint64_t rewrites = 0;
  std::uint64_t bytes_written = 0;
};

class RewriteFile {
 public:
  explicit RewriteFile(const std::string& directory);

  /// Error `store`: the file is not what write() makes.
  [[nodiscard]] Result<RewriteMap> read() const;
  /// The file holds `map` afterwards, or what it held before; with `synced` also after a power cut.
  [[nodiscard]] Status write(const RewriteMap& map, bool synced);
  [[nodiscard]] const RewriteCounters& counters() const { return counters_; }

 private:
  [[nodiscard]] Status write_new(bool synced) const;

  std::string directory_;
  std::string path_;
  std::string new_path_;
  std::string bytes_;  ///< kept between rewrites, so that its memory is
  RewriteCounters counters_;
};

}  // namespace assay
