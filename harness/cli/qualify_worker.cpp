// Hidden verb `assay qualify-worker REQUEST-FILE`: the server of a kill campaign. Not for people.
#include <memory>
#include <string>

#include "harness/cli/verb.h"
#include "harness/qualify/kill/kill_request.h"

namespace assay::cli {

void add_qualify_worker(CLI::App& app, Invocation& invocation) {
  const auto request = std::make_shared<std::string>();
  CLI::App* const verb = app.add_subcommand("qualify-worker", "The server of a kill campaign");
  verb->group("");  // not shown in the help
  verb->add_option("request", *request, "File written by the parent")->required();
  verb->callback([request, &invocation] {
    invocation.action = [request]() -> Result<ExitStatus> {
      return static_cast<ExitStatus>(qualify::kill_server_main(*request));
    };
  });
}

}  // namespace assay::cli
