// A program behind a pipe is a store like any other. No disk of ours is needed here.
#include "harness/qualify/block/exec_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "adapters/temporary_directory.h"
#include "harness/qualify/oracle.h"
#include "harness/qualify/perform.h"

namespace assay::qualify::block {
namespace {

class ExecStoreTest : public ::testing::Test {
 protected:
  static const Driver& driver(const std::string& command) {
    const auto found = find_block_store("exec:" + command);
    ASSAY_CHECK(found.has_value(), "a command");
    return **found;
  }
  OpenOptions options() const {
    OpenOptions made;
    made.directory = directory_.path();
    return made;
  }
  /// What a shell script that answers so makes of opening.
  std::string refusal(const std::string& script) const {
    const auto store = driver(script).open(options());
    return store ? "" : store.error().message();
  }
  TemporaryDirectory directory_;
};

TEST_F(ExecStoreTest, the_example_keeps_a_history_over_a_reopen) {
  const Driver& example = driver(fmt::format("python3 -SE {} --no-fsync", ASSAY_EXAMPLE_STORE));
  const History history(3, *shape_for(example.capabilities(), 1));
  Acknowledgements known = Acknowledgements::none(history);
  {
    auto store = example.open(options());
    ASSERT_TRUE(store) << store.error().message();
    SilentReceipts sink;
    LifePlan plan;
    plan.first = {1};
    plan.transactions = 30;
    plan.read_every = 1;
    const Status done = perform(**store, history, plan, sink);
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_TRUE((*store)->close());
  }
  for (std::uint64_t number = 1; number <= 30; ++number)
    known.writers[0].since.push_back({number * 2, number * 2 + 1});
  known.created = true;
  CheckRequest request;
  request.driver = &example;
  request.options = options();
  request.history = &history;
  request.acknowledgements = known;
  request.transactions_after = 2;
  const Judgement judgement = check_directory(request);
  EXPECT_EQ(judgement.loss, Loss::intact);
  EXPECT_FALSE(judgement.broken) << (judgement.findings.empty() ? "" : judgement.findings[0].text);
  EXPECT_EQ(judgement.acknowledged, 30U);
}

TEST_F(ExecStoreTest, a_program_that_is_not_there_ends_or_speaks_nonsense_is_an_error_with_words) {
  EXPECT_NE(refusal("/nowhere/at/all 2>&-").find("ended without an answer"), std::string::npos);
  EXPECT_NE(refusal("true").find("ended without an answer"), std::string::npos);
  EXPECT_NE(refusal("sh -c 'read line; echo hello; cat'").find("hello"), std::string::npos);
  EXPECT_NE(refusal("sh -c 'read line; echo error no room; cat'").find("no room"),
            std::string::npos);
  EXPECT_FALSE(find_block_store("exec: "));
}

TEST_F(ExecStoreTest, what_it_cannot_do_is_refused) {
  const auto store = driver("sh -c 'while read line; do echo ok; done'").open(options());
  ASSERT_TRUE(store) << store.error().message();
  const auto session = (*store)->session();
  ASSERT_TRUE(session);
  EXPECT_EQ((*session)->rollback({}).error().kind(), ErrorKind::unsupported);
  EXPECT_EQ((*store)->sync().error().kind(), ErrorKind::unsupported);
  std::string_view value;
  EXPECT_FALSE((*session)->get("key", value)) << "'ok' is no answer to a get";
}

}  // namespace
}  // namespace assay::qualify::block
