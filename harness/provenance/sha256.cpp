#include "harness/provenance/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

namespace assay {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    ASSAY_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
                "libcrypto has no SHA-256");
  }
  void add(const void* data, std::size_t size) {
    ASSAY_CHECK(EVP_DigestUpdate(context_.get(), data, size) == 1, "SHA-256 update failed");
  }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    ASSAY_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1,
                "SHA-256 final failed");
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
      text += kDigits[digest[i] >> 4];
      text += kDigits[digest[i] & 15];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (!file) return fail(system_error("cannot read the file for its digest", errno).at(path));
  Sha256 hash;
  std::vector<char> piece(std::size_t{1} << 18);
  while (std::feof(file.get()) == 0 && std::ferror(file.get()) == 0) {
    hash.add(piece.data(), std::fread(piece.data(), 1, piece.size(), file.get()));
  }
  if (std::ferror(file.get()) != 0) {
    return fail(system_error("cannot read the file for its digest", errno).at(path));
  }
  return hash.hex();
}

}  // namespace assay
