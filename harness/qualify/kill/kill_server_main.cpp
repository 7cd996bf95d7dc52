// The server's side of the conversation with the parent (kill_request.h).
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "adapters/registry.h"
#include "harness/qualify/error/error_server.h"
#include "harness/qualify/kill/kill_request.h"
#include "harness/qualify/kill/kill_server.h"
#include "harness/qualify/rot/rot_server.h"
#include "harness/trial/child_process.h"
#include "harness/trial/trial_directory.h"
#include "harness/trial/worker_request.h"

namespace assay::qualify {
namespace {

void say(const nlohmann::json& message) {
  const std::string line =
      message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

/// `server` is that of level K, E or R.
template <class Server>
Status serve(Server& server) {
  const Result<nlohmann::json> description = server.describe();
  if (!description) return fail(description.error());
  say({{"ready", *description}});
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb;
    std::uint64_t number = 0;
    std::string bundle;
    words >> verb >> number >> std::ws;
    std::getline(words, bundle);
    if (verb != "case" || bundle.empty())
      return fail(ErrorKind::bad_input, fmt::format("not a command: {}", line));
    ASSAY_TRY(server.run_case(number, bundle == "-" ? std::string() : bundle,
                              [](const nlohmann::json& round) { say({{"round", round}}); }));
    say({{"done", number}});
  }
  return {};
}

Status serve_request(const std::string& request_path, const FindDriver& find) {
  const Result<std::string> text = read_file(request_path);
  if (!text) return fail(text.error());
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  Result<KillRequest> request = kill_request_from_json(json);
  if (!request) return fail(request.error());
  const Result<const Driver*> driver = find ? find(request->store) : find_driver(request->store);
  if (!driver) return fail(driver.error());
  if (error::is_error_request(json)) {
    Result<error::ErrorRequest> of_errors = error::error_request_from_json(json);
    if (!of_errors) return fail(of_errors.error());
    auto server = error::ErrorServer::make(std::move(*of_errors), **driver);
    if (!server) return fail(server.error());
    return serve(*server);
  }
  if (rot::is_rot_request(json)) {
    auto server = rot::RotServer::make(std::move(*request), **driver);
    if (!server) return fail(server.error());
    return serve(*server);
  }
  Result<KillServer> server = KillServer::make(std::move(*request), **driver);
  if (!server) return fail(server.error());
  return serve(*server);
}

}  // namespace

int kill_server_main(const std::string& request_path, const FindDriver& find) {
  const Status served = serve_request(request_path, find);
  if (served) return 0;
  fmt::print(stderr, "assay qualify-worker: {}\n", served.error().message());
  say({{"error", error_to_json(served.error())}});
  return 0;
}

}  // namespace assay::qualify
