#include "engine/lode.h"

#include <utility>

#include "engine/file/real_disk.h"
#include "engine/store/batch.h"
#include "engine/store/engine.h"
#include "engine/store/transaction.h"

namespace lode {

void WriteBatch::add(unsigned kind, std::string_view key, std::string_view value) {
  Encoder out(encoded_);
  out.fixed(static_cast<std::uint8_t>(kind));
  out.varint(key.size());
  out.varint(value.size());
  out.bytes(key);
  out.bytes(value);
  ++operations_;
}

void WriteBatch::put(std::string_view key, std::string_view value) {
  longest_key_ = std::max(longest_key_, key.size());
  shortest_key_ = std::min(shortest_key_, key.size());
  longest_value_ = std::max<std::uint64_t>(longest_value_, value.size());
  ++puts_;
  weights_.add(key.size(), value.size());
  add(static_cast<unsigned>(OperationKind::put), key, value);
}

void WriteBatch::erase(std::string_view key) {
  longest_key_ = std::max(longest_key_, key.size());
  shortest_key_ = std::min(shortest_key_, key.size());
  weights_.add(key.size(), 0);
  add(static_cast<unsigned>(OperationKind::erase), key, {});
}

void WriteBatch::erase_range(std::string_view first, std::string_view last) {
  longest_key_ = std::max({longest_key_, first.size(), last.size()});
  ranged_ = true;
  add(static_cast<unsigned>(OperationKind::erase_range), first, last);
}

void WriteBatch::erase_from(std::string_view first) {
  longest_key_ = std::max(longest_key_, first.size());
  ranged_ = true;
  add(static_cast<unsigned>(OperationKind::erase_from), first, {});
}

void WriteBatch::clear() {
  constexpr std::size_t kept_bytes = std::size_t{1} << 20;  // one huge batch is no reason for more
  std::string memory;
  if (encoded_.capacity() <= kept_bytes) memory.swap(encoded_);
  memory.clear();
  *this = {};
  encoded_.swap(memory);
}

struct Cursor::Body {
  std::shared_ptr<const SnapshotCore> core;
  std::unique_ptr<MergeCursor> entries;
};

Cursor::Cursor(std::unique_ptr<Body> body)
    : body_(std::move(body)), entries_(body_->entries.get()) {}
Cursor::Cursor(Cursor&&) noexcept = default;
Cursor& Cursor::operator=(Cursor&& other) noexcept {
  // The entries of the old position go before the snapshot that they are part of.
  if (body_) body_->entries.reset();
  body_ = std::move(other.body_);
  entries_ = other.entries_;
  return *this;
}
Cursor::~Cursor() {
  if (body_) body_->entries.reset();
}
void Cursor::seek_first() {
  body_->entries->seek_first();
}
void Cursor::seek_last() {
  body_->entries->seek_last();
}
void Cursor::seek(std::string_view key) {
  body_->entries->seek(key);
}
void Cursor::seek_at_or_below(std::string_view key) {
  body_->entries->seek(key);
  if (!valid()) {
    if (status()) body_->entries->seek_last();
  } else if (body_->entries->key() != key) {
    body_->entries->prev();
  }
}
void Cursor::next() {
  body_->entries->next();
}
void Cursor::prev() {
  body_->entries->prev();
}
Status Cursor::status() const {
  return body_->entries->status();
}

Result<bool> Snapshot::get(std::string_view key, std::string& value) const {
  return core_->engine->get(core_->state, key, value);
}

Cursor Snapshot::cursor() const {
  auto body = std::make_unique<Cursor::Body>();
  body->core = core_;
  body->entries = open_cursor(core_->state);
  return Cursor(std::move(body));
}

std::uint64_t Snapshot::sequence() const {
  return core_->sequence.value;
}

Store::Store(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(const std::string& directory, const Options& options) {
  LODE_ASSIGN(auto disk, guard_memory([&] {
                return open_directory(directory, options.create && !options.read_only);
              }));
  return open(std::move(disk), options);
}

Result<std::unique_ptr<Store>> Store::open(std::shared_ptr<Disk> disk, const Options& options) {
  return guard_memory([&]() -> Result<std::unique_ptr<Store>> {
    LODE_ASSIGN(auto engine, Engine::open(std::move(disk), options));
    return std::unique_ptr<Store>(new Store(std::move(engine)));
  });
}

Result<Receipt> Store::commit(const WriteBatch& batch, Durability durability) {
  return engine_->commit(batch, durability);
}

Result<Receipt> Store::put(std::string_view key, std::string_view value, Durability durability) {
  return guard_memory([&] {
    WriteBatch batch;
    batch.put(key, value);
    return engine_->commit(batch, durability);
  });
}

Result<Receipt> Store::erase(std::string_view key, Durability durability) {
  return guard_memory([&] {
    WriteBatch batch;
    batch.erase(key);
    return engine_->commit(batch, durability);
  });
}

Result<bool> Store::get(std::string_view key, std::string& value) {
  return engine_->get(key, value);
}

Snapshot Store::snapshot() {
  return Snapshot(engine_->snapshot());
}

Transaction Store::begin(Isolation isolation) {
  auto body = std::make_unique<Transaction::Body>();
  body->engine = engine_;
  body->core = engine_->snapshot();
  body->isolation = isolation;
  return Transaction(std::move(body));
}

Status Store::sync() {
  return engine_->sync();
}
Status Store::checkpoint() {
  return engine_->checkpoint();
}
Status Store::drain() {
  return engine_->drain();
}
Status Store::compact() {
  return engine_->compact();
}
Status Store::verify() {
  return engine_->verify();
}
std::map<std::string, double> Store::statistics() const {
  return engine_->statistics();
}
const RecoveryReport& Store::recovery() const {
  return engine_->recovery();
}
LogMethod Store::log_method() const {
  return engine_->log_method();
}
Options Store::options() const {
  return engine_->options();
}
Status Store::close() {
  return engine_->close();
}

std::string_view version() {
  return "0.3.0 (format 3)";
}

std::string u64_key(std::uint64_t number) {
  std::string key(8, '\0');
  const std::uint64_t big = __builtin_bswap64(number);
  std::memcpy(key.data(), &big, 8);
  return key;
}

}  // namespace lode
