// What AES-256-GCM of 1 KiB costs through OpenSSL, one message with its own nonce and tag at a
// time, beside the figure that R1's authors published (results/reference/cubelog.json,
// R1-AES-GCM-1K; key length and library are not stated there). Nothing in the tree encrypts; this
// is only for the report.
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

namespace {

constexpr int kMessageBytes = 1024;
constexpr int kTagBytes = 16;
constexpr double kReferenceNs = 1400;

struct Free {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

void seal(benchmark::State& state, const EVP_CIPHER* cipher) {
  const std::unique_ptr<EVP_CIPHER_CTX, Free> context(EVP_CIPHER_CTX_new());
  std::array<unsigned char, 32> key{};
  std::array<unsigned char, 12> nonce{};
  std::array<unsigned char, kMessageBytes> plain{};
  std::array<unsigned char, kMessageBytes> sealed{};
  std::array<unsigned char, kTagBytes> tag{};
  bool good = context != nullptr &&
              EVP_EncryptInit_ex(context.get(), cipher, nullptr, key.data(), nullptr) == 1;
  std::uint64_t message = 0;
  for (auto _ : state) {
    ++message;
    std::memcpy(nonce.data(), &message, sizeof(message));  // never the same twice
    int written = 0;
    int last = 0;
    good = good &&
           EVP_EncryptInit_ex(context.get(), nullptr, nullptr, nullptr, nonce.data()) == 1 &&
           EVP_EncryptUpdate(context.get(), sealed.data(), &written, plain.data(), kMessageBytes) ==
               1 &&
           EVP_EncryptFinal_ex(context.get(), sealed.data() + written, &last) == 1 &&
           EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
    benchmark::DoNotOptimize(sealed);
    benchmark::DoNotOptimize(tag);
  }
  if (!good) state.SkipWithError("OpenSSL refused a call");
  state.SetBytesProcessed(state.iterations() * kMessageBytes);
  state.counters["reference_ns"] = kReferenceNs;
}

void aes_128_gcm(benchmark::State& state) {
  seal(state, EVP_aes_128_gcm());
}
void aes_256_gcm(benchmark::State& state) {
  seal(state, EVP_aes_256_gcm());
}
BENCHMARK(aes_128_gcm);
BENCHMARK(aes_256_gcm);

}  // namespace

BENCHMARK_MAIN();
