// Where `assay serve` keeps a store, and the lock that lets one server have it.
//
// ROOT/assay-served-NAME/ holds a mark that says whose it is and for which store, and data/. It
// stays when the server ends: the next one goes on with it. Invariant: a directory without the mark
// is never used. The lock is the kernel's: it goes with its process, however that ends.
#pragma once

#include <string>

#include "adapters/result.h"

namespace assay {

class ServeDirectory {
 public:
  /// Makes it below `root`, which must exist, or takes the one that is there. `store` is a name or
  /// the path of a plug-in. Errors: `bad_input` for a foreign directory or one in use.
  [[nodiscard]] static Result<ServeDirectory> below(const std::string& root,
                                                    const std::string& store);
  /// Uses a directory that the caller has made for this store. For a server that is started by the
  /// driver of adapters/served.
  [[nodiscard]] static Result<ServeDirectory> given(const std::string& directory);

  ServeDirectory(ServeDirectory&& other) noexcept;
  ServeDirectory& operator=(ServeDirectory&&) = delete;
  ServeDirectory(const ServeDirectory&) = delete;
  ServeDirectory& operator=(const ServeDirectory&) = delete;
  ~ServeDirectory();
  [[nodiscard]] const std::string& data() const { return data_; }

 private:
  ServeDirectory(std::string data, int lock) : data_(std::move(data)), lock_(lock) {}
  std::string data_;
  int lock_;
};

}  // namespace assay
