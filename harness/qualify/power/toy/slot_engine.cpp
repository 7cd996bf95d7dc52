// data: two header pages, then two slots of kSlot bytes. A commit writes the whole map into the
// slot that is not in use, syncs, then writes the header page that is not in use and syncs.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "harness/qualify/power/toy/toy_store.h"

namespace assay::qualify::power::toy {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSlot = 16 * kPage;
constexpr std::uint64_t kSlotsAt = 2 * kPage;

class SlotEngine final : public Engine {
 public:
  SlotEngine(std::string directory, Mistakes mistakes)
      : directory_(std::move(directory)), mistakes_(std::move(mistakes)) {}
  ~SlotEngine() override {
    if (mapping_ != nullptr) ::munmap(mapping_, kSlotsAt + 2 * kSlot);
  }

  Status load(Map& map) override {
    const std::string path = directory_ + "/data";
    data_ = std::make_unique<Handle>(path, O_RDWR | O_CREAT);
    std::string bytes = data_->read();
    if (bytes.size() < kSlotsAt) {
      data_->resize(is("grows-after-the-header") ? kSlotsAt : kSlotsAt + 2 * kSlot);
      static_cast<void>(::fsync(data_->get()));
      sync_directory(directory_);
      bytes = data_->read();
    }
    if (maps()) {
      mapping_ = static_cast<char*>(::mmap(nullptr, kSlotsAt + 2 * kSlot, PROT_READ | PROT_WRITE,
                                           MAP_SHARED, data_->get(), 0));
      ASSAY_CHECK(mapping_ != MAP_FAILED, "a toy's file can be mapped");
    }
    ASSAY_TRY(take_header(bytes, 0));
    ASSAY_TRY(take_header(bytes, 1));
    if (sequence_ == 0) return {};
    const std::string_view payload = std::string_view(bytes).substr(0, kSlotsAt + 2 * kSlot);
    const std::uint64_t at = slot_at(sequence_);
    if (at + length_ > bytes.size()) return fail(ErrorKind::store, "toy: the file is too short");
    const std::string_view slot = payload.substr(at, length_);
    if (!unpack(slot, map)) return fail(ErrorKind::store, "toy: the slot is damaged");
    return {};
  }

  Status commit(const Map& after, std::span<const Mutation>) override {
    const std::string packed = pack(after);
    ASSAY_CHECK(packed.size() <= kSlot, "a toy's contents are small");
    const std::uint64_t next = sequence_ + 1;
    if (is("header-before-the-data")) {
      write_header(next, packed.size());
      ASSAY_TRY(sync(0, kSlotsAt));
    }
    if (is("grows-after-the-header")) {
      write_header(next, packed.size());
      ASSAY_TRY(sync(0, kSlotsAt));
      data_->resize(kSlotsAt + 2 * kSlot);
    }
    put(packed, slot_at(next));
    if (!is("one-sync-for-data-and-header")) {
      ASSAY_TRY(sync(slot_at(next), packed.size()));
    }
    write_header(next, packed.size());
    if (!is("header-not-synced")) ASSAY_TRY(sync(0, kSlotsAt));
    sequence_ = next;
    return {};
  }

 private:
  [[nodiscard]] bool is(const char* mistake) const { return mistakes_.contains(mistake); }
  [[nodiscard]] bool maps() const {
    return is("mapped") || is("mapping-without-msync") || is("asynchronous-msync") ||
           is("msync-of-another-range");
  }
  static std::uint64_t slot_at(std::uint64_t sequence) { return kSlotsAt + (sequence % 2) * kSlot; }

  /// Header: checksum, sequence, length; with the mistake, spread over sectors and unchecked.
  Status take_header(const std::string& bytes, std::uint64_t which) {
    const std::string_view page = std::string_view(bytes).substr(which * kPage, kPage);
    std::uint64_t sequence = number(page.substr(8));
    std::uint64_t length = number(page.substr(is("torn-header") ? 2048 : 16));
    if (!is("torn-header") && number(page) != checksum(number(sequence) + number(length), which)) {
      return {};
    }
    if (sequence <= sequence_) return {};
    sequence_ = sequence;
    length_ = length;
    return {};
  }

  void write_header(std::uint64_t sequence, std::uint64_t length) {
    const std::uint64_t which = is("one-header") ? 0 : sequence % 2;
    const std::uint64_t sum = checksum(number(sequence) + number(length), which);
    std::string page = number(sum) + number(sequence) + number(length);
    if (is("torn-header")) {
      page.resize(2048, '\0');
      page += number(length);
    }
    put(page, which * kPage);
  }

  void put(std::string_view bytes, std::uint64_t at) {
    if (mapping_ == nullptr) {
      data_->write(bytes, at);
    } else {
      std::memcpy(mapping_ + at, bytes.data(), bytes.size());
    }
  }

  Status sync(std::uint64_t from, std::uint64_t bytes) {
    if (is("mapping-without-msync")) return {};
    if (mapping_ != nullptr) {
      if (is("msync-of-another-range")) from = 0;
      const std::uint64_t start = from / kPage * kPage;
      ::msync(mapping_ + start, is("msync-of-another-range") ? kPage : from + bytes - start,
              is("asynchronous-msync") ? MS_ASYNC : MS_SYNC);
      return {};
    }
    if (data_->sync()) return {};
    if (is("tries-a-failed-sync-again") && data_->sync()) return {};
    return fail(ErrorKind::store, "toy: the data cannot be synced");
  }

  std::string directory_;
  Mistakes mistakes_;
  std::unique_ptr<Handle> data_;
  char* mapping_ = nullptr;
  std::uint64_t sequence_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace

std::unique_ptr<Engine> slot_engine(const std::string& directory, const Mistakes& mistakes) {
  return std::make_unique<SlotEngine>(directory, mistakes);
}

}  // namespace assay::qualify::power::toy
