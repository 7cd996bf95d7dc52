// Tables over the Session of a store of keys and values: the declared layout, the same for every
// store (README.md), and the operations of table_store.h as calls of that Session.
#pragma once

#include <memory>

#include "adapters/store.h"
#include "adapters/table_store.h"

namespace assay {

/// Tables in the layout, over `session`, which must outlive them. `store` is for messages. Error
/// unsupported for a store that cannot scan or roll back. Tables and indexes are known to the
/// handle that made them; another one has to attach() them.
[[nodiscard]] Result<std::unique_ptr<TableSession>> table_layout(Session& session,
                                                                 const Capabilities& can,
                                                                 std::string_view store);

}  // namespace assay
