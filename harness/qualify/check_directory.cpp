// Opens what a crash left, asks the oracle, and sees whether the store still works.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/qualify/controls.h"
#include "harness/qualify/oracle.h"
#include "harness/qualify/perform.h"

namespace assay::qualify {
namespace {

using Kind = Finding::Kind;

class DirectoryCheck {
 public:
  explicit DirectoryCheck(const CheckRequest& request)
      : request_(request), sink_(request.sink == nullptr ? silent_ : *request.sink) {}

  Judgement run() {
    Result<std::unique_ptr<Store>> store = open(!request_.acknowledgements.created);
    if (!store)
      return judge_unopened(request_.acknowledgements, Kind::refuses_to_open,
                            "it does not open: " + store.error().message());
    const Result<Contents> contents = read(**store);
    if (!contents) {
      Judgement unread = judge_unopened(request_.acknowledgements, Kind::fails_while_reading,
                                        "it opens, but: " + contents.error().message());
      (void)(*store)->close();
      return unread;
    }
    Judgement judgement = judge(*request_.history, request_.acknowledgements, *contents);
    const Result<Settings> settings = (*store)->effective_settings();
    if (const auto most = settings ? bound_of_loss(request_.driver->name(), *settings)
                                   : std::optional<std::uint64_t>()) {
      hold_to_bound(judgement, *most);
    }
    // What is torn gives no state to go on from.
    if (judgement.found.empty() || request_.transactions_after == 0) {
      close(**store, judgement);
      return judgement;
    }
    use(**store, judgement);
    close(**store, judgement);
    store->reset();
    if (!judgement.broken) reopen(judgement);
    return judgement;
  }

 private:
  Result<std::unique_ptr<Store>> open(bool create) {
    OpenOptions options = request_.options;
    options.create = create;
    options.key_kind = request_.history->shape().key_kind;
    sink_.stage(Stage::opening);
    Result<std::unique_ptr<Store>> store = request_.driver->open(options);
    if (store) sink_.stage(Stage::open);
    return store;
  }

  Result<Contents> read(Store& store) const {
    const Result<std::unique_ptr<Session>> session = store.session();
    if (!session) return fail(session.error());
    return read_contents(**session, request_.driver->capabilities(), *request_.history);
  }

  static void break_with(Judgement& judgement, Kind kind, std::string text) {
    judgement.broken = true;
    judgement.findings.push_back({kind, std::move(text)});
  }

  void close(Store& store, Judgement& judgement) {
    sink_.stage(Stage::closing);
    if (const Status closed = store.close(); !closed)
      break_with(judgement, Kind::not_usable,
                 "after recovery, closing fails: " + closed.error().message());
    sink_.stage(Stage::closed);
  }

  /// A few more transactions; what they leave becomes part of what has to be found.
  void use(Store& store, Judgement& judgement) {
    LifePlan plan;
    plan.transactions = request_.transactions_after;
    for (const Baseline& base : judgement.found) plan.first.push_back(base.number + 1);
    if (const Status done = perform(store, *request_.history, plan, sink_); !done) {
      break_with(judgement, Kind::not_usable,
                 "after recovery, a transaction fails: " + done.error().message());
      return;
    }
    for (std::uint32_t writer = 0; writer < judgement.found.size(); ++writer) {
      Baseline& base = judgement.found[writer];
      for (std::uint32_t more = 0; more < request_.transactions_after; ++more)
        advance(base, request_.history->transaction(writer, base.number + 1));
    }
  }

  static void advance(Baseline& base, const Transaction& made) {
    base.number = made.number;
    if (made.rolled_back) return;
    for (std::uint32_t position = 0; position < made.changes.size(); ++position) {
      const Change& change = made.changes[position];
      base.state[change.key] = change.erase ? Version{} : Version{made.number, position};
    }
  }

  /// Everything that was there, and what came after, is there after an orderly close.
  void reopen(Judgement& judgement) {
    Result<std::unique_ptr<Store>> store = open(false);
    if (!store) {
      break_with(
          judgement, Kind::not_usable,
          "after recovery and an orderly close, it does not open: " + store.error().message());
      return;
    }
    const Result<Contents> contents = read(**store);
    if (!contents) {
      break_with(
          judgement, Kind::not_usable,
          "after recovery and an orderly close, it cannot be read: " + contents.error().message());
      (void)(*store)->close();
      return;
    }
    Acknowledgements settled;
    for (const Baseline& base : judgement.found) settled.writers.push_back({base, {}});
    const Judgement again = judge(*request_.history, settled, *contents);
    judgement.loss = std::max(judgement.loss, again.loss);
    for (const Finding& finding : again.findings)
      break_with(judgement, Kind::lost_after_reopen,
                 "after recovery and an orderly close: " + finding.text);
    close(**store, judgement);
  }

  const CheckRequest& request_;
  SilentReceipts silent_;
  ReceiptSink& sink_;
};

}  // namespace

Judgement check_directory(const CheckRequest& request) {
  ASSAY_CHECK(request.driver != nullptr && request.history != nullptr, "a store and a history");
  return DirectoryCheck(request).run();
}

}  // namespace assay::qualify
