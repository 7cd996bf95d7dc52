#include "adapters/null_store.h"

namespace assay {
namespace {

// A get answers with one and the same value, so that what the harness does with a value is in its
// own cost; without a declared size it finds nothing. Contents are wrong for every key: nothing
// that this store returns may be checked (Capabilities::retains_data is false).
class NullSession final : public Session {
 public:
  explicit NullSession(std::string_view value) : value_(value) {}
  Result<bool> get(std::string_view, std::string_view& value) override {
    value = value_;
    return !value_.empty();
  }
  Status put(std::string_view, std::string_view) override { return {}; }
  Status erase(std::string_view) override { return {}; }
  Status apply(std::span<const Mutation>) override { return {}; }
  Status rollback(std::span<const Mutation>) override { return {}; }
  Result<std::uint64_t> scan(const ScanRange&, ScanSink&) override { return std::uint64_t{0}; }

 private:
  const std::string_view value_;
};

class NullStore final : public Store {
 public:
  explicit NullStore(const OpenOptions& options)
      : Store(options.directory), value_(options.value_bytes, 'n') {}
  Result<std::unique_ptr<Session>> session() override {
    return std::make_unique<NullSession>(value_);
  }
  Status sync() override { return {}; }
  Status checkpoint() override { return {}; }
  Status settle() override { return {}; }
  Result<Settings> effective_settings() override { return Settings{}; }
  Status close() override { return {}; }

 private:
  const std::string value_;
};

class NullDriver final : public Driver {
 public:
  std::string name() const override { return "null"; }
  std::string version() const override { return "1"; }
  Capabilities capabilities() const override {
    Capabilities can;
    can.ordered = can.rollback = can.atomic_batches = can.concurrent_writers = true;
    can.larger_than_memory = true;
    can.retains_data = false;
    can.reference = true;
    // It keeps nothing, so it has no promise to break; every class is listed so that it can stand
    // beside the arms of any experiment.
    can.durability = {DurabilityClass::volatile_, DurabilityClass::process,
                      DurabilityClass::power_prefix, DurabilityClass::power_last,
                      DurabilityClass::power};
    can.max_key_bytes = can.max_value_bytes = UINT64_MAX;
    return can;
  }
  std::vector<Setting> settings(DurabilityClass) const override { return {}; }
  Result<std::unique_ptr<Store>> open(const OpenOptions& options) const override {
    ASSAY_TRY(resolve_settings(*this, options.durability, options.settings));
    return std::make_unique<NullStore>(options);
  }
};

}  // namespace

const Driver& null_driver() {
  static const NullDriver driver;
  return driver;
}

}  // namespace assay
