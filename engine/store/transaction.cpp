#include "engine/store/transaction.h"
#include "engine/base/mutation.h"

namespace lode {
namespace {

// Whether a key reads the same in two states. Equal leaves of the same overlay settle it without a
// look into the trees: the snapshot keeps its leaf alive, so the address cannot have been reused.
Result<bool> same_key(const State& then, const State& now, std::string_view key) {
  if (then.shape == now.shape &&
      RadixTrie::find(then.root, key) == RadixTrie::find(now.root, key)) {
    return true;
  }
  std::string value_then;
  std::string value_now;
  LODE_ASSIGN(const bool was, look_up(then, key, value_then));
  LODE_ASSIGN(const bool is, look_up(now, key, value_now));
  return was == is && (!was || value_then == value_now);
}

Result<bool> same_range(const State& then, const State& now, std::string_view first,
                        const std::optional<std::string>& last) {
  if (then.shape == now.shape && then.root == now.root) return true;
  const auto a = open_cursor(then);
  const auto b = open_cursor(now);
  a->seek(first);
  b->seek(first);
  while (true) {
    LODE_TRY(a->status());
    LODE_TRY(b->status());
    const bool a_in = a->valid() && (!last || a->key() < *last);
    const bool b_in = b->valid() && (!last || b->key() < *last);
    if (a_in != b_in) return false;
    if (!a_in) return true;
    if (a->key() != b->key()) return false;
    LODE_ASSIGN(const std::string_view value_a, a->value());
    LODE_ASSIGN(const std::string_view value_b, b->value());
    if (value_a != value_b) return false;
    a->next();
    b->next();
  }
}

}  // namespace

Status Transaction::Body::check(const State& current) const {
  const auto conflict = [](std::string_view what) {
    return fail(ErrorKind::conflict,
                std::string(what) + " has changed since the transaction began");
  };
  for (const auto& [key, value] : writes) {
    LODE_ASSIGN(const bool same, same_key(core->state, current, key));
    if (!same) return conflict("a key that it wrote");
  }
  if (isolation != Isolation::serializable) return {};
  for (const std::string& key : reads) {
    LODE_ASSIGN(const bool same, same_key(core->state, current, key));
    if (!same) return conflict("a key that it read");
  }
  for (const Range& range : ranges) {
    if (LODE_MUTATED("phantoms-not-checked")) break;
    LODE_ASSIGN(const bool same, same_range(core->state, current, range.first, range.last));
    if (!same) return conflict("a range that it read");
  }
  return {};
}

Transaction::Transaction(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;
Transaction::~Transaction() = default;

Result<bool> Transaction::get(std::string_view key, std::string& value) {
  if (!body_) return fail(ErrorKind::bad_input, "the transaction is over");
  if (const auto own = body_->writes.find(key); own != body_->writes.end()) {
    if (!own->second) return false;
    value = *own->second;
    return true;
  }
  return guard_memory([&] {
    if (body_->isolation == Isolation::serializable) body_->reads.emplace(key);
    return look_up(body_->core->state, key, value);
  });
}

void Transaction::put(std::string_view key, std::string_view value) {
  if (body_) body_->writes.insert_or_assign(std::string(key), std::string(value));
}

void Transaction::erase(std::string_view key) {
  if (body_) body_->writes.insert_or_assign(std::string(key), std::nullopt);
}

Result<std::vector<std::pair<std::string, std::string>>> Transaction::scan(
    std::string_view first, std::optional<std::string_view> last) {
  if (!body_) return fail(ErrorKind::bad_input, "the transaction is over");
  return guard_memory([&] { return body_->scan(first, last); });
}

Result<std::vector<std::pair<std::string, std::string>>> Transaction::Body::scan(
    std::string_view first, std::optional<std::string_view> last) {
  if (isolation == Isolation::serializable) {
    ranges.push_back({std::string(first), last ? std::optional<std::string>(*last) : std::nullopt});
  }
  std::map<std::string, std::string> found;
  const auto cursor = open_cursor(core->state);
  for (cursor->seek(first); cursor->valid() && (!last || cursor->key() < *last); cursor->next()) {
    LODE_ASSIGN(const std::string_view value, cursor->value());
    found.emplace_hint(found.end(), cursor->key(), value);
  }
  LODE_TRY(cursor->status());
  for (auto own = writes.lower_bound(first); own != writes.end() && (!last || own->first < *last);
       ++own) {
    if (own->second) {
      found.insert_or_assign(own->first, *own->second);
    } else {
      found.erase(own->first);
    }
  }
  return std::vector<std::pair<std::string, std::string>>(found.begin(), found.end());
}

Result<Receipt> Transaction::commit(Durability durability) {
  if (!body_) return fail(ErrorKind::bad_input, "the transaction is over");
  const std::unique_ptr<Body> body = std::move(body_);
  return guard_memory([&] { return body->commit(durability); });
}

Result<Receipt> Transaction::Body::commit(Durability durability) const {
  WriteBatch batch;
  for (const auto& [key, value] : writes) {
    if (value) {
      batch.put(key, *value);
    } else {
      batch.erase(key);
    }
  }
  return engine->commit(batch, durability, [&](const State& current) { return check(current); });
}

void Transaction::rollback() {
  body_.reset();
}

}  // namespace lode
