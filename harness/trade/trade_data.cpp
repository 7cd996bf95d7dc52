#include "harness/trade/trade_data.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "workloads/random.h"

namespace assay {
namespace {

static_assert(std::endian::native == std::endian::little, "noise is written as the machine has it");

/// The parents that a trade names by a column of its own.
struct Parent {
  std::string_view name;
  std::uint64_t rows;
};
constexpr Parent kParents[] = {
    {"instrument", 1000}, {"account", 10'000}, {"venue", 64}, {"trader", 512}};
enum : std::size_t { kInstrument, kAccount, kVenue, kTrader };
constexpr std::uint64_t kGroups = 16;

constexpr std::uint64_t kTradePurpose = 0x7472616465;
constexpr std::uint64_t kPricePurpose = 0x7072696365;

/// x * x, ..., as 32-bit fractions of 1: integers alone, so that every machine gives the same.
std::uint64_t power_of(std::uint64_t fraction, unsigned exponent) {
  std::uint64_t power = fraction;
  for (unsigned step = 1; step < exponent; ++step) power = (power * fraction) >> 32;
  return power;
}

/// Skewed below `n`: the first share x of the values gets the share x^(1/exponent) of the draws.
std::int64_t skewed(Random& random, std::uint64_t n, unsigned exponent) {
  return static_cast<std::int64_t>((power_of(random.next() >> 32, exponent) * n) >> 32);
}

std::int64_t uniform(Random& random, std::uint64_t n) {
  return static_cast<std::int64_t>(random.bounded(n));
}

/// Of 100 trades 90 are settled (0), 6 pending (1), 3 amended (2), 1 is cancelled (3).
std::int64_t status(Random& random) {
  const std::uint64_t percent = random.bounded(100);
  return percent < 90 ? 0 : percent < 96 ? 1 : percent < 99 ? 2 : 3;
}

template <std::size_t N>
std::string_view write_name(std::string_view name, std::uint64_t number, std::array<char, N>& out) {
  const auto end = fmt::format_to_n(out.data(), N, "{}-{:06}", name, number);
  return {out.data(), std::min(end.size, N)};
}

}  // namespace

void TableChecksum::add(std::span<const TableValue> cells) {
  ++rows;
  for (const TableValue& cell : cells)
    sum += static_cast<std::uint64_t>(cell.integer) + cell.bytes.size();
}

std::string TableChecksum::text() const {
  return fmt::format("{}:{}", rows, sum);
}

Result<TradeData> TradeData::make(std::uint64_t rows, std::uint64_t seed) {
  if (rows == 0 || rows > kTradeRowsMax)
    return fail(ErrorKind::bad_input,
                fmt::format("a table of trades has 1 to {} rows, not {}", kTradeRowsMax, rows));
  return TradeData(rows, seed);
}

TradeData::TradeData(std::uint64_t rows, std::uint64_t seed) : seed_(seed) {
  constexpr ColumnKind kInteger = ColumnKind::integer;
  constexpr ColumnKind kBytes = ColumnKind::bytes;
  tables_.push_back({"trade",
                     {{"trade_id", kInteger},
                      {"executed_us", kInteger},
                      {"instrument_id", kInteger},
                      {"account_id", kInteger},
                      {"venue_id", kInteger},
                      {"side", kInteger},
                      {"status", kInteger},
                      {"quantity", kInteger},
                      {"price", kInteger},
                      {"order_ref", kInteger},
                      {"trader", kBytes},
                      {"payload", kBytes}}});
  rows_.push_back(rows);
  for (std::size_t related = 0; related < kRelatedTables; ++related) {
    const bool parent = related < std::size(kParents);
    const std::string name =
        parent ? std::string(kParents[related].name) : fmt::format("dictionary_{:03}", related + 1);
    tables_.push_back({name, {{"id", kInteger}, {"group_id", kInteger}, {"label", kBytes}}});
    rows_.push_back(parent ? kParents[related].rows : 8 + related * 37 % 57);
  }
}

void TradeData::fill(std::size_t table, std::uint64_t index, TradeRow& row) const {
  ASSAY_CHECK(index < rows_.at(table), "a row that the table does not have");
  if (table == kTradeTable) {
    fill_trade(index, row);
  } else {
    fill_related(table, index, row);
  }
}

void TradeData::fill_trade(std::uint64_t index, TradeRow& row) const {
  Random random(derive_seed(seed_, kTradePurpose, index));
  row.count_ = kTradeColumns;
  const auto set = [&row](TradeColumn column, std::int64_t value) {
    row.cells_[static_cast<std::size_t>(column)] = {value, {}};
  };
  const std::int64_t instrument = skewed(random, kParents[kInstrument].rows, 3);
  set(TradeColumn::trade_id, static_cast<std::int64_t>(index));
  set(TradeColumn::executed_us, static_cast<std::int64_t>(index) * 100 + uniform(random, 100));
  set(TradeColumn::instrument_id, instrument);
  set(TradeColumn::account_id, skewed(random, kParents[kAccount].rows, 2));
  set(TradeColumn::venue_id, skewed(random, kParents[kVenue].rows, 3));
  set(TradeColumn::side, uniform(random, 2));
  set(TradeColumn::status, status(random));
  set(TradeColumn::quantity, 1 + uniform(random, std::uint64_t{10} << random.bounded(10)));
  const std::uint64_t usual =
      derive_seed(seed_, kPricePurpose, static_cast<std::uint64_t>(instrument)) % 1'000'000;
  set(TradeColumn::price, static_cast<std::int64_t>(1000 + usual) + uniform(random, 1000));
  set(TradeColumn::order_ref, uniform(random, kOrderRefs));
  const auto trader = static_cast<std::uint64_t>(skewed(random, kParents[kTrader].rows, 3));
  row.cells_[static_cast<std::size_t>(TradeColumn::trader)] = {
      0, write_name(kParents[kTrader].name, trader, row.text_)};
  for (std::size_t at = 0; at < row.noise_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(row.noise_.data() + at, &word, sizeof word);
  }
  row.cells_[static_cast<std::size_t>(TradeColumn::payload)] = {
      0, {row.noise_.data(), row.noise_.size()}};
}

void TradeData::fill_related(std::size_t table, std::uint64_t index, TradeRow& row) const {
  row.count_ = 3;
  row.cells_[0] = {static_cast<std::int64_t>(index), {}};
  row.cells_[1] = {static_cast<std::int64_t>(derive_seed(seed_, table, index) % kGroups), {}};
  row.cells_[2] = {0, write_name(tables_[table].name, index, row.text_)};
}

TableChecksum TradeData::checksum(std::size_t table) const {
  TableChecksum checksum;
  TradeRow row;
  for (std::uint64_t index = 0; index < rows_.at(table); ++index) {
    fill(table, index, row);
    checksum.add(row.cells());
  }
  return checksum;
}

bool TradeRows::next(std::vector<TableValue>& row) {
  if (next_ == data_.rows(table_)) return false;
  data_.fill(table_, next_++, row_);
  row.assign(row_.cells().begin(), row_.cells().end());
  return true;
}

}  // namespace assay
