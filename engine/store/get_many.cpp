// Several keys from one state: announced once, read in full where a page is not in memory.
#include "engine/store/engine.h"

namespace lode {

// First all that is in memory, without a pin; then, with pins, what is not. The caller holds the
// slot, so that the state stays.
Result<Engine::Values> Engine::get_many(std::span<const std::string_view> keys) {
  return guarded([&]() -> Result<Values> {
    if (ahead_.load(std::memory_order_acquire)) publish_ahead();
    ShortRead read(readers_, published_, true);
    const State& state = current_.load(std::memory_order_seq_cst)->state;
    Values values(keys.size());
    const std::vector<std::size_t> rest = resident_values(state, keys, values, read);
    if (!rest.empty()) read.stop_reading_pages();
    LODE_TRY(read_rest(state, keys, rest, values));
    return values;
  });
}

Result<Engine::Values> Engine::get_many(const State& state,
                                        std::span<const std::string_view> keys) {
  return guarded([&]() -> Result<Values> {
    Values values(keys.size());
    std::vector<std::size_t> rest;
    {
      ShortRead read(readers_, published_, true);
      rest = resident_values(state, keys, values, read);
    }
    LODE_TRY(read_rest(state, keys, rest, values));
    return values;
  });
}

// Returns the places of the keys that are to be read otherwise.
std::vector<std::size_t> Engine::resident_values(const State& state,
                                                 std::span<const std::string_view> keys,
                                                 Values& values, ShortRead& read) {
  std::vector<std::size_t> rest;
  std::uint64_t pages = 0;
  std::string value;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Resident answer = look_up_resident(state, keys[i], value, pages);
    if (answer == Resident::value) values[i] = value;
    if (answer == Resident::unknown) rest.push_back(i);
  }
  read.count_pages(pages);
  return rest;
}

Status Engine::read_rest(const State& state, std::span<const std::string_view> keys,
                         const std::vector<std::size_t>& rest, Values& values) {
  std::string value;
  for (const std::size_t i : rest) {
    LODE_ASSIGN(const bool found, look_up(state, keys[i], value));
    if (found) values[i] = value;
  }
  return {};
}

Result<std::vector<std::optional<std::string>>> Store::get_many(
    std::span<const std::string_view> keys) {
  return engine_->get_many(keys);
}

Result<std::vector<std::optional<std::string>>> Snapshot::get_many(
    std::span<const std::string_view> keys) const {
  return core_->engine->get_many(core_->state, keys);
}

}  // namespace lode
