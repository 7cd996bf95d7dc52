// The accounts of a soak, in an open store: made, changed and checked. Runs in a child of the soak.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/store.h"
#include "harness/soak/soak.h"
#include "harness/soak/soak_shared.h"

namespace assay {

class Bank {
 public:
  /// `shared` and `store` outlive it.
  Bank(const SoakPlan& plan, SoakShared& shared, Store& store);

  /// Makes the accounts, all alike.
  Status fill();
  /// Every promise, against what the clients were told. Nobody writes meanwhile. Error
  /// `wrong_contents` says which was broken.
  Status check_everything();
  /// `clients` threads transfer, and one checks, until they are told to stop or one fails.
  Status work(std::uint32_t clients);
  /// SHA-256 of every key and value in order.
  Result<std::string> digest();

 private:
  Status transfer_until_stop(std::uint32_t client);
  Status check_until_stop();
  Status check_sum(Session& session);
  Status transfer(Session& session, std::uint64_t from, std::uint64_t to, std::uint64_t draw,
                  std::uint32_t client);

  const SoakPlan& plan_;
  SoakShared& shared_;
  Store& store_;
  std::vector<std::mutex> locks_;  ///< of the accounts
};

}  // namespace assay
