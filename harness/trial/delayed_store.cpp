#include "harness/trial/delayed_store.h"

#include "harness/measure/clock.h"

namespace assay {
namespace {

class DelayedSession final : public Session {
 public:
  DelayedSession(std::unique_ptr<Session> inner, std::uint64_t delay_ticks)
      : inner_(std::move(inner)), delay_ticks_(delay_ticks) {}

  Result<bool> get(std::string_view key, std::string_view& value) override {
    return late(inner_->get(key, value));
  }
  Status put(std::string_view key, std::string_view value) override {
    return late(inner_->put(key, value));
  }
  Status erase(std::string_view key) override { return late(inner_->erase(key)); }
  Status apply(std::span<const Mutation> mutations) override {
    return late(inner_->apply(mutations));
  }
  Status rollback(std::span<const Mutation> mutations) override {
    return late(inner_->rollback(mutations));
  }
  Result<std::uint64_t> scan(const ScanRange& range, ScanSink& sink) override {
    return late(inner_->scan(range, sink));
  }

 private:
  template <class Outcome>
  Outcome late(Outcome outcome) const {
    const std::uint64_t begun = ticks_now();
    while (ticks_between(begun, ticks_now()) < delay_ticks_) {
    }
    return outcome;
  }

  std::unique_ptr<Session> inner_;
  std::uint64_t delay_ticks_;
};

class DelayedStore final : public Store {
 public:
  DelayedStore(std::unique_ptr<Store> inner, std::string directory, std::uint64_t delay_ns)
      : Store(std::move(directory)),
        inner_(std::move(inner)),
        delay_ticks_(TickScale::get().to_ticks(delay_ns)) {}

  Result<std::unique_ptr<Session>> session() override {
    auto session = inner_->session();
    if (!session) return session;
    return std::make_unique<DelayedSession>(std::move(*session), delay_ticks_);
  }
  /// Not delayed: a control over such tables is not seen, which voids the experiment.
  TableStore* tables() override { return inner_->tables(); }
  Status sync() override { return inner_->sync(); }
  Status checkpoint() override { return inner_->checkpoint(); }
  Status settle() override { return inner_->settle(); }
  Result<Footprint> footprint() const override { return inner_->footprint(); }
  std::map<std::string, double> counters() const override { return inner_->counters(); }
  Result<Settings> effective_settings() override { return inner_->effective_settings(); }
  Status close() override { return inner_->close(); }

 private:
  std::unique_ptr<Store> inner_;
  std::uint64_t delay_ticks_;
};

}  // namespace

std::unique_ptr<Store> delayed_store(std::unique_ptr<Store> inner, const std::string& directory,
                                     std::uint64_t delay_ns) {
  return std::make_unique<DelayedStore>(std::move(inner), directory, delay_ns);
}

}  // namespace assay
