// Batches are one commit; a rollback leaves nothing.
#include <fmt/format.h>

#include <array>

#include "adapters/conformance/fixture.h"

namespace assay::conformance {
namespace {

constexpr auto kPut = Mutation::Kind::put;
constexpr auto kErase = Mutation::Kind::erase;

Result<Outcome> no_batches(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  const std::string first = bench.key(1);
  const std::string second = bench.key(2);
  const std::array<Mutation, 2> batch{{{kPut, first, "one"}, {kPut, second, "two"}}};
  const Outcome outcome = refusal(fixture.session().apply(batch), "a batch of 2");
  if (outcome.result == CheckResult::not_supported) {
    fixture.note_touched(first);
    fixture.note_touched(second);
    ASSAY_TRY(fixture.verify());
  }
  return outcome;
}

Result<Outcome> batch(const Bench& bench) {
  if (!bench.capabilities.atomic_batches) return no_batches(bench);
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  Entries entries;
  for (std::uint64_t i = 0; i < 128; ++i) {
    entries.emplace_back(bench.key(i), random_bytes(i, i * 3));
  }
  std::vector<Mutation> all;
  for (const auto& [key, value] : entries) all.push_back({kPut, key, value});
  ASSAY_TRY(fixture.apply(all));
  ASSAY_TRY(fixture.verify());
  std::vector<Mutation> mixed;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i % 3 == 0) mixed.push_back({kErase, entries[i].first, {}});
    if (i % 3 == 1) mixed.push_back({kPut, entries[i].first, "changed"});
  }
  ASSAY_TRY(fixture.apply(mixed));
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

Result<Outcome> batch_same_key(const Bench& bench) {
  if (!bench.capabilities.atomic_batches) return no_batches(bench);
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  std::array<std::string, 6> keys;
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = bench.key(i);
  ASSAY_TRY(fixture.put(keys[3], "before"));
  ASSAY_TRY(fixture.put(keys[4], "before"));
  const std::array<Mutation, 13> mutations{{{kPut, keys[0], "first"},
                                            {kPut, keys[1], "put, then erased"},
                                            {kPut, keys[2], "a"},
                                            {kPut, keys[0], "second"},
                                            {kErase, keys[1], {}},
                                            {kErase, keys[2], {}},
                                            {kErase, keys[3], {}},
                                            {kPut, keys[2], "put again"},
                                            {kPut, keys[3], "erased, then put"},
                                            {kPut, keys[4], "after"},
                                            {kErase, keys[4], {}},
                                            {kErase, keys[5], {}},
                                            {kPut, keys[0], "third"}}};
  ASSAY_TRY(fixture.apply(mutations));
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

/// A batch whose last mutation cannot be made: the store must refuse all of it.
Result<Outcome> batch_refused(const Bench& bench) {
  if (!bench.capabilities.atomic_batches) return no_batches(bench);
  const std::uint64_t most = bench.capabilities.max_key_bytes;
  if (most > (std::uint64_t{16} << 20)) {
    return Outcome{CheckResult::not_applicable,
                   fmt::format("no mutation to refuse: keys may have {} bytes", most)};
  }
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  ASSAY_TRY(fixture.put(bench.key(1), "before"));
  ASSAY_TRY(fixture.put(bench.key(2), "before"));
  const std::array keys{bench.key(1), bench.key(2), bench.key(3), std::string(most + 1, 'k')};
  const std::array<Mutation, 4> mutations{{{kPut, keys[0], "after"},
                                           {kErase, keys[1], {}},
                                           {kPut, keys[2], "new"},
                                           {kPut, keys[3], "refused"}}};
  fixture.note_touched(keys[2]);
  if (fixture.session().apply(mutations)) {
    return Outcome{CheckResult::failed,
                   fmt::format("a batch with a key of {} bytes is accepted", most + 1)};
  }
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.put(keys[2], "the session still works"));
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

Result<Outcome> rollback(const Bench& bench) {
  Fixture fixture(bench);
  ASSAY_TRY(fixture.open());
  const std::array keys{bench.key(1), bench.key(2), bench.key(3), bench.key(4)};
  const std::array<Mutation, 6> mutations{{{kPut, keys[0], "rolled back"},
                                           {kErase, keys[1], {}},
                                           {kPut, keys[2], "rolled back"},
                                           {kPut, keys[2], "twice"},
                                           {kPut, keys[3], "rolled back"},
                                           {kErase, keys[3], {}}}};
  ASSAY_TRY(fixture.put(keys[0], "stays"));
  ASSAY_TRY(fixture.put(keys[1], "stays as well"));
  for (const std::string& key : keys) fixture.note_touched(key);
  const Status status = fixture.session().rollback(mutations);
  if (!bench.capabilities.rollback) {
    const Outcome outcome = refusal(status, "rollback");
    if (outcome.result == CheckResult::not_supported) ASSAY_TRY(fixture.verify());
    return outcome;
  }
  if (!status) return failed_in(status.error(), "rollback");
  ASSAY_TRY(fixture.verify());
  ASSAY_TRY(fixture.put(keys[3], "written after the rollback"));
  ASSAY_TRY(fixture.verify());
  const Status again = fixture.session().rollback(mutations);
  if (!again) return failed_in(again.error(), "second rollback");
  ASSAY_TRY(fixture.reopen());
  ASSAY_TRY(fixture.verify());
  return Outcome{};
}

constexpr std::array kChecks{
    Check{"batch", "a batch of puts and erases is made as a whole", batch},
    Check{"batch_same_key", "the last mutation of a key within a batch wins", batch_same_key},
    Check{"batch_refused", "a batch that is refused leaves nothing of it", batch_refused},
    Check{"rollback", "a rollback leaves nothing of its mutations", rollback},
};

}  // namespace

std::span<const Check> batch_checks() {
  return kChecks;
}

}  // namespace assay::conformance
