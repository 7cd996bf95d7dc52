// data: the packed map in place, kBytes long. A commit writes what the data were into the journal
// with a checksum, syncs it and the directory, writes the data in place, syncs them, and empties
// the journal. A journal that is whole when the store opens is put back.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/qualify/power/toy/toy_store.h"

namespace assay::qualify::power::toy {
namespace {

constexpr std::size_t kBytes = 12 * 4096;

class UndoEngine final : public Engine {
 public:
  UndoEngine(std::string directory, Mistakes mistakes)
      : directory_(std::move(directory)), mistakes_(std::move(mistakes)) {}

  Status load(Map& map) override {
    data_ = std::make_unique<Handle>(directory_ + "/data", O_RDWR | O_CREAT);
    journal_ = std::make_unique<Handle>(directory_ + "/journal", O_RDWR | O_CREAT);
    sync_directory(directory_);
    put_back();
    bytes_ = data_->read();
    if (bytes_.empty()) {
      bytes_.resize(kBytes, '\0');
      data_->write(bytes_, 0);
      static_cast<void>(data_->sync());
    }
    if (!unpack(bytes_, map)) return fail(ErrorKind::store, "toy: the data are damaged");
    return {};
  }

  Status commit(const Map& after, std::span<const Mutation>) override {
    std::string packed = pack(after);
    ASSAY_CHECK(packed.size() <= kBytes, "a toy's contents are small");
    packed.resize(kBytes, '\0');
    if (!is("no-journal")) {
      journal_->write(number(checksum(bytes_, 0)) + bytes_, 0);
      if (!is("journal-not-synced")) static_cast<void>(journal_->sync());
    }
    data_->write(packed, 0);
    if (!is("journal-emptied-before-the-data") && !is("data-not-synced")) {
      static_cast<void>(data_->sync());
    }
    empty_journal();
    if (is("journal-emptied-before-the-data")) static_cast<void>(data_->sync());
    bytes_ = std::move(packed);
    return {};
  }

 private:
  [[nodiscard]] bool is(const char* mistake) const { return mistakes_.contains(mistake); }

  void empty_journal() {
    if (is("journal-not-emptied-durably")) {
      journal_->resize(0);
      return;
    }
    journal_->resize(0);
    static_cast<void>(::fsync(journal_->get()));
  }

  void put_back() {
    const std::string journal = journal_->read();
    if (journal.size() <= 8) return;
    const std::string_view before = std::string_view(journal).substr(8);
    if (!is("journal-without-checksum") && number(journal) != checksum(before, 0)) return;
    if (is("recovery-empties-the-journal-first")) {
      empty_journal();
      data_->write(before, 0);
      static_cast<void>(data_->sync());
      return;
    }
    data_->write(before, 0);
    if (!is("recovery-does-not-sync")) static_cast<void>(data_->sync());
    empty_journal();
  }

  std::string directory_;
  Mistakes mistakes_;
  std::unique_ptr<Handle> data_;
  std::unique_ptr<Handle> journal_;
  std::string bytes_;
};

}  // namespace

std::unique_ptr<Engine> undo_engine(const std::string& directory, const Mistakes& mistakes) {
  return std::make_unique<UndoEngine>(directory, mistakes);
}

}  // namespace assay::qualify::power::toy
