// The tables that a query sees, and where in a record each column is.
//
// A table has one row a record of its kinds, or one an element of an array in them. A column is a
// JSON pointer, resolved in the element; one that begins with "record:" is of the record, with
// "body:" of its body, and "parent:" of the element that the array is in.
#pragma once

#include <string_view>
#include <vector>

namespace assay {

struct ColumnSource {
  std::string_view name;
  std::string_view source;
};

struct TableSource {
  std::string_view name;
  std::string_view what;
  std::string_view kind;   ///< of the records; empty = every one
  std::string_view outer;  ///< pointer to the array in the body; empty = one row a record
  std::string_view inner;  ///< pointer to an array or object in its elements; empty = none
  std::vector<ColumnSource> columns;
};

[[nodiscard]] const std::vector<TableSource>& table_sources();

}  // namespace assay
