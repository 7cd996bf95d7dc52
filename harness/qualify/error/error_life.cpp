#include "harness/qualify/error/error_life.h"

#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/qualify/error/fault_injector.h"
#include "harness/qualify/perform.h"

namespace assay::qualify::error {
namespace {

constexpr std::size_t kErrorsTold = 6;
constexpr std::uint64_t kCheckpointEvery = 6;
constexpr std::uint64_t kSyncEvery = 5;
constexpr std::uint64_t kReadEvery = 2;

class Life {
 public:
  Life(const LifeOrder& order, SharedReceipts& receipts) : order_(order), receipts_(receipts) {}

  LifeReport run() {
    receipts_.stage(Stage::opening);
    Result<std::unique_ptr<Store>> store = order_.driver->open(order_.options);
    if (!store) {
      note("opening", store.error());
      return std::move(report_);
    }
    receipts_.stage(Stage::open);
    report_.opened = true;
    make(**store, order_.transactions);
    read_all(**store);
    FaultInjector::tell_repaired();
    make(**store, order_.transactions_after);
    read_all(**store);
    FaultInjector::tell_cut();
    receipts_.stage(Stage::closing);
    if (const Status closed = (*store)->close(); !closed) note("closing", closed.error());
    store->reset();
    receipts_.stage(Stage::closed);
    return std::move(report_);
  }

 private:
  void note(const std::string& what, const Error& error) {
    const std::scoped_lock lock(mutex_);
    ++report_.failed;
    if (report_.errors.size() < kErrorsTold)
      report_.errors.push_back(fmt::format("{}: {}", what, error.message()));
  }

  /// `count` transactions of all writers together, each in a thread of its own.
  void make(Store& store, std::uint64_t count) {
    const std::uint32_t writers = order_.history->shape().writers;
    const std::uint64_t each = (count + writers - 1) / writers;
    std::vector<std::thread> others;
    for (std::uint32_t writer = 1; writer < writers; ++writer)
      others.emplace_back([&, writer] { write(store, writer, each); });
    write(store, 0, each);
    for (std::thread& other : others) other.join();
    made_ += each;
  }

  /// A session that has failed is not used again: the next transaction gets a new one.
  void write(Store& store, std::uint32_t writer, std::uint64_t count) {
    std::unique_ptr<Session> session;
    for (std::uint64_t made = made_; made < made_ + count; ++made) {
      const Transaction transaction = order_.history->transaction(writer, order_.first + made);
      if (!session) {
        Result<std::unique_ptr<Session>> opened = store.session();
        if (!opened) {
          note("a session", opened.error());
          return;
        }
        session = std::move(*opened);
      }
      receipts_.begun(writer, transaction.number);
      const Status done = perform_transaction(*session, *order_.history, transaction);
      if (done) {
        receipts_.acknowledged(writer, transaction.number);
        if (!transaction.rolled_back && made % kReadEvery == 0) read_back(*session, transaction);
      } else {
        note(order_.history->shape().writers == 1
                 ? fmt::format("transaction {}", transaction.number)
                 : fmt::format("transaction {} of writer {}", transaction.number, writer),
             done.error());
        session.reset();
      }
      if (writer == 0) look_after(store, made);
    }
  }

  void look_after(Store& store, std::uint64_t made) {
    if ((made + 1) % kSyncEvery == 0) {
      const std::uint64_t began = receipts_.sync_begins();
      const Status synced = store.sync();
      if (synced)
        receipts_.synced(began);
      else
        note("sync", synced.error());
    }
    if ((made + 1) % kCheckpointEvery == 0) {
      receipts_.stage(Stage::checkpoint);
      if (const Status done = store.checkpoint(); !done) note("checkpoint", done.error());
      receipts_.stage(Stage::open);
    }
  }

  void read_back(Session& session, const Transaction& made) {
    const Change& last = made.changes.back();
    std::string_view value;
    const Result<bool> found =
        session.get(order_.history->key_bytes({made.writer, last.key}), value);
    if (!found) {
      note(fmt::format("reading after transaction {}", made.number), found.error());
      return;
    }
    if (*found == !last.erase && (!*found || value == last.value)) return;
    const std::scoped_lock lock(mutex_);
    if (report_.wrong.empty())
      report_.wrong = fmt::format(
          "transaction {} was acknowledged, but right after it the key that it changed last does "
          "not hold what it wrote",
          made.number);
  }

  void read_all(Store& store) {
    const Result<std::unique_ptr<Session>> session = store.session();
    const Result<Contents> contents =
        session ? read_contents(**session, order_.driver->capabilities(), *order_.history)
                : Result<Contents>(fail(session.error()));
    if (!contents) {
      ++report_.unread;
      note("reading everything", contents.error());
      return;
    }
    Acknowledgements known = receipts_.read();
    known.crashes = order_.crashes;
    known.synced_at_crashes.assign(order_.crashes.size(), 0);
    Judgement judged = judge(*order_.history, known, *contents);
    if (std::pair(judged.broken, judged.loss) >=
        std::pair(report_.worst.broken, report_.worst.loss))
      report_.worst = std::move(judged);
  }

  const LifeOrder& order_;
  SharedReceipts& receipts_;
  LifeReport report_;
  std::mutex mutex_;        ///< of the report, while writers run
  std::uint64_t made_ = 0;  ///< of each writer
};

}  // namespace

nlohmann::json to_json(const LifeReport& report) {
  return {{"opened", report.opened},
          {"failed", report.failed},
          {"errors", report.errors},
          {"unread", report.unread},
          {"worst", qualify::to_json(report.worst)},
          {"wrong", report.wrong}};
}

Result<LifeReport> life_report_from_json(const nlohmann::json& json) {
  LifeReport report;
  try {
    report.opened = json.at("opened");
    report.failed = json.at("failed");
    report.errors = json.at("errors").get<std::vector<std::string>>();
    report.unread = json.at("unread");
    Result<Judgement> worst = judgement_from_json(json.at("worst"));
    if (!worst) return fail(worst.error());
    report.worst = std::move(*worst);
    report.wrong = json.at("wrong");
  } catch (const nlohmann::json::exception& exception) {
    return fail(ErrorKind::child, fmt::format("not the report of a life: {}", exception.what()));
  }
  return report;
}

LifeReport live_with_errors(const LifeOrder& order, SharedReceipts& receipts) {
  return Life(order, receipts).run();
}

}  // namespace assay::qualify::error
